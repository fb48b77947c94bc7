/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/runtime/kernels/plain.h"

#include <math.h>
#include <stdlib.h>

float plain_d128(const float *a, size_t a_stride, const float *b, size_t b_stride,
                 const float *scale, size_t n)
{
    double T = 0.0;
    float S = 0.0F;
    float P = 0.0F;
    for (size_t i = 0; i < n; i++) {
        P = fmaf(a[i * a_stride], b[i * b_stride], P);
        if (i % 32 == 31 || i == n - 1) {
            S = scale ? fmaf(P, scale[i / 32], S) : S + P;
            P = 0.0F;
        }
        if (i % 128 == 127 || i == n - 1) {
            T = T + (double)S;
            S = 0.0F;
        }
    }
    return (float)T;
}

float plain_sum128(const float *v, size_t n)
{
    double T = 0.0;
    float S = 0.0F;
    float P = 0.0F;
    for (size_t i = 0; i < n; i++) {
        P = P + v[i];
        if (i % 32 == 31 || i == n - 1) {
            S = S + P;
            P = 0.0F;
        }
        if (i % 128 == 127 || i == n - 1) {
            T = T + (double)S;
            S = 0.0F;
        }
    }
    return (float)T;
}

double plain_exp_d(double x)
{
    if (isnan(x)) {
        return x;
    }
    x = fmin(fmax(x, -708.0), 709.0);
    const double n = rint(x * 1.4426950408889634);
    double r = fma(-n, 0x1.62e42fee00000p-1, x);
    r = fma(-n, 0x1.a39ef35793c76p-33, r);
    double p = 0.0;
    for (int k = 13; k >= 0; k--) {
        double factorial = 1.0;
        for (int i = 2; i <= k; i++) {
            factorial *= i;
        }
        p = k == 13 ? 1.0 / factorial : fma(p, r, 1.0 / factorial);
    }
    return ldexp(p, (int)n);
}

double plain_sigmoid_d(double x)
{
    const double e = plain_exp_d(-fabs(x));
    return (x >= 0.0 ? 1.0 : e) / (1.0 + e);
}

float plain_exp(float x)
{
    if (x > 88.8F) {
        return INFINITY;
    }
    return x < -104.0F ? 0.0F : (float)plain_exp_d((double)x);
}

float plain_sigmoid(float x)
{
    return (float)plain_sigmoid_d((double)x);
}

float plain_tanh(float x)
{
    const double d = (double)x;
    const double a = fabs(d);
    if (a < 0x1p-10) {
        const double q = d * d;
        double t = fma(q, 2.0 / 15.0, -1.0 / 3.0);
        t = t * q;
        return (float)copysign(fma(d, t, d), d);
    }
    const double e = plain_exp_d(-2.0 * a);
    const double t = (1.0 - e) / (1.0 + e);
    return (float)copysign(t, d);
}

void plain_rms_norm(float *y, const float *x, const float *gain, size_t n, float eps)
{
    const float ss = plain_d128(x, 1, x, 1, NULL, n);
    const float m = ss / (float)n;
    const float r = 1.0F / sqrtf(m + eps);
    for (size_t i = 0; i < n; i++) {
        const float scaled = x[i] * r;
        y[i] = scaled * gain[i];
    }
}

float plain_situ_glu(float gate, float up, float beta, float linear_beta)
{
    float a = beta * plain_tanh(gate / beta);
    a = a * plain_sigmoid(gate);
    const float c = linear_beta * plain_tanh(up / linear_beta);
    return a * c;
}

void plain_res_mix(float *y, const float *const *sources, size_t source_count, const float *folded,
                   size_t n, float eps)
{
    float *p = calloc(source_count, sizeof *p);
    for (size_t s = 0; s < source_count; s++) {
        const float ss = plain_d128(sources[s], 1, sources[s], 1, NULL, n);
        const float d = plain_d128(folded, 1, sources[s], 1, NULL, n);
        p[s] = d / sqrtf(ss / (float)n + eps);
    }
    plain_softmax(p, p, source_count);
    for (size_t i = 0; i < n; i++) {
        float acc = 0.0F;
        for (size_t s = 0; s < source_count; s++) {
            acc = fmaf(p[s], sources[s][i], acc);
        }
        y[i] = source_count == 1 ? sources[0][i] : acc;
    }
    free(p);
}

void plain_conv_silu(float *y, const float *taps, size_t tap_count, const float *history,
                     const float *x, size_t channels)
{
    for (size_t c = 0; c < channels; c++) {
        float acc = 0.0F;
        for (size_t j = 0; j < tap_count; j++) {
            const float in = j == tap_count - 1 ? x[c] : history[j * channels + c];
            acc = fmaf(taps[j * channels + c], in, acc);
        }
        y[c] = acc * plain_sigmoid(acc);
    }
}

void plain_kda_normalise(float *q, float *k, size_t n)
{
    const float qs = (float)(1.0 / sqrt((double)n));
    const float nq = sqrtf(plain_d128(q, 1, q, 1, NULL, n) + 1e-6F);
    const float nk = sqrtf(plain_d128(k, 1, k, 1, NULL, n) + 1e-6F);
    for (size_t i = 0; i < n; i++) {
        const float unit = q[i] / nq;
        q[i] = unit * qs;
        k[i] = k[i] / nk;
    }
}

void plain_kda_decay(float *alpha, const float *z, const float *dt_bias, size_t n, float exp_a,
                     float lower_bound)
{
    for (size_t i = 0; i < n; i++) {
        float t = z[i] + dt_bias[i];
        t = exp_a * t;
        const float g = lower_bound * plain_sigmoid(t);
        alpha[i] = plain_exp(g);
    }
}

void plain_kda_step(float *o, float *S, const float *q, const float *k, const float *v,
                    const float *alpha, float beta, size_t n)
{
    for (size_t j = 0; j < n; j++) {
        float *column = S + j;
        for (size_t i = 0; i < n; i++) {
            column[i * n] = column[i * n] * alpha[i];
        }
        const float r = plain_d128(k, 1, column, n, NULL, n);
        const float rest = v[j] - r;
        const float u = beta * rest;
        for (size_t i = 0; i < n; i++) {
            column[i * n] = fmaf(k[i], u, column[i * n]);
        }
        o[j] = plain_d128(q, 1, column, n, NULL, n);
    }
}

void plain_softmax(float *p, const float *s, size_t n)
{
    float m = s[0];
    for (size_t i = 0; i < n; i++) {
        m = fmaxf(m, s[i]);
    }
    for (size_t i = 0; i < n; i++) {
        p[i] = plain_exp(s[i] - m);
    }
    const float Z = plain_sum128(p, n);
    for (size_t i = 0; i < n; i++) {
        p[i] = p[i] / Z;
    }
}

double plain_router(const float *w, const float *x, size_t n)
{
    double a[4] = {0.0, 0.0, 0.0, 0.0};
    for (size_t i = 0; i < n; i++) {
        a[i % 4] = fma((double)w[i], (double)x[i], a[i % 4]);
    }
    return (a[0] + a[1]) + (a[2] + a[3]);
}
