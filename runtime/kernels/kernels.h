/* SPDX-License-Identifier: Apache-2.0 */
#ifndef K3_RUNTIME_KERNELS_KERNELS_H
#define K3_RUNTIME_KERNELS_KERNELS_H

#include <stddef.h>
#include <stdint.h>

#include "format/base/error.h"

/* Pure functions: no allocation, no threads, no state, no errors; up to 128 KiB of stack. Every
 * tier gives the bits of the scalar reference; docs/arithmetic.md fixes each operation's order
 * (which NaN a NaN is, is not promised). Buffers never overlap unless a function says so. No
 * alignment is needed beyond a float's, except that tiles start on 64 bytes.
 *
 * Dividing work changes the speed and no bit. Matrices: by tiles, in runs of four or more, all
 * tokens of a batch in one call (any number of them; multiples of 6 are best). Scores: by
 * positions. Mixes: by latent channels. All heads in one call. */

#define K3_TILE_ROWS 16U  /* output rows of a tile              */
#define K3_TILE_COLS 128U /* columns are padded to a multiple   */

#define K3_RES_SOURCES_MAX 2064U /* above the bank of the deepest model: 2 * K3_LAYERS_MAX + 1 */

/* Consecutive tiles of one matrix (docs/format.md "Tiles"): tile i starts at
 * tiles + i * tile_stride_bytes. The stride is the tile's own size, or twice that for the w1/w3
 * pair of an expert, whose tiles alternate. */
struct k3_tile_run {
    const uint8_t *tiles;
    size_t tile_stride_bytes;
    size_t tile_count;
    size_t cols_padded; /* multiple of K3_TILE_COLS */
};

/* Bytes of one tile. */
static inline size_t k3_b16_tile_bytes(size_t cols_padded)
{
    return 32 * cols_padded;
}
static inline size_t k3_m4_tile_bytes(size_t cols_padded)
{
    return cols_padded / K3_TILE_COLS * 1088;
}

struct k3_kernels {
    const char *name; /* "scalar", "avx2", ... */

    /* y[t][16*i + r] = row r of tile i . x[t], for t < tokens, i < tile_count.   D128
     *   x  [tokens] rows, x_stride floats apart; from the true column count to cols_padded any
     *      finite values (the tiles are zero there)
     *   y  [tokens] rows, y_stride floats apart, 16 * tile_count floats each are written */
    void (*b16)(const struct k3_tile_run *run, size_t tokens, const float *x, size_t x_stride,
                float *y, size_t y_stride);
    void (*m4)(const struct k3_tile_run *run, size_t tokens, const float *x, size_t x_stride,
               float *y, size_t y_stride);
    /* The router: bf16 tiles, four double chains per output (arithmetic.md 8). */
    void (*b16_router)(const struct k3_tile_run *run, size_t tokens, const float *x,
                       size_t x_stride, double *y, size_t y_stride);

    /* D128 of two vectors. */
    float (*dot)(const float *a, const float *b, size_t n);
    /* y may be x. */
    void (*rms_norm)(float *y, const float *x, const float *gain, size_t n, float eps);
    /* y may be gate or up. */
    void (*situ_glu)(float *y, const float *gate, const float *up, size_t n, float beta,
                     float linear_beta);
    /* y = x * sigmoid(gate); y may be either. */
    void (*gate)(float *y, const float *x, const float *gate, size_t n);
    /* Element by element; y may be a or b. */
    void (*add)(float *y, const float *a, const float *b, size_t n);
    void (*mul)(float *y, const float *a, const float *b, size_t n);
    /* y = fmaf(a, x, y). */
    void (*axpy)(float *y, float a, const float *x, size_t n);
    /* p may be s; n >= 1. */
    void (*softmax)(float *p, const float *s, size_t n);

    /* Attention residual mix: sources[source_count] of width n, folded weight gain * proj.
     * Needs 1 <= source_count <= K3_RES_SOURCES_MAX (asserted). */
    void (*res_mix)(float *y, const float *const *sources, size_t source_count, const float *folded,
                    size_t n, float eps);

    /* One token of the short convolution with SiLU.
     *   taps [tap_count][channels]; history [tap_count-1][channels], oldest first; x [channels] */
    void (*conv_silu)(float *y, const float *taps, size_t tap_count, const float *history,
                      const float *x, size_t channels);

    /* q, k of one head, in place: l2 norm, and q times 1/sqrt(n). */
    void (*kda_normalise)(float *q, float *k, size_t n);
    /* alpha[i] from z[i]; exp_a = exp_f(A_log of the head). */
    void (*kda_decay)(float *alpha, const float *z, const float *dt_bias, size_t n, float exp_a,
                      float lower_bound);
    /* One token of one head: decay, read, write, output. S [n][n], rows are key channels. */
    void (*kda_step)(float *o, float *S, const float *q, const float *k, const float *v,
                     const float *alpha, float beta, size_t n);

    /* scores[h * score_stride + s] for heads h, positions s < positions.
     *   query [heads] rows of row_len, query_stride apart; rows: cached rows, row_stride apart */
    void (*mla_scores)(float *scores, size_t score_stride, const float *query, size_t query_stride,
                       size_t heads, const float *rows, size_t row_stride, size_t row_len,
                       size_t positions, float scale);
    /* mix[h][j] = D128 over positions of p[h][s] * rows[s][j], j < latent. */
    void (*mla_mix)(float *mix, size_t mix_stride, const float *p, size_t p_stride, size_t heads,
                    const float *rows, size_t row_stride, size_t latent, size_t positions);

    void (*bf16_widen)(float *y, const uint8_t *bf16, size_t n);
    int (*all_finite)(const float *x, size_t n); /* 1 or 0 */
};

/* Our own transcendentals, scalar (arithmetic.md 3). The same in every tier. */
double k3_exp_d(double x);
double k3_sigmoid_d(double x);
float k3_exp_f(float x);
float k3_sigmoid_f(float x);
float k3_tanh_f(float x);

/* The fastest tier that this processor and its system support. */
const struct k3_kernels *k3_kernels_best(void);

/* A tier by name ("scalar", "avx2", "avx512", "neon"), NULL when this build or machine lacks it. */
const struct k3_kernels *k3_kernels_by_name(const char *name);

/* Round to nearest, no flush to zero, no denormals-are-zero, in the calling thread. Each compute
 * thread asks once. Errors: UNSUPPORTED, naming what is wrong. */
K3_MUST_CHECK enum k3_code k3_float_environment_check(struct k3_error *err);

#endif
