/* SPDX-License-Identifier: Apache-2.0 */
#ifndef K3_PACKER_REPAIR_H
#define K3_PACKER_REPAIR_H

#include "packer/verify.h"

/* The verb: a damaged pack is made whole again from the shards, by writing only what is damaged.
 *
 * First everything in scope is verified. Then each damaged block and expert is made again in memory
 * and compared with the digest that the pack recorded; only then are its differing pages written,
 * synced and read back. Tables and superblocks come from whichever file has a good copy. The index
 * comes last, by rename. So an interruption leaves every byte as it was or right, and what could
 * not be repaired keeps its digests and stays damaged for every reader. */
struct k3_repair_report {
    uint64_t bad_blocks, mended_blocks, bad_experts, mended_experts; /* found, of which repaired */
    uint64_t written_bytes;               /* of blocks and experts                       */
    bool trunk_tail, experts_tail, index; /* these were written anew                     */
    bool provenance;                      /* and this was made from all shards           */
    uint64_t checked_bytes;
    struct k3_damage_list lacking; /* what the shards do not have: shard and bytes named  */
    struct k3_damage_list left;    /* structural damage that is still there               */
};

/* `quick`: structure only, no weights are read. K3_OK also where something is left: see
 * k3_repair_is_whole. *out_report is the caller's in any case: k3_repair_report_done.
 * Errors: NO_INPUT, BUSY (another k3pack works there), DAMAGED (too much is lost, or a file belongs
 * to another pack: nothing was written), those of the census where the index must be made from all
 * shards, INTERRUPTED (run again), IO, NO_MEMORY. */
K3_MUST_CHECK enum k3_code k3_repair(const char *folder, const char *checkpoint, bool quick,
                                     const struct k3_verify_scope *scope, unsigned jobs,
                                     const struct k3_observer *observer,
                                     struct k3_problems *problems,
                                     struct k3_repair_report *out_report, struct k3_error *err);

static inline bool k3_repair_is_whole(const struct k3_repair_report *r)
{
    return r->bad_blocks == r->mended_blocks && r->bad_experts == r->mended_experts &&
           r->lacking.total == 0 && r->left.total == 0;
}

void k3_repair_report_done(struct k3_repair_report *report);

#endif
