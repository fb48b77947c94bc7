/* SPDX-License-Identifier: Apache-2.0 */
#ifndef K3_PACKER_JOURNAL_SHARD_H
#define K3_PACKER_JOURNAL_SHARD_H

#include "packer/census.h"
#include "packer/schedule.h"

/* What a record says of a shard that is done: u32 shard, its digest, the digests of its source
 * tensors in file order, and then the stored digests of everything that became complete with it:
 * blocks of trunk extents, experts; then its SHA-256, where one is made. All of it stands in the
 * census' tables and provenance; these functions move it to bytes and back. Pure. */

/* To fresh memory, the caller's to free. Errors: NO_MEMORY. */
K3_MUST_CHECK enum k3_code k3_journal_shard_encode(const struct k3_census *census,
                                                   const struct k3_schedule *schedule,
                                                   uint32_t shard, uint8_t **out_bytes,
                                                   size_t *out_len, struct k3_error *err);

/* False, and nothing changed, when these bytes are not the record of this shard. */
bool k3_journal_shard_decode(struct k3_census *census, const struct k3_schedule *schedule,
                             uint32_t shard, const uint8_t *bytes, size_t len);

#endif
