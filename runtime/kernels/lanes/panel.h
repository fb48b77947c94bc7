/* SPDX-License-Identifier: Apache-2.0 */
#ifndef K3_RUNTIME_KERNELS_LANES_PANEL_H
#define K3_RUNTIME_KERNELS_LANES_PANEL_H

#include <string.h>

#include "runtime/kernels/lanes/column.h"

/* A superblock whose weights are floats already: line i holds the weights of term i, one lane per
 * output, w_stride floats after line i - 1. `terms` <= 128 is where the sum ends. `scales`, where
 * not NULL, holds one line per group of 32 (MXFP4), else the groups are added as they are. */
K3_INLINE void panel_superblock(vf *S, const float *w, size_t w_stride, const float *scales,
                                const float *x, size_t terms, size_t vectors, size_t T)
{
    for (size_t group = 0; group < terms; group += K3_GROUP) {
        vf P[32];
        K3_UNROLL
        for (size_t a = 0; a < vectors * T; a++) {
            P[a] = vf_zero();
        }
        const size_t end = min_size(group + K3_GROUP, terms);
        for (size_t i = group; i < end; i++) {
            vf weights[8];
            K3_UNROLL
            for (size_t v = 0; v < vectors; v++) {
                weights[v] = vf_load(w + i * w_stride + v * LANES);
            }
            multiply_column(P, weights, vectors, x + i, K3_SUPERBLOCK, T);
        }
        K3_UNROLL
        for (size_t a = 0; a < vectors * T; a++) {
            S[a] = scales
                       ? vf_fma(P[a],
                                vf_load(scales + group / K3_GROUP * w_stride + a % vectors * LANES),
                                S[a])
                       : vf_add(S[a], P[a]);
        }
    }
}

/* ... folded into totals, [T][vectors][low, high]. */
K3_INLINE void panel_add(vd *totals, const float *w, size_t w_stride, const float *scales,
                         const float *x, size_t terms, size_t vectors, size_t T)
{
    vf S_array[32];
    vf *S = in_memory(S_array);
    K3_UNROLL
    for (size_t a = 0; a < vectors * T; a++) {
        S[a] = vf_zero();
    }
    panel_superblock(S, w, w_stride, scales, x, terms, vectors, T);
    totals_add(totals, S, vectors * T);
}

/* `terms` of rows [0, count) side by side, 128 floats apart; the rest, up to `rows` rows of 128, 0.
 */
K3_INLINE void pack_rows(float *panel, const float *x, size_t x_stride, size_t terms, size_t count,
                         size_t rows)
{
    if (count < rows || terms < K3_SUPERBLOCK) {
        memset(panel, 0, rows * K3_SUPERBLOCK * sizeof *panel);
        for (size_t t = 0; t < count; t++) {
            memcpy(panel + t * K3_SUPERBLOCK, x + t * x_stride, terms * sizeof *panel);
        }
        return;
    }
    pack_x(panel, x, x_stride, count, count);
}

#endif
