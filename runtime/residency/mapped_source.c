/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/residency/mapped_source.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "format/base/assert.h"
#include "format/base/ckd.h"
#include "format/base/clock.h"

struct k3_mapped_source {
    const struct k3_pack *pack;
    struct k3_pool *pool;
    enum k3_check_policy policy;
    struct k3_mapping trunk, experts;
    uint8_t *block_is_good;  /* by block number  */
    uint8_t *expert_is_good; /* by expert number */
    struct k3_source_counts counts;
};

/* A run of blocks of one extent, digested in parallel. */
struct block_check {
    struct k3_mapped_source *source;
    const struct k3_trunk_extent *extent;
    uint32_t first;           /* block of the extent */
    _Atomic uint32_t bad;     /* smallest bad one, UINT32_MAX for none */
    _Atomic uint64_t checked; /* bytes */
};

static void check_blocks(void *context, size_t first, size_t end, unsigned worker)
{
    (void)worker;
    struct block_check *check = context;
    const struct k3_trunk_extent *extent = check->extent;
    for (size_t i = first; i < end; i++) {
        const uint32_t block = check->first + (uint32_t)i;
        const uint32_t number = extent->block_first + block;
        if (check->source->policy == K3_CHECK_FIRST && check->source->block_is_good[number]) {
            continue;
        }
        const uint64_t at = block * K3_TRUNK_BLOCK_BYTES;
        const uint64_t bytes = k3_min_u64(K3_TRUNK_BLOCK_BYTES, extent->used_bytes - at);
        const struct k3_digest digest =
            k3_digest_of(check->source->trunk.bytes + extent->file_offset + at, (size_t)bytes);
        atomic_fetch_add_explicit(&check->checked, bytes, memory_order_relaxed);
        if (k3_digest_equal(&digest, &check->source->pack->tables.block_digests[number])) {
            check->source->block_is_good[number] = 1;
            continue;
        }
        uint32_t bad = atomic_load(&check->bad);
        while (block < bad && !atomic_compare_exchange_weak(&check->bad, &bad, block)) {
        }
    }
}

