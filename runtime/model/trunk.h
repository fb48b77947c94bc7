/* SPDX-License-Identifier: Apache-2.0 */
#ifndef K3_RUNTIME_MODEL_TRUNK_H
#define K3_RUNTIME_MODEL_TRUNK_H

#include "format/pack/tables.h"
#include "runtime/model/compute.h"
#include "runtime/model/weight_source.h"

/* Trunk tensors by layer and role, used and let go in the order in which they lie: nothing is held
 * longer than its use, so a layer of gigabytes passes through a window of megabytes. */
struct k3_trunk {
    const struct k3_pack_tables *tables; /* borrowed */
    struct k3_weight_source source;
    struct k3_compute compute;
    struct k3_matmul *piece; /* borrowed: room for the longest list of products */
};

/* y = W x with the matrix `role` of `layer` (K3_TOP_LEVEL: of the top level). A role with a matrix
 * per head gives head 0. Nothing is acquired yet. */
struct k3_matmul k3_trunk_product(const struct k3_trunk *trunk, uint32_t layer, unsigned role,
                                  size_t tokens, const float *x, size_t x_stride, float *y,
                                  size_t y_stride);

/* Runs the products, whose matrices must lie in ascending order in one extent: piece by piece of
 * whole tiles, each acquired, used in one parallel region and released. */
K3_MUST_CHECK enum k3_code k3_trunk_multiply(const struct k3_trunk *trunk,
                                             const struct k3_matmul *products, size_t count,
                                             struct k3_error *err);

/* Small neighbours that are used together: every tensor from `first` to `last`. */
struct k3_trunk_span {
    uint32_t layer;
    uint64_t file_offset, bytes;
    const uint8_t *base;
};
K3_MUST_CHECK enum k3_code k3_trunk_span_acquire(const struct k3_trunk *trunk, uint32_t layer,
                                                 unsigned first, unsigned last,
                                                 struct k3_trunk_span *out_span,
                                                 struct k3_error *err);
void k3_trunk_span_release(const struct k3_trunk *trunk, const struct k3_trunk_span *span);

/* A vector in an acquired span. */
const float *k3_trunk_vector(const struct k3_trunk *trunk, const struct k3_trunk_span *span,
                             unsigned role);

#endif
