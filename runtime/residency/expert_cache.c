/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/residency/expert_cache.h"

#include <stdlib.h>
#include <string.h>

#include "format/base/assert.h"
#include "format/base/clock.h"

enum k3_code k3_expert_cache_init(const struct k3_pack *pack, struct k3_backing *backing,
                                  uint32_t slot_count, enum k3_check_policy policy,
                                  struct k3_expert_cache *out_cache, struct k3_error *err)
{
    const struct k3_expert_layout *layout = &pack->tables.layout;
    const size_t total = (size_t)k3_expert_total(layout);
    struct k3_expert_cache c = {
        .pack = pack, .backing = backing, .policy = policy, .slot_count = slot_count};
    k3_assert(slot_count > 0);
    c.slots = calloc(slot_count, sizeof *c.slots);
    c.slot_of = malloc(total * sizeof *c.slot_of);
    c.is_checked = calloc(total, 1);
    c.list = calloc(layout->expert_count, sizeof *c.list);
    if (!c.slots || !c.slot_of || !c.is_checked || !c.list) {
        k3_expert_cache_done(&c);
        return k3_fail_no_memory(err, "expert slots");
    }
    memset(c.slot_of, 0xff, total * sizeof *c.slot_of);
    for (uint32_t i = 0; i < slot_count; i++) {
        c.slots[i].number = K3_EXPERT_NONE;
        c.slots[i].wanted = K3_EXPERT_NONE;
    }
    *out_cache = c;
    return K3_OK;
}

void k3_expert_cache_done(struct k3_expert_cache *cache)
{
    free(cache->slots);
    free(cache->slot_of);
    free(cache->is_checked);
    free(cache->list);
    *cache = (struct k3_expert_cache){0};
}

void k3_expert_cache_announce(struct k3_expert_cache *c, uint32_t layer, const uint32_t *experts,
                              uint32_t count)
{
    const struct k3_expert_layout *layout = &c->pack->tables.layout;
    k3_assert(count <= layout->expert_count);
    for (uint32_t i = 0; i < c->slot_count; i++) {
        c->slots[i].wanted = K3_EXPERT_NONE;
    }
    for (uint32_t i = 0; i < count; i++) {
        c->list[i] = (uint32_t)k3_expert_number(layout, layer, experts[i]);
        const uint32_t slot = c->slot_of[c->list[i]];
        if (slot < c->slot_count) {
            c->slots[slot].wanted = i;
        }
    }
    c->list_count = count;
    c->taken = 0;
}

enum k3_code k3_expert_cache_take(struct k3_expert_cache *c, uint64_t number, bool *out_is_ready,
                                  struct k3_error *err)
{
    k3_assert(c->taken < c->list_count && c->list[c->taken] == number);
    const uint32_t at = c->slot_of[number];
    struct k3_expert_slot *slot = at < c->slot_count ? &c->slots[at] : NULL;
    if (slot && slot->state == K3_SLOT_BAD) {
        if (err) {
            *err = c->error;
        }
        return c->error.code;
    }
    *out_is_ready = slot && slot->state == K3_SLOT_HERE;
    if (*out_is_ready) {
        slot->holds++;
        slot->wanted = K3_EXPERT_NONE;
        slot->used_at = ++c->clock;
        c->taken++;
        c->acquired++;
    }
    return K3_OK;
}

void k3_expert_cache_release(struct k3_expert_cache *c, uint64_t number)
{
    const uint32_t at = c->slot_of[number];
    k3_assert(at < c->slot_count && c->slots[at].holds > 0);
    c->slots[at].holds--;
}

/* The policy, and nowhere else. Layers come round in a cycle, so what was used last is needed last:
 * least recently used alone would never hit while fewer experts fit than a token asks for. What has
 * not been used for a whole token goes first, oldest first; then the most recently used. Chosen by
 * scripts/replay_trace.py, which calls it "cyclic": never worse than LRU on the trace at hand, 22 %
 * against 0 where slots are half a token's experts. */
static uint32_t pick_victim(const struct k3_expert_cache *c, uint32_t oldest, uint32_t newest)
{
    const struct k3_expert_layout *layout = &c->pack->tables.layout;
    const uint64_t k = c->pack->tables.spec.experts_per_token;
    const uint64_t token = k * (layout->layer_count + 2);
    return c->clock - c->slots[oldest].used_at > token ? oldest : newest;
}

