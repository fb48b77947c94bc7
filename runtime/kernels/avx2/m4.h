/* SPDX-License-Identifier: Apache-2.0 */
#ifndef K3_RUNTIME_KERNELS_AVX2_M4_H
#define K3_RUNTIME_KERNELS_AVX2_M4_H

#include "runtime/kernels/avx2/simd.h"

#include "runtime/kernels/lanes/column.h"

/* MXFP4: there is no permute of floats with 16 entries, so nibbles become bf16 numbers, byte by
 * byte through two tables of 16, and those become floats as in a B16 line. */

struct m4_decoder {
    __m256i regroup, low_bytes, high_bytes, nibble;
};

K3_INLINE struct m4_decoder m4_decoder_make(void)
{
    return (struct m4_decoder){
        /* bytes 0 and 1 (columns 0-3) of four rows, then bytes 2 and 3 (columns 4-7) */
        .regroup = _mm256_broadcastsi128_si256(
            _mm_setr_epi8(0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15)),
        /* 0, .5, 1, 1.5, 2, 3, 4, 6 and their negatives as bf16 */
        .low_bytes = _mm256_broadcastsi128_si256(
            _mm_setr_epi8(0, 0, (char)0x80, (char)0xc0, 0, 0x40, (char)0x80, (char)0xc0, 0, 0,
                          (char)0x80, (char)0xc0, 0, 0x40, (char)0x80, (char)0xc0)),
        .high_bytes = _mm256_broadcastsi128_si256(
            _mm_setr_epi8(0, 0x3f, 0x3f, 0x3f, 0x40, 0x40, 0x40, 0x40, (char)0x80, (char)0xbf,
                          (char)0xbf, (char)0xbf, (char)0xc0, (char)0xc0, (char)0xc0, (char)0xc0)),
        .nibble = _mm256_set1_epi8(15),
    };
}

/* w[i] = the weights of column i of eight rows, whose nibbles are at `half_line`. */
K3_INLINE void m4_decode(vf w[8], const struct m4_decoder *d, const uint8_t *half_line)
{
    const __m256i bytes = _mm256_shuffle_epi8(vi_load(half_line), d->regroup);
    const __m256i even = _mm256_and_si256(bytes, d->nibble);
    const __m256i odd = _mm256_and_si256(_mm256_srli_epi16(bytes, 4), d->nibble);
    const __m256i even_low = _mm256_shuffle_epi8(d->low_bytes, even);
    const __m256i even_high = _mm256_shuffle_epi8(d->high_bytes, even);
    const __m256i odd_low = _mm256_shuffle_epi8(d->low_bytes, odd);
    const __m256i odd_high = _mm256_shuffle_epi8(d->high_bytes, odd);
    const __m256i columns_02 = _mm256_unpacklo_epi8(even_low, even_high);
    const __m256i columns_46 = _mm256_unpackhi_epi8(even_low, even_high);
    const __m256i columns_13 = _mm256_unpacklo_epi8(odd_low, odd_high);
    const __m256i columns_57 = _mm256_unpackhi_epi8(odd_low, odd_high);
    w[0] = vf_b16_even(columns_02);
    w[1] = vf_b16_even(columns_13);
    w[2] = vf_b16_odd(columns_02);
    w[3] = vf_b16_odd(columns_13);
    w[4] = vf_b16_even(columns_46);
    w[5] = vf_b16_even(columns_57);
    w[6] = vf_b16_odd(columns_46);
    w[7] = vf_b16_odd(columns_57);
}

/* 8 scale codes: 2^(code - 127), +0 for code 0. */
K3_INLINE vf m4_scale(const uint8_t *codes)
{
    const __m128i bytes = _mm_loadl_epi64((const void *)codes);
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu8_epi32(bytes), 23));
}

/* Shapes, (tokens, tiles): at most 12 accumulators of the 16 registers. MXFP4 batches are decoded
 * to panels (lanes/m4_panel.h), for which the decoder and 12 accumulators would not leave room. */
#define B16_SHAPES(S) S(1, 4) S(2, 2) S(4, 1) S(5, 1)
#define M4_SHAPES(S)  S(1, 2)
#define M4_PANELS     1

#include "runtime/kernels/lanes/m4_group.h"

#endif