/* The extent that holds a file offset. */
static const struct k3_trunk_extent *extent_at(const struct k3_pack_tables *tables, uint64_t offset)
{
    uint32_t low = 0, high = tables->extent_count;
    while (high - low > 1) {
        const uint32_t middle = low + (high - low) / 2;
        if (tables->extents[middle].file_offset <= offset) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return &tables->extents[low];
}

static enum k3_code fail_block(const struct k3_mapped_source *source,
                               const struct k3_trunk_extent *extent, uint32_t block,
                               struct k3_error *err)
{
    const uint64_t at = extent->file_offset + block * K3_TRUNK_BLOCK_BYTES;
    const uint64_t end =
        k3_min_u64(at + K3_TRUNK_BLOCK_BYTES, extent->file_offset + extent->used_bytes);
    char where[32] = "top level";
    if (extent->layer != K3_TOP_LEVEL) {
        snprintf(where, sizeof where, "layer %u", extent->layer);
    }
    return k3_fail(err, K3_ERR_DAMAGED, at,
                   "'%s': bytes %" PRIu64 "..%" PRIu64
                   " (%s) do not match their digest; find all damage with k3pack --verify '%s'",
                   source->pack->trunk.path, at, end, where, source->pack->folder);
}

static void pass_begin(void *self, bool needs_head)
{
    (void)self;
    (void)needs_head;
}

static enum k3_code trunk_acquire(void *self, uint64_t file_offset, uint64_t bytes,
                                  const uint8_t **out_bytes, struct k3_error *err)
{
    struct k3_mapped_source *source = self;
    const struct k3_trunk_extent *extent = extent_at(&source->pack->tables, file_offset);
    const uint64_t at = file_offset - extent->file_offset;
    k3_assert(k3_range_fits(at, bytes, extent->used_bytes) && bytes > 0);
    if (source->policy != K3_CHECK_OFF) {
        struct block_check check = {.source = source,
                                    .extent = extent,
                                    .first = (uint32_t)(at / K3_TRUNK_BLOCK_BYTES),
                                    .bad = UINT32_MAX};
        const uint32_t last = (uint32_t)((at + bytes - 1) / K3_TRUNK_BLOCK_BYTES);
        const uint64_t start = k3_clock_ns();
        k3_pool_run(source->pool, last - check.first + 1, 1, check_blocks, &check);
        source->counts.check_ns += k3_clock_ns() - start;
        source->counts.checked_bytes += atomic_load(&check.checked);
        const uint32_t bad = atomic_load(&check.bad);
        if (bad != UINT32_MAX) {
            return fail_block(source, extent, bad, err);
        }
    }
    source->counts.trunk_bytes += bytes;
    *out_bytes = source->trunk.bytes + file_offset;
    return K3_OK;
}

/* The page cache decides what stays: nothing to do. */
static void trunk_release(void *self, uint64_t file_offset, uint64_t bytes)
{
    (void)self;
    (void)file_offset;
    (void)bytes;
}

static void experts_announce(void *self, uint32_t layer, const uint32_t *experts, uint32_t count)
{
    (void)self;
    (void)layer;
    (void)experts;
    (void)count;
}

static enum k3_code expert_acquire(void *self, uint32_t layer, uint32_t expert,
                                   const uint8_t **out_bytes, struct k3_error *err)
{
    struct k3_mapped_source *source = self;
    const struct k3_expert_layout *layout = &source->pack->tables.layout;
    const uint64_t number = k3_expert_number(layout, layer, expert);
    const uint64_t offset = k3_expert_offset(layout, number);
    const uint8_t *bytes = source->experts.bytes + offset;
    if (source->policy == K3_CHECK_ALWAYS ||
        (source->policy == K3_CHECK_FIRST && !source->expert_is_good[number])) {
        const uint64_t start = k3_clock_ns();
        const struct k3_digest digest = k3_digest_of(bytes, (size_t)layout->used_bytes);
        source->counts.check_ns += k3_clock_ns() - start;
        source->counts.checked_bytes += layout->used_bytes;
        if (!k3_digest_equal(&digest, &source->pack->tables.expert_digests[number])) {
            return k3_fail(err, K3_ERR_DAMAGED, offset,
                           "'%s': layer %u expert %u (bytes %" PRIu64 "..%" PRIu64
                           ") does not match its digest; find all damage with k3pack --verify '%s'",
                           source->pack->experts.path, layer, expert, offset,
                           offset + layout->used_bytes, source->pack->folder);
        }
        source->expert_is_good[number] = 1;
    }
    source->counts.expert_bytes += layout->used_bytes;
    source->counts.experts++;
    *out_bytes = bytes;
    return K3_OK;
}

static void expert_release(void *self, uint32_t layer, uint32_t expert)
{
    (void)self;
    (void)layer;
    (void)expert;
}

enum k3_code k3_mapped_source_create(const struct k3_pack *pack, struct k3_pool *pool,
                                     enum k3_check_policy policy,
                                     struct k3_mapped_source **out_source, struct k3_error *err)
{
    struct k3_mapped_source *source = calloc(1, sizeof *source);
    if (!source) {
        return k3_fail_no_memory(err, "weight source");
    }
    source->pack = pack;
    source->pool = pool;
    source->policy = policy;
    source->block_is_good = calloc(pack->tables.block_count, 1);
    source->expert_is_good = calloc((size_t)k3_expert_total(&pack->tables.layout), 1);
    enum k3_code code = source->block_is_good && source->expert_is_good
                            ? K3_OK
                            : k3_fail_no_memory(err, "weight source");
    if (code == K3_OK) {
        code = k3_mapping_map(&pack->trunk, &source->trunk, err);
    }
    if (code == K3_OK) {
        code = k3_mapping_map(&pack->experts, &source->experts, err);
    }
    if (code != K3_OK) {
        k3_mapped_source_destroy(source);
        return code;
    }
    *out_source = source;
    return K3_OK;
}

void k3_mapped_source_destroy(struct k3_mapped_source *source)
{
    if (source) {
        k3_mapping_unmap(&source->trunk);
        k3_mapping_unmap(&source->experts);
        free(source->block_is_good);
        free(source->expert_is_good);
        free(source);
    }
}

struct k3_weight_source k3_mapped_source_doors(struct k3_mapped_source *source)
{
    return (struct k3_weight_source){
        .self = source,
        .run_bytes = UINT64_MAX,
        .experts_at_once = UINT32_MAX,
        .pass_begin = pass_begin,
        .trunk_acquire = trunk_acquire,
        .trunk_release = trunk_release,
        .experts_announce = experts_announce,
        .expert_acquire = expert_acquire,
        .expert_release = expert_release,
    };
}

struct k3_source_counts k3_mapped_source_counts(const struct k3_mapped_source *source)
{
    return source->counts;
}

static bool is_inside(const struct k3_mapping *mapping, const void *address, uint64_t *out_offset)
{
    const uintptr_t base = (uintptr_t)mapping->bytes;
    const uintptr_t at = (uintptr_t)address;
    if (at < base || at - base >= mapping->len) {
        return false;
    }
    *out_offset = at - base;
    return true;
}

const char *k3_mapped_source_locate(const struct k3_mapped_source *source, const void *address,
                                    uint64_t *out_offset)
{
    if (is_inside(&source->trunk, address, out_offset)) {
        return source->pack->trunk.path;
    }
    if (is_inside(&source->experts, address, out_offset)) {
        return source->pack->experts.path;
    }
    return NULL;
}
