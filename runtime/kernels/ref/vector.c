/* SPDX-License-Identifier: Apache-2.0 */
#include "format/base/assert.h"
#include "runtime/kernels/ref/ref.h"
#include "runtime/kernels/transcendental.h"

/* Vectors: arithmetic.md 4, 5 and the softmax of 7. */

float K3_REF(dot)(const float *a, const float *b, size_t n)
{
    double T = 0;
    for (size_t block = 0; block < n; block += K3_SUPERBLOCK) {
        const size_t block_end = ref_min(block + K3_SUPERBLOCK, n);
        float S = 0;
        for (size_t group = block; group < block_end; group += K3_GROUP) {
            const size_t group_end = ref_min(group + K3_GROUP, n);
            float P = 0;
            for (size_t i = group; i < group_end; i++) {
                P = fmaf(a[i], b[i], P);
            }
            S = S + P;
        }
        T = T + (double)S;
    }
    return (float)T;
}

static float sum128(const float *v, size_t n)
{
    double T = 0;
    for (size_t block = 0; block < n; block += K3_SUPERBLOCK) {
        const size_t block_end = ref_min(block + K3_SUPERBLOCK, n);
        float S = 0;
        for (size_t group = block; group < block_end; group += K3_GROUP) {
            const size_t group_end = ref_min(group + K3_GROUP, n);
            float P = 0;
            for (size_t i = group; i < group_end; i++) {
                P = P + v[i];
            }
            S = S + P;
        }
        T = T + (double)S;
    }
    return (float)T;
}

void K3_REF(rms_norm)(float *y, const float *x, const float *gain, size_t n, float eps)
{
    const float m = K3_REF(dot)(x, x, n) / (float)n;
    const float r = 1.0F / sqrtf(m + eps);
    for (size_t i = 0; i < n; i++) {
        y[i] = (x[i] * r) * gain[i];
    }
}

void K3_REF(situ_glu)(float *y, const float *gate, const float *up, size_t n, float beta,
                      float linear_beta)
{
    for (size_t i = 0; i < n; i++) {
        const float g = gate[i];
        const float u = up[i];
        float a = beta * k3_inline_tanh_f(g / beta);
        a = a * k3_inline_sigmoid_f(g);
        const float c = linear_beta * k3_inline_tanh_f(u / linear_beta);
        y[i] = a * c;
    }
}

void K3_REF(gate)(float *y, const float *x, const float *gate, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        y[i] = x[i] * k3_inline_sigmoid_f(gate[i]);
    }
}

void K3_REF(add)(float *y, const float *a, const float *b, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        y[i] = a[i] + b[i];
    }
}

void K3_REF(mul)(float *y, const float *a, const float *b, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        y[i] = a[i] * b[i];
    }
}

void K3_REF(axpy)(float *y, float a, const float *x, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        y[i] = fmaf(a, x[i], y[i]);
    }
}

void K3_REF(softmax)(float *p, const float *s, size_t n)
{
    float m = s[0];
    for (size_t i = 1; i < n; i++) {
        m = s[i] > m ? s[i] : m;
    }
    for (size_t i = 0; i < n; i++) {
        p[i] = k3_inline_exp_f(s[i] - m);
    }
    const float Z = sum128(p, n);
    for (size_t i = 0; i < n; i++) {
        p[i] = p[i] / Z;
    }
}

void K3_REF(res_mix)(float *y, const float *const *sources, size_t source_count,
                     const float *folded, size_t n, float eps)
{
    k3_assert(source_count >= 1 && source_count <= K3_RES_SOURCES_MAX);
    if (source_count == 1) {
        memcpy(y, sources[0], n * sizeof *y);
        return;
    }
    float p[K3_RES_SOURCES_MAX] = {0};
    for (size_t s = 0; s < source_count; s++) {
        const float ss = K3_REF(dot)(sources[s], sources[s], n);
        const float d = K3_REF(dot)(folded, sources[s], n);
        p[s] = d / sqrtf(ss / (float)n + eps);
    }
    K3_REF(softmax)(p, p, source_count);
    memset(y, 0, n * sizeof *y);
    for (size_t s = 0; s < source_count; s++) {
        K3_REF(axpy)(y, p[s], sources[s], n);
    }
}

void K3_REF(conv_silu)(float *y, const float *taps, size_t tap_count, const float *history,
                       const float *x, size_t channels)
{
    for (size_t c = 0; c < channels; c++) {
        float acc = 0;
        for (size_t j = 0; j + 1 < tap_count; j++) {
            acc = fmaf(taps[j * channels + c], history[j * channels + c], acc);
        }
        acc = fmaf(taps[(tap_count - 1) * channels + c], x[c], acc);
        y[c] = acc * k3_inline_sigmoid_f(acc);
    }
}

void K3_REF(bf16_widen)(float *y, const uint8_t *bf16, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        y[i] = k3_bf16_widen(k3_le16_get(bf16 + 2 * i));
    }
}

int K3_REF(all_finite)(const float *x, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (!isfinite(x[i])) {
            return 0;
        }
    }
    return 1;
}
