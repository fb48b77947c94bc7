/* SPDX-License-Identifier: Apache-2.0 */
#include "packer/resume.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "format/base/bytes.h"
#include "format/base/ckd.h"
#include "packer/hole.h"
#include "packer/journal_identity.h"
#include "packer/journal_record.h"
#include "packer/journal_shard.h"

#define JOURNAL_BYTES_MAX (UINT64_C(4) << 30)

/* What stands in a journal, before it is believed. */
struct contents {
    uint8_t *bytes; /* owned */
    size_t len;
    const uint8_t *identity; /* the last one; NULL: none */
    size_t identity_len;
    uint32_t shards; /* records 0.. in order */
};

static enum k3_code read_journal(const struct k3_file *file, struct contents *c,
                                 struct k3_error *err)
{
    uint64_t bytes = 0;
    enum k3_code code = k3_file_size(file, &bytes, err);
    if (code != K3_OK) {
        return code;
    }
    if (bytes > JOURNAL_BYTES_MAX) {
        return k3_fail(err, K3_ERR_MALFORMED, 0, "'%s' is not a journal of k3pack", file->path);
    }
    c->bytes = malloc((size_t)bytes + 1);
    if (!c->bytes) {
        return k3_fail_no_memory(err, "journal");
    }
    c->len = (size_t)bytes;
    return k3_file_read(file, 0, c->bytes, c->len, err);
}

static void survey(struct contents *c)
{
    struct k3_journal_record record;
    for (size_t at = 0; k3_journal_record_next(c->bytes, c->len, &at, &record);) {
        if (record.kind == K3_JOURNAL_IDENTITY) {
            c->identity = record.payload;
            c->identity_len = record.payload_len;
        } else if (!c->identity || record.payload_len < 4 ||
                   k3_le32_get(record.payload) != c->shards) {
            return;
        } else {
            c->shards++;
        }
    }
}

/* Takes the digests of the records over; returns the end of the last one that fits. */
static size_t accept_records(struct k3_transfer *transfer, const struct contents *c)
{
    struct k3_journal_record record;
    size_t at = 0, end = 0;
    while (k3_journal_record_next(c->bytes, c->len, &at, &record)) {
        if (record.kind == K3_JOURNAL_SHARD) {
            if (transfer->shards_done >= transfer->schedule.shard_count ||
                !k3_journal_shard_decode(transfer->census, &transfer->schedule,
                                         transfer->shards_done, record.payload,
                                         record.payload_len)) {
                break;
            }
            transfer->shards_done++;
        }
        end = at;
    }
    return end;
}

/* The journal ends at `end`; what is packed from now on is written down first. */
static enum k3_code continue_at(struct k3_transfer *transfer, uint64_t end, bool needs_identity,
                                const uint8_t *now, size_t now_len, struct k3_error *err)
{
    transfer->journal_end = end;
    enum k3_code code = k3_file_truncate(&transfer->target->journal, end, err);
    if (code == K3_OK && needs_identity) {
        code = k3_transfer_record(transfer, K3_JOURNAL_IDENTITY, now, now_len, err);
    }
    return code == K3_OK ? k3_folder_sync(transfer->target->folder, err) : code;
}

static enum k3_code use_contents(struct k3_transfer *transfer, const struct contents *c,
                                 const uint8_t *now, size_t now_len, struct k3_problems *changes,
                                 struct k3_error *err)
{
    if (!c->identity) {
        return continue_at(transfer, 0, true, now, now_len, err);
    }
    bool later_changed = false;
    k3_identity_compare(c->identity, c->identity_len, now, now_len, c->shards, changes,
                        &later_changed);
    if (changes->total > 0 && c->shards == 0) {
        k3_problems_done(changes); /* nothing was done yet that could be wrong now */
        return continue_at(transfer, 0, true, now, now_len, err);
    }
    if (changes->total > 0) {
        return k3_fail(err, K3_ERR_MALFORMED, K3_ERROR_NO_OFFSET,
                       "'%s' holds an unfinished pack of something else (%s); to give it up and "
                       "start over, run again with --restart",
                       transfer->target->folder, changes->lines ? changes->lines[0] : "changed");
    }
    const size_t end = accept_records(transfer, c);
    for (uint32_t i = 0; i < transfer->shards_done; i++) {
        const enum k3_code code = k3_transfer_check_sha256(transfer, i, err);
        if (code != K3_OK) {
            return k3_error_context(err, code, "already packed (--restart gives that up)");
        }
    }
    return continue_at(transfer, end, later_changed || end < c->len, now, now_len, err);
}

