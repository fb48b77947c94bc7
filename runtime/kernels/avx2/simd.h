/* SPDX-License-Identifier: Apache-2.0 */
#ifndef K3_RUNTIME_KERNELS_AVX2_SIMD_H
#define K3_RUNTIME_KERNELS_AVX2_SIMD_H

#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>

/* AVX2 and FMA under the names that lanes/lanes.h asks for. */

#define K3_TIER avx2
#define LANES   8

typedef __m256 vf;
typedef __m256d vd;
typedef __m256i vi;

static inline vf vf_zero(void)
{
    return _mm256_setzero_ps();
}
static inline vf vf_set1(float x)
{
    return _mm256_set1_ps(x);
}
static inline vf vf_load(const float *p)
{
    return _mm256_loadu_ps(p);
}
static inline void vf_store(float *p, vf x)
{
    _mm256_storeu_ps(p, x);
}
static inline __m256i first_lanes(size_t count)
{
    return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)count),
                              _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
static inline vf vf_load_part(const float *p, size_t count)
{
    return _mm256_maskload_ps(p, first_lanes(count));
}
static inline void vf_store_part(float *p, size_t count, vf x)
{
    _mm256_maskstore_ps(p, first_lanes(count), x);
}
static inline vf vf_fma(vf a, vf b, vf c)
{
    return _mm256_fmadd_ps(a, b, c);
}
static inline vf vf_add(vf a, vf b)
{
    return _mm256_add_ps(a, b);
}
static inline vf vf_sub(vf a, vf b)
{
    return _mm256_sub_ps(a, b);
}
static inline vf vf_mul(vf a, vf b)
{
    return _mm256_mul_ps(a, b);
}
static inline vf vf_div(vf a, vf b)
{
    return _mm256_div_ps(a, b);
}
/* The larger of each pair; either when one is NaN or both are zeros. */
static inline vf vf_max(vf a, vf b)
{
    return _mm256_max_ps(a, b);
}
static inline int vf_all_finite(vf x)
{
    const __m256i exponent = _mm256_set1_epi32(0x7f800000);
    const __m256i field = _mm256_and_si256(_mm256_castps_si256(x), exponent);
    return _mm256_movemask_epi8(_mm256_cmpeq_epi32(field, exponent)) == 0;
}

/* bf16 numbers in memory, and half a tile's line: the even columns' weights, the odd columns'. */
static inline vf vf_load_bf16(const uint8_t *p)
{
    const __m128i half = _mm_loadu_si128((const void *)p);
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(half), 16));
}
static inline vi vi_load(const uint8_t *p)
{
    return _mm256_load_si256((const void *)p);
}
static inline vf vf_b16_even(vi line)
{
    return _mm256_castsi256_ps(_mm256_slli_epi32(line, 16));
}
static inline vf vf_b16_odd(vi line)
{
    return _mm256_castsi256_ps(_mm256_and_si256(line, _mm256_set1_epi32((int)0xffff0000)));
}

static inline vd vd_zero(void)
{
    return _mm256_setzero_pd();
}
static inline vd vd_set1(double x)
{
    return _mm256_set1_pd(x);
}
static inline void vd_store(double *p, vd x)
{
    _mm256_storeu_pd(p, x);
}
static inline vd vd_low(vf x)
{
    return _mm256_cvtps_pd(_mm256_castps256_ps128(x));
}
static inline vd vd_high(vf x)
{
    return _mm256_cvtps_pd(_mm256_extractf128_ps(x, 1));
}
static inline vf vf_narrow(vd low, vd high)
{
    return _mm256_insertf128_ps(_mm256_castps128_ps256(_mm256_cvtpd_ps(low)), _mm256_cvtpd_ps(high),
                                1);
}
static inline vd vd_fma(vd a, vd b, vd c)
{
    return _mm256_fmadd_pd(a, b, c);
}
static inline vd vd_nfma(vd a, vd b, vd c) /* fma(-a, b, c) */
{
    return _mm256_fnmadd_pd(a, b, c);
}
static inline vd vd_add(vd a, vd b)
{
    return _mm256_add_pd(a, b);
}
static inline vd vd_sub(vd a, vd b)
{
    return _mm256_sub_pd(a, b);
}
static inline vd vd_mul(vd a, vd b)
{
    return _mm256_mul_pd(a, b);
}
static inline vd vd_div(vd a, vd b)
{
    return _mm256_div_pd(a, b);
}
static inline vd vd_abs(vd x)
{
    return _mm256_andnot_pd(_mm256_set1_pd(-0.0), x);
}
static inline vd vd_neg(vd x)
{
    return _mm256_xor_pd(x, _mm256_set1_pd(-0.0));
}
static inline vd vd_copysign(vd magnitude, vd sign)
{
    const vd bit = _mm256_set1_pd(-0.0);
    return _mm256_or_pd(_mm256_andnot_pd(bit, magnitude), _mm256_and_pd(bit, sign));
}
/* x within [low, high]; NaN stays (max and min give their second operand then). */
static inline vd vd_clamp(vd x, double low, double high)
{
    return _mm256_min_pd(_mm256_set1_pd(high), _mm256_max_pd(_mm256_set1_pd(low), x));
}
/* a < b ? yes : no, lane by lane; >= likewise. */
static inline vd vd_select_lt(vd a, vd b, vd yes, vd no)
{
    return _mm256_blendv_pd(no, yes, _mm256_cmp_pd(a, b, _CMP_LT_OQ));
}
static inline vd vd_select_ge(vd a, vd b, vd yes, vd no)
{
    return _mm256_blendv_pd(no, yes, _mm256_cmp_pd(a, b, _CMP_GE_OQ));
}
/* 2^n, n in the low bits of the number that was shifted by K3_RINT. */
static inline vd vd_power_of_two(vd shifted)
{
    const __m256i n = _mm256_add_epi64(_mm256_castpd_si256(shifted), _mm256_set1_epi64x(1023));
    return _mm256_castsi256_pd(_mm256_slli_epi64(n, 52));
}

#endif
