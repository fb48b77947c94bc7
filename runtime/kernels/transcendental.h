/* SPDX-License-Identifier: Apache-2.0 */
#ifndef K3_RUNTIME_KERNELS_TRANSCENDENTAL_H
#define K3_RUNTIME_KERNELS_TRANSCENDENTAL_H

#include <math.h>
#include <stdint.h>
#include <string.h>

/* arithmetic.md 3, for one number. static inline, so that every translation unit has its own copy:
 * a copy compiled for AVX must never be the one that another processor's code is linked to.
 *
 * rint() is done by adding and taking away 1.5 * 2^52, which rounds to an integer, ties to even,
 * and leaves that integer in the low bits of the sum; |x| is far below 2^51 here. */

#define K3_EXP_LOW   (-708.0)
#define K3_EXP_HIGH  709.0
#define K3_LOG2_E    0x1.71547652b82fep+0
#define K3_LN2_HIGH  0x1.62e42fee00000p-1
#define K3_LN2_LOW   0x1.a39ef35793c76p-33
#define K3_RINT      0x1.8p52
#define K3_TANH_TINY 0x1p-10 /* below: three terms of the series */

/* 1/k!, k = 0..13. The factorials are exact, so each quotient is 1/k! rounded once. */
#define K3_EXP_TERMS 14
#define K3_EXP_COEFFICIENTS                                                                        \
    {                                                                                              \
        1.0, 1.0, 1.0 / 2.0, 1.0 / 6.0, 1.0 / 24.0, 1.0 / 120.0, 1.0 / 720.0, 1.0 / 5040.0,        \
            1.0 / 40320.0, 1.0 / 362880.0, 1.0 / 3628800.0, 1.0 / 39916800.0, 1.0 / 479001600.0,   \
            1.0 / 6227020800.0                                                                     \
    }

static inline double k3_inline_exp_d(double x)
{
    static const double inverse_factorial[K3_EXP_TERMS] = K3_EXP_COEFFICIENTS;

    x = x < K3_EXP_LOW ? K3_EXP_LOW : x > K3_EXP_HIGH ? K3_EXP_HIGH : x;
    const double shifted = x * K3_LOG2_E + K3_RINT;
    const double n = shifted - K3_RINT;
    double r = fma(-n, K3_LN2_HIGH, x);
    r = fma(-n, K3_LN2_LOW, r);
    double p = inverse_factorial[K3_EXP_TERMS - 1];
    for (int k = K3_EXP_TERMS - 2; k >= 0; k--) {
        p = fma(p, r, inverse_factorial[k]);
    }
    uint64_t bits; /* low bits: n; a NaN gives some power, and NaN * that is NaN */
    memcpy(&bits, &shifted, sizeof bits);
    bits = (bits + 1023) << 52;
    double power;
    memcpy(&power, &bits, sizeof power);
    return p * power;
}

static inline double k3_inline_sigmoid_d(double x)
{
    const double e = k3_inline_exp_d(-fabs(x));
    return (x >= 0 ? 1.0 : e) / (1.0 + e);
}

static inline float k3_inline_exp_f(float x)
{
    return (float)k3_inline_exp_d((double)x);
}

static inline float k3_inline_sigmoid_f(float x)
{
    return (float)k3_inline_sigmoid_d((double)x);
}

static inline float k3_inline_tanh_f(float x)
{
    const double d = (double)x;
    const double a = fabs(d);
    const double q = d * d;
    const double series = fma(d, fma(q, 2.0 / 15.0, -1.0 / 3.0) * q, d);
    const double e = k3_inline_exp_d(-2.0 * a);
    const double quotient = (1.0 - e) / (1.0 + e);
    return (float)copysign(a < K3_TANH_TINY ? series : quotient, d); /* series(-0) is +0 */
}

#endif