enum k3_code k3_resume_journal(struct k3_transfer *transfer, const uint8_t *now, size_t now_len,
                               struct k3_problems *changes, struct k3_error *err)
{
    struct contents c = {0};
    enum k3_code code = read_journal(&transfer->target->journal, &c, err);
    if (code == K3_OK) {
        survey(&c);
        code = use_contents(transfer, &c, now, now_len, changes, err);
    }
    free(c.bytes);
    return code;
}

/* Makes a range read as zeros by touching only what holds data. */
static enum k3_code clear(const struct k3_file *file, uint64_t offset, uint64_t bytes,
                          struct k3_error *err)
{
    const uint64_t end = offset + bytes;
    enum k3_code code = K3_OK;
    for (uint64_t at = k3_file_next_data(file, offset); code == K3_OK && at < end;) {
        const uint64_t data_end = k3_min_u64(k3_file_next_hole(file, at), end);
        code = k3_file_zero_range(file, at, data_end - at, err);
        at = k3_file_next_data(file, data_end);
    }
    return code;
}

struct checking {
    struct k3_transfer *transfer;
    struct k3_resume_report *report;
    uint64_t total_bytes;
};

static enum k3_code count_checked(struct checking *c, uint64_t bytes, struct k3_error *err)
{
    c->report->checked_bytes += bytes;
    if (!k3_report(c->transfer->observer, "check", "what is already packed",
                   c->report->checked_bytes, c->total_bytes)) {
        return k3_fail(err, K3_ERR_INTERRUPTED, K3_ERROR_NO_OFFSET,
                       "stopped while checking what is already packed");
    }
    return K3_OK;
}

/* Writes those sources of an extent again whose shards are done. */
static enum k3_code redo_extent(struct k3_transfer *transfer, const struct k3_trunk_extent *extent,
                                struct k3_error *err)
{
    const struct k3_pack_tables *tables = &transfer->census->tables;
    enum k3_code code =
        clear(&transfer->target->trunk, extent->file_offset, extent->used_bytes, err);
    for (uint32_t i = 0; code == K3_OK && i < extent->tensor_count; i++) {
        const struct k3_trunk_tensor *tensor = &tables->tensors[extent->tensor_first + i];
        const bool is_done =
            transfer->census->provenance.trunk[tensor->source].shard < transfer->shards_done;
        if (is_done && !k3_role_shares_source(tensor->role)) {
            code = k3_transfer_again_trunk(transfer, tensor->source, err);
        }
    }
    return code;
}

static enum k3_code digest_again(struct k3_transfer *t, const struct k3_trunk_extent *extent,
                                 struct k3_error *err)
{
    enum k3_code code = K3_OK;
    for (uint32_t b = 0; code == K3_OK && b < k3_extent_block_count(extent); b++) {
        code =
            k3_trunk_digest_block(extent, b, &t->target->trunk, &t->scratch,
                                  &t->census->tables.block_digests[extent->block_first + b], err);
    }
    return code;
}

/* An extent that is complete: are its blocks as recorded? If not, again. */
static enum k3_code check_extent(struct checking *c, const struct k3_trunk_extent *extent,
                                 struct k3_error *err)
{
    struct k3_transfer *t = c->transfer;
    bool is_good = true;
    enum k3_code code = K3_OK;
    for (uint32_t b = 0; code == K3_OK && b < k3_extent_block_count(extent); b++) {
        struct k3_digest found;
        code = k3_trunk_digest_block(extent, b, &t->target->trunk, &t->scratch, &found, err);
        if (code == K3_OK) {
            is_good =
                is_good &&
                k3_digest_equal(&found, &t->census->tables.block_digests[extent->block_first + b]);
            code = count_checked(c, k3_trunk_block_bytes(extent, b), err);
        }
    }
    if (code == K3_OK && !is_good) {
        c->report->redone_extents++;
        code = redo_extent(t, extent, err);
        if (code == K3_OK) {
            code = digest_again(t, extent, err);
        }
    }
    k3_cache_drop(&t->target->trunk, extent->file_offset, extent->used_bytes);
    return code;
}

