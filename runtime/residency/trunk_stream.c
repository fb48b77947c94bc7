/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/residency/trunk_stream.h"

#include <stdlib.h>

#include "format/base/assert.h"
#include "format/base/ckd.h"
#include "format/base/clock.h"

enum k3_code k3_trunk_stream_init(const struct k3_pack *pack, struct k3_backing *backing,
                                  const struct k3_budget *budget, enum k3_check_policy policy,
                                  bool locks_pin, struct k3_trunk_stream *out_stream,
                                  struct k3_error *err)
{
    const struct k3_pack_tables *tables = &pack->tables;
    const struct k3_trunk_path path = k3_trunk_path_of(tables);
    struct k3_trunk_stream s = {.pack = pack,
                                .backing = backing,
                                .policy = policy,
                                .locks_pin = locks_pin,
                                .count = path.block_count,
                                .head_first = path.head_first,
                                .window_bytes = budget->window_bytes};
    s.blocks = calloc(s.count, sizeof *s.blocks);
    if (!s.blocks) {
        return k3_fail_no_memory(err, "trunk blocks");
    }
    for (uint32_t e = 0; e < tables->extent_count; e++) {
        const uint32_t first = tables->extents[e].block_first;
        const uint32_t blocks = k3_extent_block_count(&tables->extents[e]);
        for (uint32_t b = 0; b < blocks && first + b < s.count; b++) {
            const struct k3_trunk_block block = k3_trunk_block_of(tables, e, b);
            s.blocks[first + b] = (struct k3_stream_block){
                .file_offset = block.file_offset,
                .bytes = (uint32_t)block.bytes,
                .kept = (uint32_t)k3_block_kept(&block, budget->share_bytes),
                .extent = e,
            };
        }
    }
    *out_stream = s;
    return K3_OK;
}

void k3_trunk_stream_done(struct k3_trunk_stream *stream)
{
    free(stream->blocks);
    *stream = (struct k3_trunk_stream){0};
}

static uint64_t round_to_pass(const struct k3_trunk_stream *s, uint64_t position)
{
    return (position + s->count - 1) / s->count * s->count;
}

void k3_trunk_stream_pass(struct k3_trunk_stream *s, bool needs_head)
{
    s->at = round_to_pass(s, s->at);
    s->next = k3_max_u64(s->next, s->at);
    s->pass = s->at / s->count;
    s->has_begun = true;
    s->needs_head = needs_head;
}

