/* SPDX-License-Identifier: Apache-2.0 */
#ifndef K3_RUNTIME_KERNELS_LANES_M4_GROUP_H
#define K3_RUNTIME_KERNELS_LANES_M4_GROUP_H

#include "runtime/kernels/lanes/column.h"

/* For tiers whose m4_decode gives eight columns at once: P over one group of 32 columns; `lines`
 * are the first tile's four lines of the group. */
K3_INLINE void m4_group(vf *P, const struct m4_decoder *decoder, const uint8_t *lines,
                        size_t tile_stride, const float *x, size_t x_stride, size_t wide, size_t T)
{
    const size_t vectors = wide * TILE_VECTORS;
    for (size_t q = 0; q < 4; q++) {
        K3_UNROLL
        for (size_t v = 0; v < vectors; v++) {
            const uint8_t *line = lines + v / TILE_VECTORS * tile_stride + 64 * q;
            if (v % TILE_VECTORS == 0) {
                __builtin_prefetch(line + 1088);
            }
            vf w[8];
            m4_decode(w, decoder, line + v % TILE_VECTORS * sizeof(vi));
            K3_UNROLL
            for (size_t i = 0; i < 8; i++) {
                K3_UNROLL
                for (size_t t = 0; t < T; t++) {
                    vf *sum = P + t * vectors + v;
                    *sum = vf_fma(w[i], vf_set1(x[t * x_stride + 8 * q + i]), *sum);
                }
            }
        }
    }
}

#endif
