/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/residency/budget.h"

#include <inttypes.h>
#include <string.h>

#include "format/base/assert.h"
#include "format/base/ckd.h"

#define MIB (UINT64_C(1) << 20)
#define GIB (UINT64_C(1) << 30)
#define GB  UINT64_C(1000000000)

/* The share is counted in page-cache folios, so that a drop never cuts one. */
#define SHARE_UNIT (2 * MIB)

#define WINDOW_FLOOR  (64 * MIB)
#define SLOTS_FLOOR   4U
#define WAVE_MAX      4U
#define CHUNK_PLANNED 256U

/* 8 bytes of page table per 4 KiB, where nothing is mapped in larger pages. */
#define PAGE_TABLE_PART 512U

bool k3_ram_preset(const char *name, struct k3_ram_request *out_request)
{
    static const struct {
        const char *name;
        uint64_t bytes;
    } presets[] = {{"laptop", 8 * GB},
                   {"desktop", 32 * GB},
                   {"workstation", 96 * GB},
                   {"server", 128 * GB},
                   {"max", 224 * GB}};
    for (size_t i = 0; i < sizeof presets / sizeof presets[0]; i++) {
        if (strcmp(name, presets[i].name) == 0) {
            *out_request = (struct k3_ram_request){K3_RAM_PRESET, presets[i].bytes, name};
            return true;
        }
    }
    return false;
}

uint64_t k3_headroom_bytes(uint64_t limit_bytes)
{
    return k3_max_u64(256 * MIB, limit_bytes / 100 * 3);
}

static uint64_t below(uint64_t limit_bytes)
{
    const uint64_t headroom = k3_headroom_bytes(limit_bytes);
    return limit_bytes > headroom ? limit_bytes - headroom : 0;
}

enum k3_code k3_ram_resolve(const struct k3_ram_request *request,
                            const struct k3_memory_limits *limits, uint64_t *out_bytes,
                            bool *out_was_clipped, struct k3_error *err)
{
    const uint64_t limit = k3_memory_limit(limits);
    const bool is_cgroup = limits->cgroup_bytes < limits->physical_bytes;
    *out_was_clipped = false;
    switch (request->kind) {
    case K3_RAM_AUTO:
        *out_bytes = below(limit);
        return K3_OK;
    case K3_RAM_PRESET:
        *out_was_clipped = request->bytes > limit;
        *out_bytes = below(k3_min_u64(request->bytes, limit));
        return K3_OK;
    case K3_RAM_SIZE:
        if (request->bytes > limit) {
            return k3_fail(err, K3_ERR_BUDGET, K3_ERROR_NO_OFFSET,
                           "--ram %" PRIu64 "MiB is more than the %" PRIu64
                           " MiB that this process may use (%s); --ram %" PRIu64
                           "MiB leaves the rest of the machine some room",
                           request->bytes / MIB, limit / MIB,
                           is_cgroup ? limits->cgroup_source : "physical memory",
                           below(limit) / MIB);
        }
        *out_bytes = request->bytes;
        return K3_OK;
    }
    k3_assert_failed("unknown kind of budget", __FILE__, __LINE__);
}

struct k3_trunk_block k3_trunk_block_of(const struct k3_pack_tables *tables, uint32_t extent,
                                        uint32_t block_in_extent)
{
    const struct k3_trunk_extent *e = &tables->extents[extent];
    const uint64_t at = block_in_extent * K3_TRUNK_BLOCK_BYTES;
    k3_assert(at < e->used_bytes);
    return (struct k3_trunk_block){
        .file_offset = e->file_offset + at,
        .bytes = k3_min_u64(K3_TRUNK_BLOCK_BYTES, e->used_bytes - at),
        .in_extent = at,
        .extent = extent,
    };
}

struct k3_trunk_path k3_trunk_path_of(const struct k3_pack_tables *tables)
{
    const struct k3_trunk_extent *top = &tables->extents[tables->extent_count - 1];
    const struct k3_trunk_tensor *embedding =
        k3_trunk_find(tables, K3_TOP_LEVEL, K3_ROLE_EMBEDDING);
    k3_assert(embedding && embedding->file_offset > top->file_offset);
    const uint64_t head_bytes = embedding->file_offset - top->file_offset;
    return (struct k3_trunk_path){
        .head_first = top->block_first,
        .block_count = top->block_first +
                       (uint32_t)((head_bytes + K3_TRUNK_BLOCK_BYTES - 1) / K3_TRUNK_BLOCK_BYTES),
    };
}

