/* SPDX-License-Identifier: Apache-2.0 */
#ifndef K3_RUNTIME_KERNELS_LANES_ATTENTION_H
#define K3_RUNTIME_KERNELS_LANES_ATTENTION_H

#include "runtime/kernels/lanes/math.h"

/* KDA: arithmetic.md 6. Lanes are value channels j. */

K3_INLINE vf load_some(const float *p, size_t part)
{
    return part ? vf_load_part(p, part) : vf_load(p);
}
K3_INLINE void store_some(float *p, size_t part, vf x)
{
    if (part) {
        vf_store_part(p, part, x);
    } else {
        vf_store(p, x);
    }
}

/* What happens to row i of the state on the way through a pass. */
enum pass {
    DECAY_AND_READ, /* S = S * alpha[i], sum with k  */
    WRITE_AND_READ  /* S = fma(k[i], u, S), sum with q */
};

/* One pass over `vectors` columns of the state from S on: updates them and returns, in out, D128
 * over i of (a[i], S[i][j]). alpha is used by the first pass, k and u by the second. */
K3_INLINE void state_pass(enum pass pass, vf *out, float *S, const float *a, const float *alpha,
                          const float *k, const vf *u, size_t n, size_t vectors, size_t part)
{
    vd totals[2 * 8];
    K3_UNROLL
    for (size_t v = 0; v < 2 * vectors; v++) {
        totals[v] = vd_zero();
    }
    for (size_t block = 0; block < n; block += K3_SUPERBLOCK) {
        vf sums[8];
        K3_UNROLL
        for (size_t v = 0; v < vectors; v++) {
            sums[v] = vf_zero();
        }
        for (size_t group = block; group < min_size(block + K3_SUPERBLOCK, n); group += K3_GROUP) {
            vf P[8];
            K3_UNROLL
            for (size_t v = 0; v < vectors; v++) {
                P[v] = vf_zero();
            }
            for (size_t i = group; i < min_size(group + K3_GROUP, n); i++) {
                const vf factor = vf_set1(pass == DECAY_AND_READ ? alpha[i] : k[i]);
                const vf weight = vf_set1(a[i]);
                K3_UNROLL
                for (size_t v = 0; v < vectors; v++) {
                    float *at = S + i * n + v * LANES;
                    vf x = load_some(at, part);
                    x = pass == DECAY_AND_READ ? vf_mul(x, factor) : vf_fma(factor, u[v], x);
                    store_some(at, part, x);
                    P[v] = vf_fma(weight, x, P[v]);
                }
            }
            K3_UNROLL
            for (size_t v = 0; v < vectors; v++) {
                sums[v] = vf_add(sums[v], P[v]);
            }
        }
        totals_add(totals, sums, vectors);
    }
    K3_UNROLL
    for (size_t v = 0; v < vectors; v++) {
        out[v] = vf_narrow(totals[2 * v], totals[2 * v + 1]);
    }
}

/* Columns [first, first + vectors * LANES), or `part` of LANES when that is not 0. */
K3_INLINE void kda_columns(float *o, float *S, const float *q, const float *k, const float *v_in,
                           const float *alpha, float beta, size_t n, size_t first, size_t vectors,
                           size_t part)
{
    vf r[8], u[8], out[8];
    state_pass(DECAY_AND_READ, r, S + first, k, alpha, k, NULL, n, vectors, part);
    K3_UNROLL
    for (size_t v = 0; v < vectors; v++) {
        const vf value = load_some(v_in + first + v * LANES, part);
        u[v] = vf_mul(vf_set1(beta), vf_sub(value, r[v]));
    }
    state_pass(WRITE_AND_READ, out, S + first, q, alpha, k, u, n, vectors, part);
    K3_UNROLL
    for (size_t v = 0; v < vectors; v++) {
        store_some(o + first + v * LANES, part, out[v]);
    }
}

/* 32 columns of 128 rows are 16 KiB: the second pass finds them in the first-level cache. */
#define KDA_VECTORS (32 / LANES)

void K3_FN(kda_step)(float *o, float *S, const float *q, const float *k, const float *v,
                     const float *alpha, float beta, size_t n)
{
    size_t j = 0;
    for (; j + 32 <= n; j += 32) {
        kda_columns(o, S, q, k, v, alpha, beta, n, j, KDA_VECTORS, 0);
    }
    for (; j < n; j += LANES) {
        if (n - j >= LANES) {
            kda_columns(o, S, q, k, v, alpha, beta, n, j, 1, 0);
        } else {
            kda_columns(o, S, q, k, v, alpha, beta, n, j, 1, n - j);
        }
    }
}

void K3_FN(kda_normalise)(float *q, float *k, size_t n)
{
    const float scale = (float)(1.0 / sqrt((double)n));
    const float norm_q = sqrtf(K3_FN(dot)(q, q, n) + 1e-6F);
    const float norm_k = sqrtf(K3_FN(dot)(k, k, n) + 1e-6F);
    for (size_t i = 0; i < n; i++) {
        q[i] = (q[i] / norm_q) * scale;
        k[i] = k[i] / norm_k;
    }
}

void K3_FN(kda_decay)(float *alpha, const float *z, const float *dt_bias, size_t n, float exp_a,
                      float lower_bound)
{
    for (size_t i = 0; i < n; i += LANES) {
        const size_t part = n - i < LANES ? n - i : 0;
        const vf t =
            vf_mul(vf_set1(exp_a), vf_add(load_some(z + i, part), load_some(dt_bias + i, part)));
        const vf g = vf_mul(vf_set1(lower_bound), vf_sigmoid(t));
        store_some(alpha + i, part, vf_exp(g));
    }
}

#endif
