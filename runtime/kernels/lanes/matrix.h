/* SPDX-License-Identifier: Apache-2.0 */
#ifndef K3_RUNTIME_KERNELS_LANES_MATRIX_H
#define K3_RUNTIME_KERNELS_LANES_MATRIX_H

#include "format/base/assert.h"
#include "runtime/kernels/lanes/column.h"
#if M4_PANELS
#include "runtime/kernels/lanes/m4_panel.h"
#endif

/* B16 and M4 tiles times one row or a batch. A *block* is `wide` tiles times T tokens, all of whose
 * P chains are in registers: each weight is decoded once for T tokens, each x broadcast once for
 * all tiles. Lane = row, so the order of each output's sum is that of the scalar tier.
 *
 * Rows of x lie far apart, often at multiples of 4096 bytes, where they would push each other out
 * of the first-level cache: with T > 1 the superblock's part of them is copied side by side first.
 */

/* One block's work. */
struct block {
    const uint8_t *tiles; /* the first of `wide` tiles */
    size_t tile_stride, cols;
    const float *x;
    size_t x_stride, tokens; /* tokens <= T; the rest of the T is zeros */
    float *y;
    size_t y_stride;
};

#define PREFETCH_BYTES   384U /* of each tile; more is slower than none at all on Zen 4 */
#define BLOCK_TOKENS_MAX 6U

/* S = S + P over one superblock of `wide` B16 tiles. */
K3_INLINE void b16_superblock(vf *S, const uint8_t *tiles, size_t tile_stride, const float *x,
                              size_t x_stride, size_t wide, size_t T)
{
    const size_t vectors = wide * TILE_VECTORS;
    for (size_t group = 0; group < K3_SUPERBLOCK / K3_GROUP; group++) {
        vf P[32];
        K3_UNROLL
        for (size_t a = 0; a < vectors * T; a++) {
            P[a] = vf_zero();
        }
        for (size_t pair = 0; pair < K3_GROUP / 2; pair++) {
            const uint8_t *lines = tiles + 64 * pair;
            vf weights[8];
            K3_UNROLL
            for (size_t v = 0; v < vectors; v++) {
                const uint8_t *line = lines + v / TILE_VECTORS * tile_stride;
                if (v % TILE_VECTORS == 0) {
                    __builtin_prefetch(line + PREFETCH_BYTES);
                }
                weights[v] = vf_b16_even(vi_load(line + v % TILE_VECTORS * sizeof(vi)));
            }
            multiply_column(P, weights, vectors, x + 2 * pair, x_stride, T);
            lines = load_again(lines);
            K3_UNROLL
            for (size_t v = 0; v < vectors; v++) {
                const uint8_t *line = lines + v / TILE_VECTORS * tile_stride;
                weights[v] = vf_b16_odd(vi_load(line + v % TILE_VECTORS * sizeof(vi)));
            }
            multiply_column(P, weights, vectors, x + 2 * pair + 1, x_stride, T);
        }
        K3_UNROLL
        for (size_t a = 0; a < vectors * T; a++) {
            S[a] = vf_add(S[a], P[a]);
        }
        tiles += 32U * K3_GROUP;
        x += K3_GROUP;
    }
}

/* S = fma(P, scale, S) over one superblock of `wide` M4 tiles. */
K3_INLINE void m4_superblock(vf *S, const uint8_t *tiles, size_t tile_stride, const float *x,
                             size_t x_stride, size_t wide, size_t T)
{
    const size_t vectors = wide * TILE_VECTORS;
    const struct m4_decoder decoder = m4_decoder_make();
    for (size_t group = 0; group < K3_SUPERBLOCK / K3_GROUP; group++) {
        vf P[32];
        K3_UNROLL
        for (size_t a = 0; a < vectors * T; a++) {
            P[a] = vf_zero();
        }
        m4_group(P, &decoder, tiles + 64 + 256 * group, tile_stride, x + K3_GROUP * group, x_stride,
                 wide, T);
        K3_UNROLL
        for (size_t v = 0; v < vectors; v++) {
            const vf scale = m4_scale(tiles + v / TILE_VECTORS * tile_stride + 16 * group +
                                      v % TILE_VECTORS * LANES);
            K3_UNROLL
            for (size_t t = 0; t < T; t++) {
                S[t * vectors + v] = vf_fma(P[t * vectors + v], scale, S[t * vectors + v]);
            }
        }
    }
}

