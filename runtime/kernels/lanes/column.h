/* SPDX-License-Identifier: Apache-2.0 */
#ifndef K3_RUNTIME_KERNELS_LANES_COLUMN_H
#define K3_RUNTIME_KERNELS_LANES_COLUMN_H

#include "runtime/kernels/lanes/lanes.h"

/* P[t][v] = fma(w[v], x[t], P[t][v]) for one column. */
K3_INLINE void multiply_column(vf *P, const vf *w, size_t vectors, const float *x, size_t x_stride,
                               size_t T)
{
    K3_UNROLL
    for (size_t t = 0; t < T; t++) {
        const vf broadcast = vf_set1(x[t * x_stride]);
        K3_UNROLL
        for (size_t v = 0; v < vectors; v++) {
            P[t * vectors + v] = vf_fma(w[v], broadcast, P[t * vectors + v]);
        }
    }
}

/* x[0..tokens) of one superblock side by side, zeros up to T. */
K3_INLINE void pack_x(float *panel, const float *x, size_t x_stride, size_t tokens, size_t T)
{
    for (size_t t = 0; t < T; t++) {
        for (size_t i = 0; i < K3_SUPERBLOCK; i += LANES) {
            vf_store(panel + t * K3_SUPERBLOCK + i,
                     t < tokens ? vf_load(x + t * x_stride + i) : vf_zero());
        }
    }
}

#endif
