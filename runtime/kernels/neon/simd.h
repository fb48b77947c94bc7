/* SPDX-License-Identifier: Apache-2.0 */
#ifndef K3_RUNTIME_KERNELS_NEON_SIMD_H
#define K3_RUNTIME_KERNELS_NEON_SIMD_H

#include <arm_neon.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Advanced SIMD of AArch64 under the names that lanes/lanes.h asks for. */

#define K3_TIER neon
#define LANES   4

typedef float32x4_t vf;
typedef float64x2_t vd;
typedef uint32x4_t vi;

static inline vf vf_zero(void)
{
    return vdupq_n_f32(0.0F);
}
static inline vf vf_set1(float x)
{
    return vdupq_n_f32(x);
}
static inline vf vf_load(const float *p)
{
    return vld1q_f32(p);
}
static inline void vf_store(float *p, vf x)
{
    vst1q_f32(p, x);
}
static inline vf vf_load_part(const float *p, size_t count)
{
    float lanes[LANES] = {0};
    memcpy(lanes, p, count * sizeof *p);
    return vld1q_f32(lanes);
}
static inline void vf_store_part(float *p, size_t count, vf x)
{
    float lanes[LANES];
    vst1q_f32(lanes, x);
    memcpy(p, lanes, count * sizeof *p);
}
static inline vf vf_fma(vf a, vf b, vf c)
{
    return vfmaq_f32(c, a, b);
}
static inline vf vf_add(vf a, vf b)
{
    return vaddq_f32(a, b);
}
static inline vf vf_sub(vf a, vf b)
{
    return vsubq_f32(a, b);
}
static inline vf vf_mul(vf a, vf b)
{
    return vmulq_f32(a, b);
}
static inline vf vf_div(vf a, vf b)
{
    return vdivq_f32(a, b);
}
/* The larger of each pair; NaN when one is NaN, either zero when both are zeros. */
static inline vf vf_max(vf a, vf b)
{
    return vmaxq_f32(a, b);
}
static inline int vf_all_finite(vf x)
{
    const vi exponent = vdupq_n_u32(0x7f800000);
    return vmaxvq_u32(vceqq_u32(vandq_u32(vreinterpretq_u32_f32(x), exponent), exponent)) == 0;
}

/* bf16 numbers in memory, and a quarter of a tile's line: even columns' weights, odd columns'. */
static inline vf vf_load_bf16(const uint8_t *p)
{
    const uint16x4_t half = vreinterpret_u16_u8(vld1_u8(p));
    return vreinterpretq_f32_u32(vshll_n_u16(half, 16));
}
static inline vi vi_load(const uint8_t *p)
{
    return vreinterpretq_u32_u8(vld1q_u8(p));
}
static inline vf vf_b16_even(vi line)
{
    return vreinterpretq_f32_u32(vshlq_n_u32(line, 16));
}
static inline vf vf_b16_odd(vi line)
{
    return vreinterpretq_f32_u32(vandq_u32(line, vdupq_n_u32(0xffff0000)));
}

static inline vd vd_zero(void)
{
    return vdupq_n_f64(0.0);
}
static inline vd vd_set1(double x)
{
    return vdupq_n_f64(x);
}
static inline void vd_store(double *p, vd x)
{
    vst1q_f64(p, x);
}
static inline vd vd_low(vf x)
{
    return vcvt_f64_f32(vget_low_f32(x));
}
static inline vd vd_high(vf x)
{
    return vcvt_high_f64_f32(x);
}
static inline vf vf_narrow(vd low, vd high)
{
    return vcvt_high_f32_f64(vcvt_f32_f64(low), high);
}
static inline vd vd_fma(vd a, vd b, vd c)
{
    return vfmaq_f64(c, a, b);
}
static inline vd vd_nfma(vd a, vd b, vd c) /* fma(-a, b, c) */
{
    return vfmsq_f64(c, a, b);
}
static inline vd vd_add(vd a, vd b)
{
    return vaddq_f64(a, b);
}
static inline vd vd_sub(vd a, vd b)
{
    return vsubq_f64(a, b);
}
static inline vd vd_mul(vd a, vd b)
{
    return vmulq_f64(a, b);
}
static inline vd vd_div(vd a, vd b)
{
    return vdivq_f64(a, b);
}
static inline vd vd_abs(vd x)
{
    return vabsq_f64(x);
}
static inline vd vd_neg(vd x)
{
    return vnegq_f64(x);
}
static inline vd vd_copysign(vd magnitude, vd sign)
{
    return vbslq_f64(vdupq_n_u64(UINT64_C(1) << 63), sign, magnitude);
}
/* x within [low, high]; NaN stays. */
static inline vd vd_clamp(vd x, double low, double high)
{
    return vminq_f64(vmaxq_f64(x, vdupq_n_f64(low)), vdupq_n_f64(high));
}
/* a < b ? yes : no, lane by lane; >= likewise. */
static inline vd vd_select_lt(vd a, vd b, vd yes, vd no)
{
    return vbslq_f64(vcltq_f64(a, b), yes, no);
}
static inline vd vd_select_ge(vd a, vd b, vd yes, vd no)
{
    return vbslq_f64(vcgeq_f64(a, b), yes, no);
}
/* 2^n, n in the low bits of the number that was shifted by K3_RINT. */
static inline vd vd_power_of_two(vd shifted)
{
    const uint64x2_t n = vaddq_u64(vreinterpretq_u64_f64(shifted), vdupq_n_u64(1023));
    return vreinterpretq_f64_u64(vshlq_n_u64(n, 52));
}

#endif