/* A block over all columns. */
K3_INLINE void run_block(const struct block *b, int is_m4, size_t wide, size_t T)
{
    const size_t vectors = wide * TILE_VECTORS;
    const size_t tile_superblock_bytes = is_m4 ? 1088 : 32U * K3_SUPERBLOCK;
    vd totals_array[2 * 32];
    vf S_array[32];
    vd *totals = T > 1 ? in_memory(totals_array) : totals_array;
    vf *S = T > 1 ? in_memory(S_array) : S_array;
    K3_UNROLL
    for (size_t i = 0; i < 2 * vectors * T; i++) {
        totals[i] = vd_zero();
    }
    _Alignas(64) float panel[BLOCK_TOKENS_MAX * K3_SUPERBLOCK];
    const uint8_t *tiles = b->tiles;
    for (size_t col = 0; col < b->cols; col += K3_SUPERBLOCK) {
        const float *x = b->x + col;
        if (T > 1) {
            pack_x(panel, x, b->x_stride, b->tokens, T);
            x = panel;
        }
        K3_UNROLL
        for (size_t i = 0; i < vectors * T; i++) {
            S[i] = vf_zero();
        }
        if (is_m4) {
            m4_superblock(S, tiles, b->tile_stride, x, K3_SUPERBLOCK, wide, T);
        } else {
            b16_superblock(S, tiles, b->tile_stride, x, K3_SUPERBLOCK, wide, T);
        }
        totals_add(totals, S, vectors * T);
        tiles += tile_superblock_bytes;
    }
    K3_UNROLL
    for (size_t t = 0; t < T; t++) {
        if (t < b->tokens) {
            K3_UNROLL
            for (size_t v = 0; v < vectors; v++) {
                const size_t at = 2 * (t * vectors + v);
                vf_store(b->y + t * b->y_stride + v * LANES, vf_narrow(totals[at], totals[at + 1]));
            }
        }
    }
}

/* The shapes that a tier compiles: for up to `tokens` tokens, `wide` tiles at once, then one by
 * one. Ascending; the last one bounds the tokens of a block. */
struct shape {
    size_t tokens, wide;
    void (*run_wide)(const struct block *b);
    void (*run_single)(const struct block *b);
};

#define DEFINE_SHAPE(format, is_m4, T, wide)                                                       \
    static void format##_##T##_wide(const struct block *b)                                         \
    {                                                                                              \
        run_block(b, is_m4, wide, T);                                                              \
    }                                                                                              \
    static void format##_##T##_single(const struct block *b)                                       \
    {                                                                                              \
        run_block(b, is_m4, 1, T);                                                                 \
    }
#define DEFINE_B16_SHAPE(T, wide) DEFINE_SHAPE(b16, 0, T, wide)
#define DEFINE_M4_SHAPE(T, wide)  DEFINE_SHAPE(m4, 1, T, wide)
#define B16_SHAPE(T, wide)        {T, wide, b16_##T##_wide, b16_##T##_single},
#define M4_SHAPE(T, wide)         {T, wide, m4_##T##_wide, m4_##T##_single},

B16_SHAPES(DEFINE_B16_SHAPE)
M4_SHAPES(DEFINE_M4_SHAPE)
static const struct shape b16_shapes[] = {B16_SHAPES(B16_SHAPE)};
static const struct shape m4_shapes[] = {M4_SHAPES(M4_SHAPE)};
#define COUNT_OF(array) (sizeof(array) / sizeof(array)[0])

/* The first shape for `tokens` tokens among those that take as many tiles as `like` (any if NULL).
 */
static const struct shape *shape_for(const struct shape *shapes, size_t tokens,
                                     const struct shape *like)
{
    while (shapes->tokens < tokens || (like && shapes->wide != like->wide)) {
        shapes++;
    }
    return shapes;
}

/* All tokens in blocks of about equal size, for each group of tiles: the weights of a group are
 * read from memory once and then from the cache. */
static void run_shapes(const struct shape *shapes, size_t shape_count,
                       const struct k3_tile_run *run, size_t tokens, const float *x,
                       size_t x_stride, float *y, size_t y_stride)
{
    k3_debug_assert(run->cols_padded % K3_TILE_COLS == 0 && (uintptr_t)run->tiles % 64 == 0);
    if (tokens == 0) {
        return;
    }
    const size_t most = shapes[shape_count - 1].tokens;
    const size_t blocks = (tokens + most - 1) / most;
    const size_t per_block = (tokens + blocks - 1) / blocks;
    const struct shape *usual = shape_for(shapes, per_block, NULL);
    for (size_t tile = 0; tile < run->tile_count;) {
        const int is_wide = run->tile_count - tile >= usual->wide;
        for (size_t first = 0; first < tokens; first += per_block) {
            const struct block b = {
                .tiles = run->tiles + tile * run->tile_stride_bytes,
                .tile_stride = run->tile_stride_bytes,
                .cols = run->cols_padded,
                .x = x + first * x_stride,
                .x_stride = x_stride,
                .tokens = min_size(per_block, tokens - first),
                .y = y + first * y_stride + 16 * tile,
                .y_stride = y_stride,
            };
            const struct shape *shape = shape_for(shapes, b.tokens, usual);
            (is_wide ? shape->run_wide : shape->run_single)(&b);
        }
        tile += is_wide ? usual->wide : 1;
    }
}

void K3_FN(b16)(const struct k3_tile_run *run, size_t tokens, const float *x, size_t x_stride,
                float *y, size_t y_stride)
{
    run_shapes(b16_shapes, COUNT_OF(b16_shapes), run, tokens, x, x_stride, y, y_stride);
}

void K3_FN(m4)(const struct k3_tile_run *run, size_t tokens, const float *x, size_t x_stride,
               float *y, size_t y_stride)
{
#if M4_PANELS
    if (tokens > 1) {
        m4_panels(run, tokens, x, x_stride, y, y_stride);
        return;
    }
#endif
    run_shapes(m4_shapes, COUNT_OF(m4_shapes), run, tokens, x, x_stride, y, y_stride);
}

#endif
