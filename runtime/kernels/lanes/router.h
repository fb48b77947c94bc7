/* SPDX-License-Identifier: Apache-2.0 */
#ifndef K3_RUNTIME_KERNELS_LANES_ROUTER_H
#define K3_RUNTIME_KERNELS_LANES_ROUTER_H

#include "runtime/kernels/lanes/lanes.h"

/* The router's logits (arithmetic.md 8): LANES rows of a tile times T tokens at a time, in four
 * chains of doubles per output. */
K3_INLINE void router_rows(const uint8_t *lines, size_t cols, const float *x, size_t x_stride,
                           double *y, size_t y_stride, size_t T)
{
    vd a[16]; /* [T][chain][low, high lanes] */
    K3_UNROLL
    for (size_t i = 0; i < 8 * T; i++) {
        a[i] = vd_zero();
    }
    for (size_t col = 0; col < cols; col += 4) {
        K3_UNROLL
        for (size_t pair = 0; pair < 2; pair++) {
            __builtin_prefetch(lines + 64 * (col / 2 + pair) + 1024);
            const vi line = vi_load(lines + 64 * (col / 2 + pair));
            const vf weights[2] = {vf_b16_even(line), vf_b16_odd(line)};
            K3_UNROLL
            for (size_t half = 0; half < 2; half++) {
                const size_t chain = 2 * pair + half;
                const vd low = vd_low(weights[half]);
                const vd high = vd_high(weights[half]);
                K3_UNROLL
                for (size_t t = 0; t < T; t++) {
                    const vd b = vd_set1((double)x[t * x_stride + col + chain]);
                    vd *sums = a + 8 * t + 2 * chain;
                    sums[0] = vd_fma(low, b, sums[0]);
                    sums[1] = vd_fma(high, b, sums[1]);
                }
            }
        }
    }
    K3_UNROLL
    for (size_t t = 0; t < T; t++) {
        K3_UNROLL
        for (size_t half = 0; half < 2; half++) {
            const vd *c = a + 8 * t + half;
            vd_store(y + t * y_stride + half * (LANES / 2),
                     vd_add(vd_add(c[0], c[2]), vd_add(c[4], c[6])));
        }
    }
}

void K3_FN(b16_router)(const struct k3_tile_run *run, size_t tokens, const float *x,
                       size_t x_stride, double *y, size_t y_stride)
{
    for (size_t i = 0; i < TILE_VECTORS * run->tile_count; i++) {
        const uint8_t *lines =
            run->tiles + i / TILE_VECTORS * run->tile_stride_bytes + i % TILE_VECTORS * sizeof(vi);
        size_t t = 0;
        for (; t + 2 <= tokens; t += 2) {
            router_rows(lines, run->cols_padded, x + t * x_stride, x_stride,
                        y + t * y_stride + i * LANES, y_stride, 2);
        }
        if (t < tokens) {
            router_rows(lines, run->cols_padded, x + t * x_stride, x_stride,
                        y + t * y_stride + i * LANES, y_stride, 1);
        }
    }
}

#endif
