/* SPDX-License-Identifier: Apache-2.0 */
#ifndef K3_PACKER_JOURNAL_IDENTITY_H
#define K3_PACKER_JOURNAL_IDENTITY_H

#include "format/base/problems.h"
#include "packer/census.h"

/* What a journal belongs to: format version, model spec, the small files, whether SHA-256 is made,
 * and of each shard name, size, time of modification and a digest of its tensor table. Work is
 * resumed only where all of it is as it was; a shard that was not packed yet may have been
 * replaced. */

/* To fresh memory, the caller's to free. Errors: NO_MEMORY. */
K3_MUST_CHECK enum k3_code k3_identity_encode(const struct k3_census *census, uint8_t **out_bytes,
                                              size_t *out_len, struct k3_error *err);

/* Compares two of them. What forbids resuming becomes a line in `changes`; *out_later_changed: a
 * shard from `shards_done` on differs, which does not forbid it. Bytes that cannot be understood
 * (another version of this program wrote them) are a change. */
void k3_identity_compare(const uint8_t *before, size_t before_len, const uint8_t *now,
                         size_t now_len, uint32_t shards_done, struct k3_problems *changes,
                         bool *out_later_changed);

#endif
