/* SPDX-License-Identifier: Apache-2.0 */
#ifndef K3_RUNTIME_KERNELS_LANES_VECTOR_H
#define K3_RUNTIME_KERNELS_LANES_VECTOR_H

#include <string.h>

#include "format/base/assert.h"
#include "runtime/kernels/lanes/chains.h"
#include "runtime/kernels/lanes/math.h"

/* Vectors: arithmetic.md 4, 5 and the softmax of 7. Lanes are elements, except in the sums: a sum
 * is one chain per group of 32, so there the eight groups of two superblocks run side by side. */

/* Two superblocks, folded into T. `terms` says what b is for. */
K3_INLINE double add_two_superblocks(double T, const float *a, const float *b, enum terms terms)
{
    float P[CHAINS];
    chains(P, a, b, terms);
    const float S0 = ((P[0] + P[1]) + P[2]) + P[3]; /* S starts as +0: +0 + P is P, */
    const float S1 = ((P[4] + P[5]) + P[6]) + P[7]; /* but for -0, which T absorbs  */
    return (T + (double)S0) + (double)S1;
}

/* The same for the last terms, fewer than 256. */
K3_INLINE double add_rest(double T, const float *a, const float *b, size_t n, enum terms terms)
{
    for (size_t block = 0; block < n; block += K3_SUPERBLOCK) {
        const size_t block_end = min_size(block + K3_SUPERBLOCK, n);
        float S = 0.0F;
        for (size_t group = block; group < block_end; group += K3_GROUP) {
            const size_t group_end = min_size(group + K3_GROUP, n);
            float P = 0.0F;
            for (size_t i = group; i < group_end; i++) {
                P = terms == SINGLES ? P + a[i] : fmaf(a[i], b[i], P);
            }
            S = S + P;
        }
        T = T + (double)S;
    }
    return T;
}

K3_INLINE float sum_d128(const float *a, const float *b, size_t n, enum terms terms)
{
    double T = 0.0;
    size_t i = 0;
    for (; i + 2U * K3_SUPERBLOCK <= n; i += 2U * K3_SUPERBLOCK) {
        T = add_two_superblocks(T, a + i, b + i, terms);
    }
    return (float)add_rest(T, a + i, b + i, n - i, terms);
}

float K3_FN(dot)(const float *a, const float *b, size_t n)
{
    return a == b ? sum_d128(a, a, n, SQUARES) : sum_d128(a, b, n, PRODUCTS);
}

static float sum128(const float *v, size_t n)
{
    return sum_d128(v, v, n, SINGLES);
}

/* y[i] = expression of vectors loaded by LOAD(pointer), for all i < n. */
#define FULL(p) vf_load((p) + i)
#define PART(p) vf_load_part((p) + i, n - i)
#define FOR_ALL(function, ...)                                                                     \
    do {                                                                                           \
        size_t i = 0;                                                                              \
        for (; i + LANES <= n; i += LANES) {                                                       \
            vf_store(y + i, function(FULL, __VA_ARGS__));                                          \
        }                                                                                          \
        if (i < n) {                                                                               \
            vf_store_part(y + i, n - i, function(PART, __VA_ARGS__));                              \
        }                                                                                          \
    } while (0)

#define RMS_SCALE(LOAD, x, r, gain)  vf_mul(vf_mul(LOAD(x), r), LOAD(gain))
#define SITU_GLU(LOAD, g, u, b1, b2) situ_glu(LOAD(g), LOAD(u), b1, b2)
#define GATE(LOAD, x, g)             vf_mul(LOAD(x), vf_sigmoid(LOAD(g)))
#define ADD(LOAD, a, b)              vf_add(LOAD(a), LOAD(b))
#define MUL(LOAD, a, b)              vf_mul(LOAD(a), LOAD(b))
#define AXPY(LOAD, a, x, y)          vf_fma(a, LOAD(x), LOAD(y))
#define EXP_MINUS(LOAD, s, m)        vf_exp(vf_sub(LOAD(s), m))
#define DIVIDE(LOAD, p, z)           vf_div(LOAD(p), z)

void K3_FN(rms_norm)(float *y, const float *x, const float *gain, size_t n, float eps)
{
    const float m = K3_FN(dot)(x, x, n) / (float)n;
    const vf r = vf_set1(1.0F / sqrtf(m + eps));
    FOR_ALL(RMS_SCALE, x, r, gain);
}

K3_INLINE vf situ_glu(vf g, vf u, vf beta, vf linear_beta)
{
    vf a = vf_mul(beta, vf_tanh(vf_div(g, beta)));
    a = vf_mul(a, vf_sigmoid(g));
    const vf c = vf_mul(linear_beta, vf_tanh(vf_div(u, linear_beta)));
    return vf_mul(a, c);
}