static enum k3_code check_expert(struct checking *c, uint64_t expert, struct k3_error *err)
{
    struct k3_transfer *t = c->transfer;
    const struct k3_expert_layout *layout = &t->census->tables.layout;
    const uint64_t offset = k3_expert_offset(layout, expert);
    enum k3_code code = k3_buffer_reserve(&t->scratch, layout->used_bytes, err);
    if (code == K3_OK) {
        code = k3_file_read(&t->target->experts, offset, t->scratch.bytes,
                            (size_t)layout->used_bytes, err);
    }
    if (code != K3_OK) {
        return code;
    }
    const struct k3_digest found = k3_digest_of(t->scratch.bytes, (size_t)layout->used_bytes);
    if (!k3_digest_equal(&found, &t->census->tables.expert_digests[expert])) {
        c->report->redone_experts++;
        code = clear(&t->target->experts, offset, layout->used_bytes, err);
        if (code == K3_OK) {
            code = k3_transfer_again_expert(t, expert, err);
        }
    }
    k3_cache_drop(&t->target->experts, offset, layout->used_bytes);
    return code == K3_OK ? count_checked(c, layout->used_bytes, err) : code;
}

static enum k3_code check_trunk(struct checking *c, struct k3_error *err)
{
    const struct k3_transfer *t = c->transfer;
    const struct k3_pack_tables *tables = &t->census->tables;
    enum k3_code code = K3_OK;
    for (uint32_t e = 0; code == K3_OK && e < tables->extent_count; e++) {
        const bool is_complete =
            k3_extent_last_shard(tables, &t->census->provenance, e) < t->shards_done;
        code = is_complete ? check_extent(c, &tables->extents[e], err)
                           : redo_extent(c->transfer, &tables->extents[e], err);
    }
    return code;
}

/* Experts that are not done lie in runs; each run, gaps included, is cleared at once. */
static enum k3_code check_experts(struct checking *c, struct k3_error *err)
{
    const struct k3_transfer *t = c->transfer;
    const struct k3_expert_layout *layout = &t->census->tables.layout;
    const uint64_t total = k3_expert_total(layout);
    enum k3_code code = K3_OK;
    uint64_t run = 0; /* experts before the current one that are not done */
    for (uint64_t e = 0; code == K3_OK && e <= total; e++) {
        const bool is_end = e == total;
        const bool is_done =
            !is_end && k3_expert_last_shard(&t->census->provenance, e) < t->shards_done;
        if (!is_end && !is_done) {
            run++;
            continue;
        }
        if (run > 0) {
            code = clear(&t->target->experts, k3_expert_offset(layout, e - run),
                         (run - 1) * layout->stride + layout->used_bytes, err);
            run = 0;
        }
        if (code == K3_OK && is_done) {
            code = check_expert(c, e, err);
        }
    }
    return code;
}

/* Nothing is ever written between extents; what a damaged partial file has there would stay. */
static enum k3_code clear_gaps(struct k3_transfer *t, struct k3_error *err)
{
    const struct k3_pack_tables *tables = &t->census->tables;
    const struct k3_file *trunk = &t->target->trunk, *experts = &t->target->experts;
    const struct k3_expert_layout *layout = &tables->layout;
    const uint64_t gap = layout->stride - layout->used_bytes;
    enum k3_code code = clear(trunk, 0, K3_DATA_OFFSET, err);
    for (uint32_t e = 0; code == K3_OK && e + 1 < tables->extent_count; e++) {
        const uint64_t end = tables->extents[e].file_offset + tables->extents[e].used_bytes;
        code = clear(trunk, end, tables->extents[e + 1].file_offset - end, err);
    }
    if (code == K3_OK) {
        code = clear(experts, 0, K3_DATA_OFFSET, err);
    }
    for (uint64_t e = 0; code == K3_OK && gap > 0 && e + 1 < k3_expert_total(layout); e++) {
        code = clear(experts, k3_expert_offset(layout, e) + layout->used_bytes, gap, err);
    }
    return code;
}

static uint64_t bytes_done(const struct k3_transfer *t)
{
    const struct k3_schedule *s = &t->schedule;
    uint64_t bytes =
        (uint64_t)s->experts.first[t->shards_done] * t->census->tables.layout.used_bytes;
    for (uint32_t i = 0; i < s->extents.first[t->shards_done]; i++) {
        bytes += t->census->tables.extents[s->extents.items[i]].used_bytes;
    }
    return bytes;
}

enum k3_code k3_resume_data(struct k3_transfer *transfer, struct k3_resume_report *out_report,
                            struct k3_error *err)
{
    struct k3_resume_report report = {.shards_done = transfer->shards_done};
    struct checking c = {
        .transfer = transfer, .report = &report, .total_bytes = bytes_done(transfer)};
    enum k3_code code = clear_gaps(transfer, err);
    if (code == K3_OK) {
        code = check_trunk(&c, err);
    }
    if (code == K3_OK) {
        code = check_experts(&c, err);
    }
    if (code == K3_OK) {
        *out_report = report;
    }
    return code;
}
