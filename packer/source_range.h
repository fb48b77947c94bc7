/* SPDX-License-Identifier: Apache-2.0 */
#ifndef K3_PACKER_SOURCE_RANGE_H
#define K3_PACKER_SOURCE_RANGE_H

#include "format/pack/tables.h"

/* Which bytes of its source tensor a stored range was made from: the smallest range of whole rows
 * (tiles, heads) that makes all of it again. Pure.
 *   tensor         a stored tensor
 *   offset, bytes  a range inside it, from its start; bytes > 0
 * *out_offset counts from the start of the source tensor. */
void k3_source_range(const struct k3_pack_tables *tables, const struct k3_trunk_tensor *tensor,
                     uint64_t offset, uint64_t bytes, uint64_t *out_offset, uint64_t *out_bytes);

#endif