void K3_FN(situ_glu)(float *y, const float *gate, const float *up, size_t n, float beta,
                     float linear_beta)
{
    const vf b1 = vf_set1(beta);
    const vf b2 = vf_set1(linear_beta);
    FOR_ALL(SITU_GLU, gate, up, b1, b2);
}

void K3_FN(gate)(float *y, const float *x, const float *gate, size_t n)
{
    FOR_ALL(GATE, x, gate);
}

void K3_FN(add)(float *y, const float *a, const float *b, size_t n)
{
    FOR_ALL(ADD, a, b);
}

void K3_FN(mul)(float *y, const float *a, const float *b, size_t n)
{
    FOR_ALL(MUL, a, b);
}

void K3_FN(axpy)(float *y, float a, const float *x, size_t n)
{
    const vf factor = vf_set1(a);
    FOR_ALL(AXPY, factor, x, y);
}

/* A NaN among s may or may not be the maximum: all results are NaN either way. */
K3_INLINE float maximum(const float *s, size_t n)
{
    float m = s[0];
    size_t i = 0;
    if (n >= LANES) {
        vf most = vf_load(s);
        for (i = LANES; i + LANES <= n; i += LANES) {
            most = vf_max(most, vf_load(s + i));
        }
        float lanes[LANES];
        vf_store(lanes, most);
        for (size_t j = 0; j < LANES; j++) {
            m = lanes[j] > m ? lanes[j] : m;
        }
    }
    for (; i < n; i++) {
        m = s[i] > m ? s[i] : m;
    }
    return m;
}

void K3_FN(softmax)(float *p, const float *s, size_t n)
{
    float *y = p;
    const vf m = vf_set1(maximum(s, n));
    FOR_ALL(EXP_MINUS, s, m);
    const vf Z = vf_set1(sum128(p, n));
    FOR_ALL(DIVIDE, p, Z);
}

/* acc over the sources for LANES elements from i on; `part` 0 means all of them. */
K3_INLINE vf mix_at(const float *const *sources, size_t source_count, const float *p, size_t i,
                    size_t part)
{
    vf acc = vf_zero();
    for (size_t s = 0; s < source_count; s++) {
        const float *from = sources[s] + i;
        acc = vf_fma(vf_set1(p[s]), part ? vf_load_part(from, part) : vf_load(from), acc);
    }
    return acc;
}

void K3_FN(res_mix)(float *y, const float *const *sources, size_t source_count, const float *folded,
                    size_t n, float eps)
{
    k3_assert(source_count >= 1 && source_count <= K3_RES_SOURCES_MAX);
    if (source_count == 1) {
        memcpy(y, sources[0], n * sizeof *y);
        return;
    }
    float p[K3_RES_SOURCES_MAX] = {0};
    for (size_t s = 0; s < source_count; s++) {
        const float ss = K3_FN(dot)(sources[s], sources[s], n);
        const float d = K3_FN(dot)(folded, sources[s], n);
        p[s] = d / sqrtf(ss / (float)n + eps);
    }
    K3_FN(softmax)(p, p, source_count);
    size_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        vf_store(y + i, mix_at(sources, source_count, p, i, 0));
    }
    if (i < n) {
        vf_store_part(y + i, n - i, mix_at(sources, source_count, p, i, n - i));
    }
}

K3_INLINE vf conv_at(const float *taps, size_t tap_count, const float *history, const float *x,
                     size_t channels, size_t c, size_t part)
{
    vf acc = vf_zero();
    for (size_t j = 0; j < tap_count; j++) {
        const float *w = taps + j * channels + c;
        const float *in = j + 1 < tap_count ? history + j * channels + c : x + c;
        acc = part ? vf_fma(vf_load_part(w, part), vf_load_part(in, part), acc)
                   : vf_fma(vf_load(w), vf_load(in), acc);
    }
    return vf_mul(acc, vf_sigmoid(acc));
}

void K3_FN(conv_silu)(float *y, const float *taps, size_t tap_count, const float *history,
                      const float *x, size_t channels)
{
    size_t c = 0;
    for (; c + LANES <= channels; c += LANES) {
        vf_store(y + c, conv_at(taps, tap_count, history, x, channels, c, 0));
    }
    if (c < channels) {
        const size_t part = channels - c;
        vf_store_part(y + c, part, conv_at(taps, tap_count, history, x, channels, c, part));
    }
}

void K3_FN(bf16_widen)(float *y, const uint8_t *bf16, size_t n)
{
    size_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        vf_store(y + i, vf_load_bf16(bf16 + 2 * i));
    }
    if (i < n) {
        uint8_t rest[2 * LANES] = {0};
        memcpy(rest, bf16 + 2 * i, 2 * (n - i));
        vf_store_part(y + i, n - i, vf_load_bf16(rest));
    }
}

int K3_FN(all_finite)(const float *x, size_t n)
{
    size_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        if (!vf_all_finite(vf_load(x + i))) {
            return 0;
        }
    }
    return i == n || vf_all_finite(vf_load_part(x + i, n - i));
}

#endif