/* The slot for the expert at `place` of the list, or NONE: all hold what is needed before it. */
static uint32_t pick_slot(const struct k3_expert_cache *c, uint32_t place)
{
    uint32_t oldest = K3_EXPERT_NONE, newest = K3_EXPERT_NONE, latest = K3_EXPERT_NONE;
    for (uint32_t i = 0; i < c->slot_count; i++) {
        const struct k3_expert_slot *slot = &c->slots[i];
        if (slot->state == K3_SLOT_EMPTY) {
            return i;
        }
        if (slot->state != K3_SLOT_HERE || slot->holds > 0) {
            continue;
        }
        if (slot->wanted == K3_EXPERT_NONE) {
            oldest =
                oldest == K3_EXPERT_NONE || slot->used_at < c->slots[oldest].used_at ? i : oldest;
            newest =
                newest == K3_EXPERT_NONE || slot->used_at > c->slots[newest].used_at ? i : newest;
        } else if (slot->wanted > place &&
                   (latest == K3_EXPERT_NONE || slot->wanted > c->slots[latest].wanted)) {
            latest = i;
        }
    }
    return oldest == K3_EXPERT_NONE ? latest : pick_victim(c, oldest, newest);
}

bool k3_expert_job_take(struct k3_expert_cache *c, struct k3_expert_job *out_job)
{
    uint32_t place = c->taken;
    while (place < c->list_count && c->slot_of[c->list[place]] != K3_EXPERT_NONE) {
        place++;
    }
    const uint32_t at = place < c->list_count ? pick_slot(c, place) : K3_EXPERT_NONE;
    if (at == K3_EXPERT_NONE) {
        return false;
    }
    struct k3_expert_slot *slot = &c->slots[at];
    const uint32_t number = c->list[place];
    *out_job = (struct k3_expert_job){.slot = at,
                                      .number = number,
                                      .evicted = slot->number,
                                      .checks = k3_check_is_due(c->policy, c->is_checked[number])};
    if (slot->number != K3_EXPERT_NONE) {
        c->slot_of[slot->number] = K3_EXPERT_GOING;
    }
    c->slot_of[number] = at;
    *slot = (struct k3_expert_slot){.number = number, .wanted = place, .state = K3_SLOT_COMING};
    c->misses++;
    return true;
}

enum k3_code k3_expert_job_run(const struct k3_expert_cache *c, struct k3_expert_job *job,
                               struct k3_error *err)
{
    const struct k3_expert_layout *layout = &c->pack->tables.layout;
    if (job->evicted != K3_EXPERT_NONE) {
        k3_backing_drop(c->backing, k3_expert_offset(layout, job->evicted), layout->used_bytes);
    }
    const uint64_t offset = k3_expert_offset(layout, job->number);
    enum k3_code code = k3_backing_fetch(c->backing, offset, layout->used_bytes, err);
    if (code == K3_OK && job->checks) {
        const uint64_t start = k3_clock_ns();
        const struct k3_digest found =
            k3_digest_of(c->backing->base + offset, (size_t)layout->used_bytes);
        job->check_ns = k3_clock_ns() - start;
        code = k3_check_expert(c->pack, job->number, &found, err);
    }
    return code;
}

void k3_expert_job_finish(struct k3_expert_cache *c, const struct k3_expert_job *job,
                          enum k3_code code, const struct k3_error *err)
{
    struct k3_expert_slot *slot = &c->slots[job->slot];
    const uint64_t bytes = c->pack->tables.layout.used_bytes;
    if (job->evicted != K3_EXPERT_NONE) {
        c->slot_of[job->evicted] = K3_EXPERT_NONE;
    }
    c->read_bytes += bytes;
    if (code != K3_OK) {
        slot->state = K3_SLOT_BAD;
        if (c->error.code == K3_OK) {
            c->error = *err;
        }
        return;
    }
    if (job->checks) {
        c->is_checked[job->number] = 1;
        c->checked_bytes += bytes;
        c->check_ns += job->check_ns;
    }
    slot->state = K3_SLOT_HERE;
}
