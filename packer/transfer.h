/* SPDX-License-Identifier: Apache-2.0 */
#ifndef K3_PACKER_TRANSFER_H
#define K3_PACKER_TRANSFER_H

#include "packer/census.h"
#include "packer/expert_writer.h"
#include "packer/manifest.h"
#include "packer/schedule.h"
#include "packer/target.h"
#include "packer/team.h"
#include "packer/trunk_writer.h"

/* Shard bytes to extents, digested on the way through: one pass over each shard, in name order. An
 * expert whose six tensors follow each other in a shard is written in that pass; one whose tensors
 * are scattered is gathered after the pass over the last shard that has any of them. One thread
 * reads; a team checks, tiles, digests and writes experts behind it, in at most a gibibyte. */
struct k3_transfer {
    struct k3_census *census; /* borrowed; digests are filled in */
    struct k3_target *target; /* borrowed */
    const struct k3_observer *observer;
    struct k3_schedule schedule;
    struct k3_source_reader reader;
    struct k3_trunk_writer trunk;
    struct k3_expert_writer experts;
    struct k3_team *team;       /* owned: experts on their way */
    struct k3_expert_job *jobs; /* owned: its places           */
    unsigned job_count;
    bool *is_written;                   /* by expert: in the pass over its shard */
    const struct k3_manifest *manifest; /* borrowed, may be NULL: what shards must be */
    struct k3_sha256 *sha256;           /* owned; with a manifest                    */
    uint32_t shards_done;               /* shards 0.. that the journal holds     */
    uint64_t journal_end;
    struct k3_buffer scratch;
    bool has_zero_block;
    struct k3_digest zero_block; /* of a whole block of zeros (sparse rehearsals) */
};

/* The target's data files must be open. *out_transfer is the caller's: k3_transfer_done; it must
 * not be moved. */
K3_MUST_CHECK enum k3_code k3_transfer_init(struct k3_transfer *transfer, struct k3_census *census,
                                            struct k3_target *target,
                                            const struct k3_manifest *manifest, unsigned jobs,
                                            const struct k3_observer *observer,
                                            struct k3_error *err);
void k3_transfer_done(struct k3_transfer *transfer);

/* Is this shard, whose SHA-256 is recorded, the one that the manifest lists? Without a manifest it
 * is. Errors: DAMAGED, with both digests. */
K3_MUST_CHECK enum k3_code k3_transfer_check_sha256(const struct k3_transfer *transfer,
                                                    uint32_t shard, struct k3_error *err);

/* Packs shards_done..; each is durable, then recorded, before the next begins. Places that are
 * written here must read as zeros before. */
K3_MUST_CHECK enum k3_code k3_transfer_run(struct k3_transfer *transfer, struct k3_error *err);

/* Writes one trunk source or one expert again from the shards, whose bytes must have the digests
 * that were recorded. Errors: DAMAGED when they have not. */
K3_MUST_CHECK enum k3_code k3_transfer_again_trunk(struct k3_transfer *transfer, uint32_t source,
                                                   struct k3_error *err);
K3_MUST_CHECK enum k3_code k3_transfer_again_expert(struct k3_transfer *transfer, uint64_t expert,
                                                    struct k3_error *err);

/* Appends a record to the journal and makes it durable. */
K3_MUST_CHECK enum k3_code k3_transfer_record(struct k3_transfer *transfer, unsigned kind,
                                              const uint8_t *payload, size_t payload_len,
                                              struct k3_error *err);

#endif
