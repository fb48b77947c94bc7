/* SPDX-License-Identifier: Apache-2.0 */
#ifndef K3_RUNTIME_MODEL_COMPUTE_H
#define K3_RUNTIME_MODEL_COMPUTE_H

#include <stdbool.h>

#include "runtime/kernels/kernels.h"
#include "runtime/thread/pool.h"

/* Kernels and the threads that run them: how the model's formulas become parallel work. Everything
 * here divides work by outputs only, so that nothing depends on the number of threads. */
struct k3_compute {
    const struct k3_kernels *kernels; /* borrowed */
    struct k3_pool *pool;             /* borrowed */
};

/* Row strides: a vector of n floats takes this many, zero beyond n, so that it can feed any tile.
 */
static inline size_t k3_padded(size_t n)
{
    return (n + K3_TILE_COLS - 1) / K3_TILE_COLS * K3_TILE_COLS;
}

enum k3_matmul_kind {
    K3_MATMUL_B16,
    K3_MATMUL_M4,
    K3_MATMUL_ROUTER /* result in y_double */
};

/* y[t] = W x[t] for `tokens` rows. Strides in elements. */
struct k3_matmul {
    enum k3_matmul_kind kind;
    struct k3_tile_run run;
    uint64_t
        trunk_offset; /* where the first tile lies, while run.tiles is not known yet: trunk.h */
    size_t tokens;
    const float *x;
    size_t x_stride;
    float *y;
    double *y_double;
    size_t y_stride;
    size_t first_item; /* filled in by k3_compute_matmuls */
};

/* All jobs in one parallel region: put everything that is ready into one call. */
void k3_compute_matmuls(const struct k3_compute *compute, struct k3_matmul *jobs, size_t count);

/* y = SiTU-GLU(gate, up) for `rows` rows of n, all `stride` apart. y may be gate or up. */
void k3_compute_situ(const struct k3_compute *compute, float *y, const float *gate, const float *up,
                     size_t rows, size_t n, size_t stride, float beta, float linear_beta);

/* Calls item(context, i, worker) for i < count, each on its own. */
void k3_compute_each(const struct k3_compute *compute, size_t count,
                     void (*item)(void *context, size_t i, unsigned worker), void *context);

#endif
