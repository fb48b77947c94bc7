/* SPDX-License-Identifier: Apache-2.0 */
#ifndef K3_PACKER_SCHEDULE_H
#define K3_PACKER_SCHEDULE_H

#include "format/pack/provenance.h"

/* Which extents and experts become complete with which shard: with the last one, in shard order,
 * that holds any of their sources. Pure. Items of shard s are items[first[s]] .. items[first[s+1]],
 * ascending. */
struct k3_schedule_list {
    uint32_t *first; /* shard_count + 1 */
    uint32_t *items;
};

struct k3_schedule {
    uint32_t shard_count;
    struct k3_schedule_list extents; /* of the trunk, by index        */
    struct k3_schedule_list experts; /* by number, in file order      */
};

/* Places of all sources must be known. *out_schedule is the caller's: k3_schedule_done. */
K3_MUST_CHECK enum k3_code k3_schedule_make(const struct k3_pack_tables *tables,
                                            const struct k3_provenance *provenance,
                                            struct k3_schedule *out_schedule, struct k3_error *err);
void k3_schedule_done(struct k3_schedule *schedule);

/* The last shard of one extent, of one expert. */
uint32_t k3_extent_last_shard(const struct k3_pack_tables *tables,
                              const struct k3_provenance *provenance, uint32_t extent);
uint32_t k3_expert_last_shard(const struct k3_provenance *provenance, uint64_t expert);

#endif
