/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/kernels/ref/ref.h"
#include "runtime/kernels/transcendental.h"

/* KDA and MLA: arithmetic.md 6 and 7. */

#define LANES 16U

/* y[j] = D128 over i < n of (a[i], b[i * b_stride + j]), for j < width: sums down columns. */
static void dot_columns(float *y, size_t width, const float *a, const float *b, size_t b_stride,
                        size_t n)
{
    for (size_t first = 0; first < width; first += LANES) {
        const size_t lanes = ref_min(LANES, width - first);
        double T[LANES] = {0};
        for (size_t block = 0; block < n; block += K3_SUPERBLOCK) {
            const size_t block_end = ref_min(block + K3_SUPERBLOCK, n);
            float S[LANES] = {0};
            for (size_t group = block; group < block_end; group += K3_GROUP) {
                const size_t group_end = ref_min(group + K3_GROUP, n);
                float P[LANES] = {0};
                for (size_t i = group; i < group_end; i++) {
                    const float *row = b + i * b_stride + first;
                    for (size_t j = 0; j < lanes; j++) {
                        P[j] = fmaf(a[i], row[j], P[j]);
                    }
                }
                for (size_t j = 0; j < LANES; j++) {
                    S[j] = S[j] + P[j];
                }
            }
            for (size_t j = 0; j < LANES; j++) {
                T[j] = T[j] + (double)S[j];
            }
        }
        for (size_t j = 0; j < lanes; j++) {
            y[first + j] = (float)T[j];
        }
    }
}

static void l2_normalise(float *x, size_t n, float factor)
{
    const float norm = sqrtf(K3_REF(dot)(x, x, n) + 1e-6F);
    for (size_t i = 0; i < n; i++) {
        x[i] = (x[i] / norm) * factor; /* factor 1 is exact */
    }
}

void K3_REF(kda_normalise)(float *q, float *k, size_t n)
{
    l2_normalise(q, n, (float)(1.0 / sqrt((double)n)));
    l2_normalise(k, n, 1.0F);
}

void K3_REF(kda_decay)(float *alpha, const float *z, const float *dt_bias, size_t n, float exp_a,
                       float lower_bound)
{
    for (size_t i = 0; i < n; i++) {
        const float t = exp_a * (z[i] + dt_bias[i]);
        const float g = lower_bound * k3_inline_sigmoid_f(t);
        alpha[i] = k3_inline_exp_f(g);
    }
}

void K3_REF(kda_step)(float *o, float *S, const float *q, const float *k, const float *v,
                      const float *alpha, float beta, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; j < n; j++) {
            S[i * n + j] = S[i * n + j] * alpha[i];
        }
    }
    dot_columns(o, n, k, S, n, n); /* o holds r, then u, then the output */
    for (size_t j = 0; j < n; j++) {
        o[j] = beta * (v[j] - o[j]);
    }
    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; j < n; j++) {
            S[i * n + j] = fmaf(k[i], o[j], S[i * n + j]);
        }
    }
    dot_columns(o, n, q, S, n, n);
}

void K3_REF(mla_scores)(float *scores, size_t score_stride, const float *query, size_t query_stride,
                        size_t heads, const float *rows, size_t row_stride, size_t row_len,
                        size_t positions, float scale)
{
    for (size_t h = 0; h < heads; h++) {
        for (size_t s = 0; s < positions; s++) {
            scores[h * score_stride + s] =
                K3_REF(dot)(query + h * query_stride, rows + s * row_stride, row_len) * scale;
        }
    }
}

void K3_REF(mla_mix)(float *mix, size_t mix_stride, const float *p, size_t p_stride, size_t heads,
                     const float *rows, size_t row_stride, size_t latent, size_t positions)
{
    for (size_t h = 0; h < heads; h++) {
        dot_columns(mix + h * mix_stride, latent, p + h * p_stride, rows, row_stride, positions);
    }
}
