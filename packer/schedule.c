/* SPDX-License-Identifier: Apache-2.0 */
#include "packer/schedule.h"

#include <stdlib.h>

uint32_t k3_extent_last_shard(const struct k3_pack_tables *tables,
                              const struct k3_provenance *provenance, uint32_t extent)
{
    const struct k3_trunk_extent *e = &tables->extents[extent];
    uint32_t last = 0;
    for (uint32_t i = 0; i < e->tensor_count; i++) {
        const uint32_t source = tables->tensors[e->tensor_first + i].source;
        const uint32_t shard = provenance->trunk[source].shard;
        last = shard > last ? shard : last;
    }
    return last;
}

uint32_t k3_expert_last_shard(const struct k3_provenance *provenance, uint64_t expert)
{
    uint32_t last = 0;
    for (unsigned part = 0; part < K3_EXPERT_PARTS; part++) {
        const uint32_t shard = provenance->experts[expert * K3_EXPERT_PARTS + part].shard;
        last = shard > last ? shard : last;
    }
    return last;
}

/* Sorts item numbers 0..count-1 by last_shard[item]; keeps their order inside a shard. */
static enum k3_code sort_items(const uint32_t *last_shard, uint32_t count, uint32_t shard_count,
                               struct k3_schedule_list *list, struct k3_error *err)
{
    list->first = calloc((size_t)shard_count + 2, sizeof *list->first);
    list->items = calloc((size_t)count + 1, sizeof *list->items);
    if (!list->first || !list->items) {
        return k3_fail_no_memory(err, "schedule");
    }
    uint32_t *cursor = list->first + 1; /* shifted by one: filling turns starts into ends */
    for (uint32_t i = 0; i < count; i++) {
        cursor[last_shard[i] + 1]++;
    }
    for (uint32_t s = 0; s < shard_count; s++) {
        cursor[s + 1] += cursor[s];
    }
    for (uint32_t i = 0; i < count; i++) {
        list->items[cursor[last_shard[i]]++] = i;
    }
    return K3_OK;
}

enum k3_code k3_schedule_make(const struct k3_pack_tables *tables,
                              const struct k3_provenance *provenance,
                              struct k3_schedule *out_schedule, struct k3_error *err)
{
    struct k3_schedule schedule = {.shard_count = provenance->shard_count};
    const uint32_t expert_count = (uint32_t)k3_expert_total(&tables->layout);
    const uint32_t room = expert_count > tables->extent_count ? expert_count : tables->extent_count;
    uint32_t *last_shard = malloc(room * sizeof *last_shard);
    if (!last_shard) {
        return k3_fail_no_memory(err, "schedule");
    }
    for (uint32_t i = 0; i < tables->extent_count; i++) {
        last_shard[i] = k3_extent_last_shard(tables, provenance, i);
    }
    enum k3_code code =
        sort_items(last_shard, tables->extent_count, schedule.shard_count, &schedule.extents, err);
    for (uint32_t i = 0; code == K3_OK && i < expert_count; i++) {
        last_shard[i] = k3_expert_last_shard(provenance, i);
    }
    if (code == K3_OK) {
        code = sort_items(last_shard, expert_count, schedule.shard_count, &schedule.experts, err);
    }
    free(last_shard);
    if (code != K3_OK) {
        k3_schedule_done(&schedule);
        return code;
    }
    *out_schedule = schedule;
    return K3_OK;
}

void k3_schedule_done(struct k3_schedule *schedule)
{
    free(schedule->extents.first);
    free(schedule->extents.items);
    free(schedule->experts.first);
    free(schedule->experts.items);
    *schedule = (struct k3_schedule){0};
}
