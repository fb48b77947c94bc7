/* SPDX-License-Identifier: Apache-2.0 */
#ifndef K3_RUNTIME_KERNELS_AVX512_SIMD_H
#define K3_RUNTIME_KERNELS_AVX512_SIMD_H

#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>

/* AVX-512 (F, BW, DQ, VL) under the names that lanes/lanes.h asks for. */

#define K3_TIER avx512
#define LANES   16

typedef __m512 vf;
typedef __m512d vd;
typedef __m512i vi;

static inline vf vf_zero(void)
{
    return _mm512_setzero_ps();
}
static inline vf vf_set1(float x)
{
    return _mm512_set1_ps(x);
}
static inline vf vf_load(const float *p)
{
    return _mm512_loadu_ps(p);
}
static inline void vf_store(float *p, vf x)
{
    _mm512_storeu_ps(p, x);
}
static inline __mmask16 first_lanes(size_t count)
{
    return (__mmask16)((1U << count) - 1U);
}
static inline vf vf_load_part(const float *p, size_t count)
{
    return _mm512_maskz_loadu_ps(first_lanes(count), p);
}
static inline void vf_store_part(float *p, size_t count, vf x)
{
    _mm512_mask_storeu_ps(p, first_lanes(count), x);
}
static inline vf vf_fma(vf a, vf b, vf c)
{
    return _mm512_fmadd_ps(a, b, c);
}
static inline vf vf_add(vf a, vf b)
{
    return _mm512_add_ps(a, b);
}
static inline vf vf_sub(vf a, vf b)
{
    return _mm512_sub_ps(a, b);
}
static inline vf vf_mul(vf a, vf b)
{
    return _mm512_mul_ps(a, b);
}
static inline vf vf_div(vf a, vf b)
{
    return _mm512_div_ps(a, b);
}
/* The larger of each pair; either when one is NaN or both are zeros. */
static inline vf vf_max(vf a, vf b)
{
    return _mm512_max_ps(a, b);
}
static inline int vf_all_finite(vf x)
{
    const __m512i exponent = _mm512_set1_epi32(0x7f800000);
    return _mm512_cmpeq_epi32_mask(_mm512_and_si512(_mm512_castps_si512(x), exponent), exponent) ==
           0;
}

/* bf16 numbers in memory, and a tile's line: the even columns' weights, the odd columns'. */
static inline vf vf_load_bf16(const uint8_t *p)
{
    const __m256i half = _mm256_loadu_si256((const void *)p);
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(half), 16));
}
static inline vi vi_load(const uint8_t *p)
{
    return _mm512_load_si512((const void *)p);
}
static inline vf vf_b16_even(vi line)
{
    return _mm512_castsi512_ps(_mm512_slli_epi32(line, 16));
}
static inline vf vf_b16_odd(vi line)
{
    return _mm512_castsi512_ps(_mm512_and_si512(line, _mm512_set1_epi32((int)0xffff0000)));
}

static inline vd vd_zero(void)
{
    return _mm512_setzero_pd();
}
static inline vd vd_set1(double x)
{
    return _mm512_set1_pd(x);
}
static inline void vd_store(double *p, vd x)
{
    _mm512_storeu_pd(p, x);
}
static inline vd vd_low(vf x)
{
    return _mm512_cvtps_pd(_mm512_castps512_ps256(x));
}
static inline vd vd_high(vf x)
{
    return _mm512_cvtps_pd(_mm512_extractf32x8_ps(x, 1));
}
static inline vf vf_narrow(vd low, vd high)
{
    return _mm512_insertf32x8(_mm512_castps256_ps512(_mm512_cvtpd_ps(low)), _mm512_cvtpd_ps(high),
                              1);
}
static inline vd vd_fma(vd a, vd b, vd c)
{
    return _mm512_fmadd_pd(a, b, c);
}
static inline vd vd_nfma(vd a, vd b, vd c) /* fma(-a, b, c) */
{
    return _mm512_fnmadd_pd(a, b, c);
}
static inline vd vd_add(vd a, vd b)
{
    return _mm512_add_pd(a, b);
}
static inline vd vd_sub(vd a, vd b)
{
    return _mm512_sub_pd(a, b);
}
static inline vd vd_mul(vd a, vd b)
{
    return _mm512_mul_pd(a, b);
}
static inline vd vd_div(vd a, vd b)
{
    return _mm512_div_pd(a, b);
}
static inline vd vd_abs(vd x)
{
    return _mm512_abs_pd(x);
}
static inline vd vd_neg(vd x)
{
    return _mm512_xor_pd(x, _mm512_set1_pd(-0.0));
}
static inline vd vd_copysign(vd magnitude, vd sign)
{
    const vd bit = _mm512_set1_pd(-0.0);
    return _mm512_or_pd(_mm512_andnot_pd(bit, magnitude), _mm512_and_pd(bit, sign));
}
/* x within [low, high]; NaN stays (max and min give their second operand then). */
static inline vd vd_clamp(vd x, double low, double high)
{
    return _mm512_min_pd(_mm512_set1_pd(high), _mm512_max_pd(_mm512_set1_pd(low), x));
}
/* a < b ? yes : no, lane by lane; >= likewise. */
static inline vd vd_select_lt(vd a, vd b, vd yes, vd no)
{
    return _mm512_mask_blend_pd(_mm512_cmp_pd_mask(a, b, _CMP_LT_OQ), no, yes);
}
static inline vd vd_select_ge(vd a, vd b, vd yes, vd no)
{
    return _mm512_mask_blend_pd(_mm512_cmp_pd_mask(a, b, _CMP_GE_OQ), no, yes);
}
/* 2^n, n in the low bits of the number that was shifted by K3_RINT. */
static inline vd vd_power_of_two(vd shifted)
{
    const __m512i n = _mm512_add_epi64(_mm512_castpd_si512(shifted), _mm512_set1_epi64(1023));
    return _mm512_castsi512_pd(_mm512_slli_epi64(n, 52));
}

#endif