/* The block that holds a file offset: the last that starts at or before it. */
static uint32_t block_at(const struct k3_trunk_stream *s, uint64_t offset)
{
    uint32_t low = 0, high = s->count;
    while (high - low > 1) {
        const uint32_t middle = low + (high - low) / 2;
        if (s->blocks[middle].file_offset <= offset) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return low;
}

static uint32_t last_block(const struct k3_trunk_stream *s, uint64_t offset, uint64_t bytes)
{
    return block_at(s, offset + bytes - 1);
}

/* What must be read for the blocks up to `end` when nothing but the pinned part is kept. */
static void count_ideal(struct k3_trunk_stream *s, uint64_t end)
{
    for (uint64_t p = k3_max_u64(s->counted, s->at); p < end; p++) {
        struct k3_stream_block *b = &s->blocks[p % s->count];
        s->ideal_bytes += b->was_used ? b->bytes - b->kept : b->bytes;
        b->was_used = true;
    }
    s->counted = k3_max_u64(s->counted, end);
}

void k3_trunk_stream_hold(struct k3_trunk_stream *s, uint64_t offset, uint64_t bytes)
{
    const uint32_t first = block_at(s, offset), last = last_block(s, offset, bytes);
    const uint32_t here = (uint32_t)(s->at % s->count);
    s->at += first >= here ? first - here : s->count - here + first;
    s->next = k3_max_u64(s->next, s->at); /* a reader that jumps takes the stream along */
    s->needed = s->at + (last - first) + 1;
    count_ideal(s, s->needed);
    for (uint32_t b = first; b <= last; b++) {
        k3_assert(s->blocks[b].holds < UINT16_MAX);
        s->blocks[b].holds++;
    }
}

enum k3_code k3_trunk_stream_poll(const struct k3_trunk_stream *s, uint64_t offset, uint64_t bytes,
                                  bool *out_is_ready, struct k3_error *err)
{
    bool is_ready = true;
    for (uint32_t b = block_at(s, offset); b <= last_block(s, offset, bytes); b++) {
        if (s->blocks[b].state == K3_BLOCK_BAD) {
            if (err) {
                *err = s->error;
            }
            return s->error.code;
        }
        is_ready = is_ready && s->blocks[b].state == K3_BLOCK_HERE;
    }
    *out_is_ready = is_ready;
    return K3_OK;
}

void k3_trunk_stream_release(struct k3_trunk_stream *s, uint64_t offset, uint64_t bytes)
{
    /* Tensors start on 4096: a range that ends less than that before the block's end used it up. */
    const uint64_t end = k3_round_up(offset + bytes, K3_MATRIX_ALIGN);
    const uint32_t last = last_block(s, offset, bytes);
    for (uint32_t b = block_at(s, offset); b <= last; b++) {
        k3_assert(s->blocks[b].holds > 0);
        s->blocks[b].holds--;
        const bool is_used_up = end >= s->blocks[b].file_offset + s->blocks[b].bytes;
        if (is_used_up && s->blocks[b].holds == 0 && s->at % s->count == b) {
            s->at++;
        }
    }
}

/* The oldest used block that can go. */
static bool take_drop(struct k3_trunk_stream *s, struct k3_trunk_job *out_job)
{
    for (; s->oldest < s->at && s->oldest < s->next; s->oldest++) {
        const uint32_t number = (uint32_t)(s->oldest % s->count);
        struct k3_stream_block *b = &s->blocks[number];
        const uint64_t again = s->oldest + s->count;
        if (again >= s->at && again < s->needed) {
            continue; /* a reader that jumped has come to it again */
        }
        if (b->state == K3_BLOCK_COMING || b->holds > 0) {
            return false;
        }
        if (b->state == K3_BLOCK_HERE && b->kept < b->bytes) {
            b->state = K3_BLOCK_GOING;
            *out_job = (struct k3_trunk_job){.block = number, .is_drop = true};
            s->oldest++;
            return true;
        }
    }
    return false;
}

static bool may_enter_head(struct k3_trunk_stream *s)
{
    if (s->next % s->count < s->head_first || s->next < s->needed) {
        return true;
    }
    return s->has_begun && s->next / s->count == s->pass && s->needs_head;
}

/* Pages of a mapping that is not locked can be taken by the kernel for somebody else. Populating
 * them once a pass, ahead of the reader, costs next to nothing where they are still there, and
 * where they are not it is the input thread that waits. */
static bool can_be_taken(const struct k3_trunk_stream *s)
{
    return s->backing && s->backing->kind == K3_IO_MMAP && !s->locks_pin;
}

static bool take_fetch(struct k3_trunk_stream *s, struct k3_trunk_job *out_job)
{
    while (s->next < s->at + s->count && s->next < s->oldest + s->count) {
        if (!may_enter_head(s)) {
            if (!s->has_begun || s->next / s->count > s->pass) {
                return false; /* nobody has said whether that pass needs the head */
            }
            s->next = round_to_pass(s, s->next);
            continue;
        }
        const uint32_t number = (uint32_t)(s->next % s->count);
        struct k3_stream_block *b = &s->blocks[number];
        if (b->state == K3_BLOCK_HERE || b->state == K3_BLOCK_BAD) {
            s->next++;
            if (b->state == K3_BLOCK_HERE && b->kept == b->bytes && can_be_taken(s)) {
                *out_job = (struct k3_trunk_job){.block = number, .is_refresh = true};
                return true;
            }
            continue;
        }
        const uint64_t room = b->bytes - b->kept;
        const bool fits = s->window_used + room <= s->window_bytes;
        if (b->state != K3_BLOCK_ABSENT || (!fits && room > 0 && s->next >= s->needed)) {
            return false;
        }
        b->state = K3_BLOCK_COMING;
        s->window_used += room;
        s->next++;
        *out_job = (struct k3_trunk_job){.block = number,
                                         .from = b->has_kept && !can_be_taken(s) ? b->kept : 0,
                                         .checks = k3_check_is_due(s->policy, b->is_checked)};
        return true;
    }
    return false;
}

bool k3_trunk_job_take(struct k3_trunk_stream *stream, struct k3_trunk_job *out_job)
{
    return take_drop(stream, out_job) || take_fetch(stream, out_job);
}

enum k3_code k3_trunk_job_run(const struct k3_trunk_stream *s, struct k3_trunk_job *job,
                              struct k3_error *err)
{
    const struct k3_stream_block *b = &s->blocks[job->block];
    if (job->is_drop) {
        k3_backing_drop(s->backing, b->file_offset + b->kept, b->bytes - b->kept);
        return K3_OK;
    }
    enum k3_code code = K3_OK;
    if (job->from < b->bytes) {
        code = k3_backing_fetch(s->backing, b->file_offset + job->from, b->bytes - job->from, err);
    }
    if (code == K3_OK && job->checks) {
        const uint64_t start = k3_clock_ns();
        const struct k3_digest found =
            k3_digest_of(s->backing->base + b->file_offset, (size_t)b->bytes);
        job->check_ns = k3_clock_ns() - start;
        const struct k3_trunk_extent *extent = &s->pack->tables.extents[b->extent];
        code = k3_check_block(s->pack, b->extent, job->block - extent->block_first, &found, err);
    }
    return code;
}

static void settle_pin(struct k3_trunk_stream *s, struct k3_stream_block *b)
{
    if (b->kept > 0 && !b->has_kept) {
        b->has_kept = true;
        s->pinned_bytes += b->kept;
        if (s->locks_pin && !k3_backing_lock(s->backing, b->file_offset, b->kept)) {
            s->refused_locks++;
            s->locks_pin = false; /* it holds softly */
        }
    }
}

void k3_trunk_job_finish(struct k3_trunk_stream *s, const struct k3_trunk_job *job,
                         enum k3_code code, const struct k3_error *err)
{
    struct k3_stream_block *b = &s->blocks[job->block];
    const uint64_t room = b->bytes - b->kept;
    if (job->is_drop) {
        b->state = K3_BLOCK_ABSENT;
        s->window_used -= room;
        return;
    }
    if (!job->is_refresh) {
        s->read_bytes += b->bytes - (b->has_kept ? b->kept : 0);
    }
    if (code != K3_OK) {
        b->state = K3_BLOCK_BAD;
        if (s->error.code == K3_OK) {
            s->error = *err;
        }
        return;
    }
    if (job->checks) {
        b->is_checked = true;
        s->checked_bytes += b->bytes;
        s->check_ns += job->check_ns;
    }
    if (!job->is_refresh) {
        b->state = K3_BLOCK_HERE;
        settle_pin(s, b);
    }
}
