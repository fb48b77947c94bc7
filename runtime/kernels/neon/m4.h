/* SPDX-License-Identifier: Apache-2.0 */
#ifndef K3_RUNTIME_KERNELS_NEON_M4_H
#define K3_RUNTIME_KERNELS_NEON_M4_H

#include "runtime/kernels/neon/simd.h"

#include "runtime/kernels/lanes/column.h"

/* MXFP4: nibbles become bf16 numbers, byte by byte through two tables of 16, and those become
 * floats as in a B16 line. */

struct m4_decoder {
    uint8x16_t regroup, low_bytes, high_bytes;
};

K3_INLINE struct m4_decoder m4_decoder_make(void)
{
    /* bytes 0 and 1 (columns 0-3) of four rows, then bytes 2 and 3 (columns 4-7) */
    static const uint8_t regroup[16] = {0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15};
    /* 0, .5, 1, 1.5, 2, 3, 4, 6 and their negatives as bf16 */
    static const uint8_t low[16] = {0, 0, 0x80, 0xc0, 0, 0x40, 0x80, 0xc0,
                                    0, 0, 0x80, 0xc0, 0, 0x40, 0x80, 0xc0};
    static const uint8_t high[16] = {0,    0x3f, 0x3f, 0x3f, 0x40, 0x40, 0x40, 0x40,
                                     0x80, 0xbf, 0xbf, 0xbf, 0xc0, 0xc0, 0xc0, 0xc0};
    return (struct m4_decoder){vld1q_u8(regroup), vld1q_u8(low), vld1q_u8(high)};
}

K3_INLINE vi columns_of(uint8x16_t zipped)
{
    return vreinterpretq_u32_u8(zipped);
}

/* w[i] = the weights of column i of four rows, whose nibbles are at `quarter_line`. */
K3_INLINE void m4_decode(vf w[8], const struct m4_decoder *d, const uint8_t *quarter_line)
{
    const uint8x16_t bytes = vqtbl1q_u8(vld1q_u8(quarter_line), d->regroup);
    const uint8x16_t even = vandq_u8(bytes, vdupq_n_u8(15));
    const uint8x16_t odd = vshrq_n_u8(bytes, 4);
    const uint8x16_t even_low = vqtbl1q_u8(d->low_bytes, even);
    const uint8x16_t even_high = vqtbl1q_u8(d->high_bytes, even);
    const uint8x16_t odd_low = vqtbl1q_u8(d->low_bytes, odd);
    const uint8x16_t odd_high = vqtbl1q_u8(d->high_bytes, odd);
    const vi columns_02 = columns_of(vzip1q_u8(even_low, even_high));
    const vi columns_46 = columns_of(vzip2q_u8(even_low, even_high));
    const vi columns_13 = columns_of(vzip1q_u8(odd_low, odd_high));
    const vi columns_57 = columns_of(vzip2q_u8(odd_low, odd_high));
    w[0] = vf_b16_even(columns_02);
    w[1] = vf_b16_even(columns_13);
    w[2] = vf_b16_odd(columns_02);
    w[3] = vf_b16_odd(columns_13);
    w[4] = vf_b16_even(columns_46);
    w[5] = vf_b16_even(columns_57);
    w[6] = vf_b16_odd(columns_46);
    w[7] = vf_b16_odd(columns_57);
}

/* 4 scale codes: 2^(code - 127), +0 for code 0. */
K3_INLINE vf m4_scale(const uint8_t *codes)
{
    uint32_t four;
    memcpy(&four, codes, sizeof four);
    const uint16x8_t wide = vmovl_u8(vreinterpret_u8_u32(vdup_n_u32(four)));
    return vreinterpretq_f32_u32(vshlq_n_u32(vmovl_u16(vget_low_u16(wide)), 23));
}

/* Shapes, (tokens, tiles): at most 24 accumulators of the 32 registers. */
#define B16_SHAPES(S) S(1, 2) S(2, 2) S(3, 1) S(4, 1) S(5, 1) S(6, 1)
#define M4_SHAPES(S)  S(1, 2)
#define M4_PANELS     1

#include "runtime/kernels/lanes/m4_group.h"

#endif
