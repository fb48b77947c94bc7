/* SPDX-License-Identifier: Apache-2.0 */
#ifndef K3_RUNTIME_KERNELS_LANES_CHAINS_H
#define K3_RUNTIME_KERNELS_LANES_CHAINS_H

#include "runtime/kernels/lanes/lanes.h"

/* Eight P chains at once, those of the groups of 256 consecutive terms. */

#define CHAINS 8U

enum terms {
    PRODUCTS, /* P = fma(a, b, P)          */
    SQUARES,  /* the same where b is a     */
    SINGLES   /* P = P + a; b is not used  */
};

#if defined(__AVX2__)

/* Rows to columns of eight vectors of eight. */
K3_INLINE void transpose8(__m256 r[8])
{
    __m256 pairs[8];
    __m256 fours[8];
    K3_UNROLL
    for (size_t i = 0; i < 8; i += 2) {
        pairs[i] = _mm256_unpacklo_ps(r[i], r[i + 1]);
        pairs[i + 1] = _mm256_unpackhi_ps(r[i], r[i + 1]);
    }
    K3_UNROLL
    for (size_t i = 0; i < 8; i += 4) {
        fours[i] = _mm256_shuffle_ps(pairs[i], pairs[i + 2], 0x44);
        fours[i + 1] = _mm256_shuffle_ps(pairs[i], pairs[i + 2], 0xee);
        fours[i + 2] = _mm256_shuffle_ps(pairs[i + 1], pairs[i + 3], 0x44);
        fours[i + 3] = _mm256_shuffle_ps(pairs[i + 1], pairs[i + 3], 0xee);
    }
    K3_UNROLL
    for (size_t i = 0; i < 4; i++) {
        r[i] = _mm256_permute2f128_ps(fours[i], fours[i + 4], 0x20);
        r[i + 4] = _mm256_permute2f128_ps(fours[i], fours[i + 4], 0x31);
    }
}

/* out[i] = terms i of the eight groups, one group per lane. */
K3_INLINE void load_groups(__m256 out[8], const float *a)
{
    K3_UNROLL
    for (size_t group = 0; group < CHAINS; group++) {
        out[group] = _mm256_loadu_ps(a + group * K3_GROUP);
    }
    transpose8(out);
}

K3_INLINE void chains(float P[CHAINS], const float *a, const float *b, enum terms terms)
{
    __m256 sums = _mm256_setzero_ps();
    for (size_t i = 0; i < K3_GROUP; i += 8) {
        __m256 x[8];
        __m256 y[8];
        load_groups(x, a + i);
        if (terms == PRODUCTS) {
            load_groups(y, b + i);
        }
        K3_UNROLL
        for (size_t term = 0; term < 8; term++) {
            sums = terms == PRODUCTS  ? _mm256_fmadd_ps(x[term], y[term], sums)
                   : terms == SQUARES ? _mm256_fmadd_ps(x[term], x[term], sums)
                                      : _mm256_add_ps(sums, x[term]);
        }
    }
    _mm256_storeu_ps(P, sums);
}

#else

K3_INLINE void chains(float P[CHAINS], const float *a, const float *b, enum terms terms)
{
    for (size_t c = 0; c < CHAINS; c++) {
        P[c] = 0.0F;
    }
    for (size_t i = 0; i < K3_GROUP; i++) {
        K3_UNROLL
        for (size_t c = 0; c < CHAINS; c++) {
            const size_t at = c * K3_GROUP + i;
            P[c] = terms == SINGLES ? P[c] + a[at] : fmaf(a[at], b[at], P[c]);
        }
    }
}

#endif

#endif
