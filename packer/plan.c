/* SPDX-License-Identifier: Apache-2.0 */
#include "packer/plan.h"

#include <string.h>

#include "format/base/ckd.h"

static uint64_t section_bytes(const struct k3_pack_tables *tables, unsigned first, unsigned last)
{
    uint64_t bytes = 0;
    for (unsigned kind = first; kind <= last; kind++) {
        bytes += k3_round_up(k3_table_section_bytes(tables, (enum k3_section_kind)kind),
                             K3_SECTION_ALIGN);
    }
    return bytes;
}

static uint64_t file_section_bytes(const struct k3_file_bundle *files)
{
    uint64_t bytes = K3_SECTION_ALIGN;
    for (unsigned i = 0; i < K3_BUNDLED_COUNT; i++) {
        bytes += files->files[i].len + K3_SECTION_ALIGN;
    }
    return bytes;
}

/* An upper bound: digests do not compress, names and numbers do. */
static uint64_t provenance_bytes(const struct k3_census *census)
{
    const uint64_t experts =
        k3_expert_total(&census->tables.layout) * K3_EXPERT_PARTS * K3_EXPERT_SOURCE_BYTES;
    const uint64_t trunk = census->tables.source_count * (uint64_t)(64 + K3_TENSOR_NAME_MAX);
    uint64_t shards = 64;
    for (uint32_t i = 0; i < census->provenance.shard_count; i++) {
        shards += 64 + strlen(census->provenance.shards[i].name);
    }
    return experts + trunk + shards;
}

struct k3_plan k3_plan_make(const struct k3_census *census)
{
    const struct k3_pack_tables *t = &census->tables;
    const uint64_t head = K3_SUPERBLOCK_BYTES + K3_SECTION_KINDS * K3_SECTION_ENTRY_BYTES;
    const uint64_t spec = section_bytes(t, K3_SECTION_MODEL_SPEC, K3_SECTION_MODEL_SPEC);
    const uint64_t trunk_tail =
        head + spec + file_section_bytes(&census->files) +
        section_bytes(t, K3_SECTION_TRUNK_EXTENTS, K3_SECTION_TRUNK_DIGESTS);
    const uint64_t experts_tail =
        head + spec + section_bytes(t, K3_SECTION_EXPERT_LAYOUT, K3_SECTION_EXPERT_DIGESTS);
    struct k3_plan plan = {
        .shard_count = census->set.shard_count,
        .skipped_bytes = census->skipped_bytes,
        .skipped_tensors = census->skipped_tensors,
        .trunk_bytes = k3_trunk_data_end(t) + trunk_tail,
        .experts_bytes = k3_experts_data_end(t) + experts_tail,
        .expert_count = k3_expert_total(&t->layout),
        .expert_stride = t->layout.stride,
        .expert_used = t->layout.used_bytes,
        .index_bytes = trunk_tail + experts_tail + provenance_bytes(census),
    };
    for (size_t i = 0; i < census->set.shard_count; i++) {
        plan.read_bytes += census->set.shards[i].file_bytes;
    }
    for (uint32_t i = 0; i < t->extent_count; i++) {
        plan.trunk_data += t->extents[i].used_bytes;
    }
    plan.experts_data = plan.expert_count * plan.expert_used;
    plan.space_bytes =
        plan.trunk_data + trunk_tail + plan.experts_data + experts_tail + plan.index_bytes;
    plan.apparent_bytes = plan.trunk_bytes + plan.experts_bytes + plan.index_bytes;
    return plan;
}

uint64_t k3_plan_seconds(const struct k3_plan *plan, uint64_t bytes_per_second)
{
    return (plan->read_bytes + plan->space_bytes) / bytes_per_second + 1;
}