/* Bytes of the path that a share keeps; UINT64_MAX keeps it all. */
static uint64_t kept_by(const struct k3_pack_tables *tables, uint64_t share_bytes)
{
    const struct k3_trunk_path path = k3_trunk_path_of(tables);
    uint64_t kept = 0;
    for (uint32_t e = 0; e < tables->extent_count; e++) {
        const uint32_t first = tables->extents[e].block_first;
        const uint32_t count = k3_extent_block_count(&tables->extents[e]);
        for (uint32_t b = 0; b < count && first + b < path.block_count; b++) {
            const struct k3_trunk_block block = k3_trunk_block_of(tables, e, b);
            if (block.in_extent >= share_bytes) {
                break;
            }
            kept += k3_block_kept(&block, share_bytes);
        }
    }
    return kept;
}

/* The largest share whose pinned bytes fit `room`. */
static uint64_t share_within(const struct k3_pack_tables *tables, uint64_t room, uint64_t all)
{
    if (room >= all) {
        return UINT64_MAX;
    }
    uint64_t low = 0, high = room / SHARE_UNIT + 1; /* units: low fits, high does not */
    while (high - low > 1) {
        const uint64_t middle = low + (high - low) / 2;
        if (kept_by(tables, middle * SHARE_UNIT) <= room) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return low * SHARE_UNIT;
}

static uint64_t sum_of(const struct k3_session_sizes *s)
{
    return s->state_bytes + s->latent_bytes + s->scratch_bytes + s->logit_bytes;
}

/* A window of an eighth of a small trunk still streams. */
static uint64_t window_for(uint64_t wanted, uint64_t trunk_bytes)
{
    return k3_min_u64(wanted, k3_round_up(trunk_bytes / 8 + 1, 4096));
}

static uint64_t with_page_tables(uint64_t bytes)
{
    return bytes + bytes / (PAGE_TABLE_PART - 1) + 1;
}

static enum k3_code fail_floor(const struct k3_budget *b, struct k3_error *err)
{
    return k3_fail(err, K3_ERR_BUDGET, K3_ERROR_NO_OFFSET,
                   "a budget of %" PRIu64 " MiB is too small: --ram %" PRIu64
                   "MiB works (program and index %" PRIu64 ", states %" PRIu64 ", context %" PRIu64
                   ", working memory %" PRIu64 " MiB, the rest for weights on their way through)",
                   b->total_bytes / MIB, b->floor_bytes / MIB, b->base_bytes / MIB,
                   b->session.state_bytes / MIB, b->session.latent_bytes / MIB,
                   (b->session.scratch_bytes + b->session.logit_bytes) / MIB);
}

/* The longest pass whose working memory is a thirty-second of the budget, or what the floor has. */
static size_t plan_chunk(const struct k3_budget_request *r, uint64_t spare)
{
    struct k3_session_sizes one, s;
    if (!r->session_sizes(r->context, 1, &one)) {
        return 1;
    }
    size_t chunk = 1;
    const size_t max = r->chunk_max < CHUNK_PLANNED ? r->chunk_max : CHUNK_PLANNED;
    while (chunk < max) {
        const size_t next = chunk * 2 < max ? chunk * 2 : max;
        if (!r->session_sizes(r->context, next, &s) ||
            sum_of(&s) - sum_of(&one) >
                k3_min_u64(r->total_bytes / 32, spare / PAGE_TABLE_PART * (PAGE_TABLE_PART - 1))) {
            break;
        }
        chunk = next;
    }
    return chunk;
}

static void plan_floor(const struct k3_budget_request *r, struct k3_budget *b)
{
    const struct k3_model_spec *spec = &r->tables->spec;
    const uint32_t slots =
        spec->experts_per_token < SLOTS_FLOOR ? spec->experts_per_token : SLOTS_FLOOR;
    b->window_bytes = window_for(WINDOW_FLOOR, b->trunk_pass_bytes);
    b->slot_count = slots;
    const uint64_t least = with_page_tables(b->base_bytes + sum_of(&b->session) + b->window_bytes +
                                            slots * b->slot_bytes);
    b->floor_bytes = k3_round_up(least, MIB);
}

/* Splits what is above the floor: chunk, slots of a whole token, a wider window, trunk, and only
 * then more experts. */
static void plan_above(const struct k3_budget_request *r, struct k3_budget *b)
{
    const struct k3_pack_tables *tables = r->tables;
    const uint64_t k = tables->spec.experts_per_token;
    b->page_table_bytes = b->total_bytes / PAGE_TABLE_PART;
    const uint64_t fixed = b->base_bytes + b->page_table_bytes + sum_of(&b->session);
    const uint64_t room = b->total_bytes - fixed; /* the floor has been passed */
    if (room >= b->window_bytes + 2 * k * b->slot_bytes) {
        b->slot_count = (uint32_t)k;
    }
    uint64_t left = room - b->slot_count * b->slot_bytes;
    const uint64_t wide =
        window_for(b->total_bytes >= 64 * GIB ? 256 * MIB : 128 * MIB, b->trunk_pass_bytes);
    if (b->total_bytes >= 4 * GIB && left >= wide) {
        b->window_bytes = wide;
    }
    if (left >= b->trunk_pass_bytes) {
        b->window_bytes = 0; /* nothing streams */
    }
    left -= b->window_bytes;
    b->share_bytes = share_within(tables, left, b->trunk_pass_bytes);
    b->pinned_bytes = kept_by(tables, b->share_bytes);
    left -= b->pinned_bytes;
    if (b->pinned_bytes == b->trunk_pass_bytes) {
        const uint64_t total = k3_expert_total(&tables->layout);
        const uint64_t more = k3_min_u64(left / b->slot_bytes, total - b->slot_count);
        b->slot_count += (uint32_t)more;
        left -= more * b->slot_bytes;
    } else if (b->slot_count < k) {
        /* What is less than a step of the share makes the waves longer. */
        const uint64_t more = k3_min_u64(left / b->slot_bytes, k - b->slot_count);
        b->slot_count += (uint32_t)more;
        left -= more * b->slot_bytes;
    }
    b->unused_bytes = left;
}

static void predict(const struct k3_budget_request *r, struct k3_budget *b)
{
    const struct k3_pack_tables *tables = r->tables;
    const struct k3_model_spec *spec = &tables->spec;
    const uint64_t total = k3_expert_total(&tables->layout);
    b->trunk_streamed_bytes = b->trunk_pass_bytes - b->pinned_bytes;
    b->run_bytes = b->trunk_streamed_bytes == 0 ? UINT64_MAX : k3_max_u64(b->window_bytes / 4, 1);
    b->wave = b->slot_count == total         ? (uint32_t)total
              : b->slot_count > 2 * WAVE_MAX ? WAVE_MAX
                                             : (b->slot_count + 1) / 2;
    b->expert_token_bytes =
        (uint64_t)spec->experts_per_token * tables->layout.layer_count * tables->layout.used_bytes;
    b->expert_hit_share = (double)b->slot_count / (double)total;
    b->ideal_token_bytes = (double)b->trunk_streamed_bytes + 2.0 * spec->hidden +
                           (double)b->expert_token_bytes * (1.0 - b->expert_hit_share);
}

/* An extent of whole 2 MiB pages may be held in them. */
static uint64_t slot_bytes_of(const struct k3_expert_layout *layout)
{
    return layout->stride % SHARE_UNIT == 0 ? layout->stride : layout->used_bytes;
}

enum k3_code k3_budget_plan(const struct k3_budget_request *request, struct k3_budget *out_budget,
                            struct k3_error *err)
{
    struct k3_budget b = {
        .total_bytes = request->total_bytes,
        .base_bytes = request->base_bytes,
        .slot_bytes = slot_bytes_of(&request->tables->layout),
        .chunk = request->chunk ? request->chunk : 1,
        .trunk_pass_bytes = kept_by(request->tables, UINT64_MAX),
    };
    if (!request->session_sizes(request->context, b.chunk, &b.session)) {
        return k3_fail(err, K3_ERR_BUDGET, K3_ERROR_NO_OFFSET,
                       "no machine holds a context of this size; lower --context");
    }
    plan_floor(request, &b);
    if (b.total_bytes < b.floor_bytes) {
        return fail_floor(&b, err);
    }
    if (request->chunk == 0) {
        b.chunk = plan_chunk(request, b.total_bytes - b.floor_bytes);
        if (!request->session_sizes(request->context, b.chunk, &b.session)) {
            return k3_fail(err, K3_ERR_BUDGET, K3_ERROR_NO_OFFSET, "no plan for this context");
        }
    }
    plan_above(request, &b);
    predict(request, &b);
    *out_budget = b;
    return K3_OK;
}
