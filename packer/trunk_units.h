/* SPDX-License-Identifier: Apache-2.0 */
#ifndef K3_PACKER_TRUNK_UNITS_H
#define K3_PACKER_TRUNK_UNITS_H

#include "format/pack/tables.h"
#include "packer/buffer.h"

/* A piece of a stored tensor of the trunk made from a piece of its source, in memory: what repair
 * needs, where packing writes whole tensors. Pure. */
struct k3_unit_range {
    uint64_t stored_offset, stored_bytes; /* in the stored tensor: whole tiles, heads, values */
    uint64_t source_offset, source_bytes; /* in the source tensor: what they are made from    */
};

/* The smallest one that covers [offset, offset + bytes) of the stored tensor; bytes > 0. */
struct k3_unit_range k3_trunk_unit_range(const struct k3_pack_tables *tables,
                                         const struct k3_trunk_tensor *tensor, uint64_t offset,
                                         uint64_t bytes);

/* source: range->source_bytes; out_stored: range->stored_bytes. Errors: NO_MEMORY. */
K3_MUST_CHECK enum k3_code k3_trunk_units_encode(const struct k3_trunk_tensor *tensor,
                                                 const struct k3_unit_range *range,
                                                 const uint8_t *source, uint8_t *out_stored,
                                                 struct k3_buffer *scratch, struct k3_error *err);

#endif
