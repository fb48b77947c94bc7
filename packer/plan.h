/* SPDX-License-Identifier: Apache-2.0 */
#ifndef K3_PACKER_PLAN_H
#define K3_PACKER_PLAN_H

#include <stdbool.h>

#include "packer/census.h"

/* What packing a checkpoint will read and write. Pure: follows from sizes alone. */
struct k3_plan {
    uint64_t shard_count;
    uint64_t read_bytes;    /* all shards, headers included                               */
    uint64_t skipped_bytes; /* of which a pack leaves out: vision                         */
    uint64_t skipped_tensors;
    uint64_t trunk_bytes;   /* apparent size of k3.trunk                                  */
    uint64_t trunk_data;    /* of which extents                                           */
    uint64_t experts_bytes; /* apparent size of k3.experts                                */
    uint64_t experts_data;  /* of which extents; the gaps between them are holes          */
    uint64_t expert_count, expert_stride, expert_used;
    uint64_t index_bytes;    /* at most: provenance is compressed                            */
    uint64_t space_bytes;    /* storage that the pack takes where files have holes           */
    uint64_t apparent_bytes; /* and where they have not                                   */
};

struct k3_plan k3_plan_make(const struct k3_census *census);

/* Seconds to read the shards and write the pack at this rate of one disk that does both. */
uint64_t k3_plan_seconds(const struct k3_plan *plan, uint64_t bytes_per_second);

#endif
