/* SPDX-License-Identifier: Apache-2.0 */
#ifndef K3_RUNTIME_KERNELS_LANES_M4_PANEL_H
#define K3_RUNTIME_KERNELS_LANES_M4_PANEL_H

#include "runtime/kernels/lanes/panel.h"

/* MXFP4 batches by way of memory: a superblock is decoded to floats once and multiplied with up to
 * 24 tokens, six at a time. For tiers with few registers, and for large batches. */

#define M4_TOKENS 24U
#define M4_T      6U
#define M4_LANES  32U /* two tiles at most */

/* One superblock of `wide` tiles: w [128][16 * wide], scales [4][16 * wide]. */
K3_INLINE void m4_unpack(float *w, float *scales, const uint8_t *tiles, size_t tile_stride,
                         size_t wide)
{
    const struct m4_decoder decoder = m4_decoder_make();
    const size_t lanes = 16 * wide;
    for (size_t v = 0; v < wide * TILE_VECTORS; v++) {
        const uint8_t *tile = tiles + v / TILE_VECTORS * tile_stride;
        const size_t part = v % TILE_VECTORS;
        for (size_t group = 0; group < 4; group++) {
            vf_store(scales + group * lanes + v * LANES,
                     m4_scale(tile + 16 * group + part * LANES));
        }
        for (size_t line = 0; line < 16; line++) {
            vf columns[8];
            __builtin_prefetch(tile + 1088 + 64 * line);
            m4_decode(columns, &decoder, tile + 64 * (1 + line) + part * sizeof(vi));
            K3_UNROLL
            for (size_t i = 0; i < 8; i++) {
                vf_store(w + (8 * line + i) * lanes + v * LANES, columns[i]);
            }
        }
    }
}

/* `wide` tiles times `tokens` <= M4_TOKENS tokens, T at a time. */
K3_INLINE void m4_panel(const uint8_t *tiles, size_t tile_stride, size_t cols, size_t tokens,
                        const float *x, size_t x_stride, float *y, size_t y_stride, size_t wide,
                        size_t T)
{
    const size_t vectors = wide * TILE_VECTORS;
    vd totals[(M4_TOKENS + M4_T) * 2 * TILE_VECTORS * 2];
    _Alignas(64) float w[K3_SUPERBLOCK * M4_LANES];
    _Alignas(64) float scales[4 * M4_LANES];
    _Alignas(64) float panel[M4_T * K3_SUPERBLOCK];
    memset(totals, 0, sizeof totals);
    for (size_t col = 0; col < cols; col += K3_SUPERBLOCK) {
        m4_unpack(w, scales, tiles, tile_stride, wide);
        for (size_t t = 0; t < tokens; t += T) {
            pack_x(panel, x + t * x_stride + col, x_stride, min_size(T, tokens - t), T);
            panel_add(totals + 2 * t * vectors, w, 16 * wide, scales, panel, K3_SUPERBLOCK, vectors,
                      T);
        }
        tiles += 1088;
    }
    for (size_t t = 0; t < tokens; t++) {
        for (size_t v = 0; v < vectors; v++) {
            const vd *at = totals + 2 * (t * vectors + v);
            vf_store(y + t * y_stride + v * LANES, vf_narrow(at[0], at[1]));
        }
    }
}

#define DEFINE_M4_PANEL(T, wide)                                                                   \
    static void m4_panel_##T##_##wide(const struct k3_tile_run *run, size_t tile, size_t tokens,   \
                                      const float *x, size_t x_stride, float *y, size_t y_stride)  \
    {                                                                                              \
        m4_panel(run->tiles + tile * run->tile_stride_bytes, run->tile_stride_bytes,               \
                 run->cols_padded, tokens, x, x_stride, y, y_stride, wide, T);                     \
    }
DEFINE_M4_PANEL(2, 1)
DEFINE_M4_PANEL(2, 2)
DEFINE_M4_PANEL(3, 1)
DEFINE_M4_PANEL(4, 1)
DEFINE_M4_PANEL(5, 1)
DEFINE_M4_PANEL(6, 1)

/* Batches of `tokens` >= 2. */
static void m4_panels(const struct k3_tile_run *run, size_t tokens, const float *x, size_t x_stride,
                      float *y, size_t y_stride)
{
    static void (*const single[M4_T + 1])(const struct k3_tile_run *, size_t, size_t, const float *,
                                          size_t, float *, size_t) = {
        NULL, NULL, m4_panel_2_1, m4_panel_3_1, m4_panel_4_1, m4_panel_5_1, m4_panel_6_1};
    const size_t passes = (tokens + M4_TOKENS - 1) / M4_TOKENS;
    const size_t per_pass = (tokens + passes - 1) / passes;
    const size_t blocks = (per_pass + M4_T - 1) / M4_T;
    const size_t T = (per_pass + blocks - 1) / blocks;
    for (size_t tile = 0; tile < run->tile_count;) {
        const int is_wide = T == 2 && run->tile_count - tile >= 2;
        for (size_t first = 0; first < tokens; first += per_pass) {
            const size_t count = min_size(per_pass, tokens - first);
            const float *x_at = x + first * x_stride;
            float *y_at = y + first * y_stride + 16 * tile;
            (is_wide ? m4_panel_2_2 : single[T])(run, tile, count, x_at, x_stride, y_at, y_stride);
        }
        tile += is_wide ? 2 : 1;
    }
}

#endif
