/* SPDX-License-Identifier: Apache-2.0 */
#ifndef K3_RUNTIME_KERNELS_AVX512_M4_H
#define K3_RUNTIME_KERNELS_AVX512_M4_H

#include "runtime/kernels/avx512/simd.h"

#include "runtime/kernels/lanes/column.h"

/* MXFP4, in two ways. Batches: a float permute reads the low four bits of each index and nothing
 * else, so a shift brings the next nibble into place and no mask is needed. One row, where decoding
 * is what costs: a permute of words reads five bits, and from a table that repeats after 16 it
 * makes two bf16 numbers at once, columns i and i + 4. */

struct m4_decoder {
    vf floats;
    vi words;
};

K3_INLINE struct m4_decoder m4_decoder_make(void)
{
    /* 0, .5, 1, 1.5, 2, 3, 4, 6 and their negatives as bf16, twice */
    static const uint16_t words[32] = {
        0x0000, 0x3f00, 0x3f80, 0x3fc0, 0x4000, 0x4040, 0x4080, 0x40c0, 0x8000, 0xbf00, 0xbf80,
        0xbfc0, 0xc000, 0xc040, 0xc080, 0xc0c0, 0x0000, 0x3f00, 0x3f80, 0x3fc0, 0x4000, 0x4040,
        0x4080, 0x40c0, 0x8000, 0xbf00, 0xbf80, 0xbfc0, 0xc000, 0xc040, 0xc080, 0xc0c0};
    return (struct m4_decoder){_mm512_setr_ps(0.0F, 0.5F, 1.0F, 1.5F, 2.0F, 3.0F, 4.0F, 6.0F, -0.0F,
                                              -0.5F, -1.0F, -1.5F, -2.0F, -3.0F, -4.0F, -6.0F),
                               _mm512_loadu_si512((const void *)words)};
}

/* 16 scale codes: 2^(code - 127), +0 for code 0. */
K3_INLINE vf m4_scale(const uint8_t *codes)
{
    const __m128i bytes = _mm_load_si128((const void *)codes);
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu8_epi32(bytes), 23));
}

/* One line of each tile, one token. */
K3_INLINE void m4_line_one(vf *P, const struct m4_decoder *decoder, const vi *nibbles,
                           const float *x, size_t wide)
{
    vi pairs[4][4]; /* [tile][i]: columns i and i + 4 */
    K3_UNROLL
    for (size_t i = 0; i < 4; i++) {
        const vf broadcast = vf_set1(x[i]);
        K3_UNROLL
        for (size_t v = 0; v < wide; v++) {
            const vi index = _mm512_srli_epi32(nibbles[v], (unsigned)(4 * i));
            pairs[v][i] = _mm512_permutexvar_epi16(index, decoder->words);
            P[v] = vf_fma(vf_b16_even(pairs[v][i]), broadcast, P[v]);
        }
    }
    K3_UNROLL
    for (size_t i = 0; i < 4; i++) {
        const vf broadcast = vf_set1(x[4 + i]);
        K3_UNROLL
        for (size_t v = 0; v < wide; v++) {
            P[v] = vf_fma(vf_b16_odd(pairs[v][i]), broadcast, P[v]);
        }
    }
}

/* One line of each tile, T tokens. The loop over columns stays a loop, and the lines are loaded and
 * shifted anew for each: otherwise 24 accumulators would no longer fit the registers. */
K3_INLINE void m4_line_batch(vf *P, const struct m4_decoder *decoder, const uint8_t *line,
                             size_t tile_stride, const float *x, size_t x_stride, size_t wide,
                             size_t T)
{
    vi shift = _mm512_setzero_si512();
    for (size_t i = 0; i < 8; i++) {
        line = load_again(line);
        vf w[4];
        K3_UNROLL
        for (size_t v = 0; v < wide; v++) {
            const vi index = _mm512_srlv_epi32(vi_load(line + v * tile_stride), shift);
            w[v] = _mm512_permutexvar_ps(index, decoder->floats);
        }
        multiply_column(P, w, wide, x + i, x_stride, T);
        shift = _mm512_add_epi32(shift, _mm512_set1_epi32(4));
    }
}

/* P over one group of 32 columns: `lines` are the first tile's four lines of the group. */
K3_INLINE void m4_group(vf *P, const struct m4_decoder *decoder, const uint8_t *lines,
                        size_t tile_stride, const float *x, size_t x_stride, size_t wide, size_t T)
{
    for (size_t q = 0; q < 4; q++) {
        vi nibbles[4];
        K3_UNROLL
        for (size_t v = 0; v < wide; v++) {
            const uint8_t *line = lines + v * tile_stride + 64 * q;
            __builtin_prefetch(line + 1088);
            nibbles[v] = vi_load(line);
        }
        if (T == 1) {
            m4_line_one(P, decoder, nibbles, x + 8 * q, wide);
        } else {
            m4_line_batch(P, decoder, lines + 64 * q, tile_stride, x + 8 * q, x_stride, wide, T);
        }
    }
}

/* Shapes, (tokens, tiles): up to 24 accumulators of the 32 registers. */
#define B16_SHAPES(S) S(1, 4) S(2, 4) S(3, 4) S(4, 4) S(5, 4) S(6, 4)
#define M4_SHAPES(S)  S(1, 4) S(2, 4) S(3, 4) S(4, 4) S(5, 4) S(6, 4)
#define M4_PANELS     0

#endif
