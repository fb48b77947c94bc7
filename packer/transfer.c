/* SPDX-License-Identifier: Apache-2.0 */
#include "packer/transfer.h"

#include <stdlib.h>
#include <string.h>

#include "format/base/ckd.h"
#include "packer/hole.h"
#include "packer/journal_record.h"
#include "packer/journal_shard.h"

#define PIECE_BYTES    (UINT64_C(8) << 20)
#define TEAM_BYTES_MAX (UINT64_C(768) << 20)

static void finish_expert(void *context, unsigned place)
{
    struct k3_transfer *transfer = context;
    k3_expert_finish(&transfer->experts, &transfer->jobs[place]);
}

/* As many experts on their way as keep all threads busy and fit into the memory limit. */
static enum k3_code make_team(struct k3_transfer *transfer, unsigned jobs, struct k3_error *err)
{
    const uint64_t job_bytes =
        transfer->experts.shape.source_bytes + transfer->census->tables.layout.used_bytes + 1;
    const unsigned places = jobs == 1 ? 1 : jobs + 2;
    transfer->job_count = (unsigned)k3_min_u64(places, k3_max_u64(1, TEAM_BYTES_MAX / job_bytes));
    transfer->jobs = calloc(transfer->job_count, sizeof *transfer->jobs);
    if (!transfer->jobs) {
        return k3_fail_no_memory(err, "team of threads");
    }
    return k3_team_create((unsigned)k3_min_u64(jobs, transfer->job_count), transfer->job_count,
                          finish_expert, transfer, &transfer->team, err);
}

enum k3_code k3_transfer_init(struct k3_transfer *transfer, struct k3_census *census,
                              struct k3_target *target, const struct k3_manifest *manifest,
                              unsigned jobs, const struct k3_observer *observer,
                              struct k3_error *err)
{
    *transfer = (struct k3_transfer){
        .census = census, .target = target, .manifest = manifest, .observer = observer};
    struct k3_pack_tables *tables = &census->tables;
    struct k3_provenance *provenance = &census->provenance;
    enum k3_code code = k3_source_reader_init(&transfer->reader, &census->set, observer, err);
    if (code == K3_OK && manifest) {
        code = k3_sha256_create(&transfer->sha256, err);
        transfer->reader.sha256 = transfer->sha256;
    }
    if (code == K3_OK) {
        code = k3_schedule_make(tables, provenance, &transfer->schedule, err);
    }
    if (code == K3_OK) {
        code = k3_trunk_writer_init(&transfer->trunk, tables, provenance, &target->trunk,
                                    &transfer->reader, err);
    }
    if (code == K3_OK) {
        code = k3_expert_writer_init(&transfer->experts, tables, provenance, &target->experts,
                                     &transfer->reader, err);
    }
    if (code == K3_OK) {
        code = make_team(transfer, jobs, err);
    }
    if (code == K3_OK) {
        transfer->is_written =
            calloc((size_t)k3_expert_total(&tables->layout), sizeof *transfer->is_written);
        code = transfer->is_written ? K3_OK : k3_fail_no_memory(err, "expert list");
    }
    return code;
}

void k3_transfer_done(struct k3_transfer *transfer)
{
    k3_team_destroy(transfer->team);
    for (unsigned i = 0; transfer->jobs && i < transfer->job_count; i++) {
        k3_expert_job_done(&transfer->jobs[i]);
    }
    free(transfer->jobs);
    k3_source_reader_done(&transfer->reader);
    k3_sha256_destroy(transfer->sha256);
    k3_schedule_done(&transfer->schedule);
    k3_trunk_writer_done(&transfer->trunk);
    k3_expert_writer_done(&transfer->experts);
    k3_buffer_done(&transfer->scratch);
    free(transfer->is_written);
    *transfer = (struct k3_transfer){0};
}

enum k3_code k3_transfer_record(struct k3_transfer *transfer, unsigned kind, const uint8_t *payload,
                                size_t payload_len, struct k3_error *err)
{
    const struct k3_file *journal = &transfer->target->journal;
    uint8_t head[K3_JOURNAL_HEAD_BYTES];
    k3_journal_head_encode((enum k3_journal_kind)kind, payload, payload_len, head);
    enum k3_code code = k3_file_write(journal, transfer->journal_end, head, sizeof head, err);
    if (code == K3_OK) {
        code =
            k3_file_write(journal, transfer->journal_end + sizeof head, payload, payload_len, err);
    }
    if (code == K3_OK) {
        code = k3_file_sync(journal, err);
    }
    if (code == K3_OK) {
        transfer->journal_end += sizeof head + payload_len;
    }
    return code;
}

/* Bytes that are only digested: a shard's header, vision tensors, parts of scattered experts. */
static enum k3_code pass_over(struct k3_transfer *transfer, uint64_t offset, uint64_t len,
                              struct k3_digest *out_digest, struct k3_error *err)
{
    struct k3_digest_stream *digest = transfer->trunk.digest;
    enum k3_code code = k3_buffer_reserve(&transfer->scratch, k3_min_u64(PIECE_BYTES, len), err);
    k3_digest_stream_reset(digest);
    for (uint64_t done = 0; code == K3_OK && done < len; done += PIECE_BYTES) {
        bool is_zero = false;
        code = k3_source_read(&transfer->reader, offset + done, transfer->scratch.bytes,
                              k3_min_u64(PIECE_BYTES, len - done), digest, &is_zero, err);
    }
    if (code == K3_OK && out_digest) {
        *out_digest = k3_digest_stream_value(digest);
    }
    return code;
}

/* Are the entries at..at+5 of a shard the six parts of one expert? */
static bool are_together(const struct k3_transfer *transfer, const struct k3_shard *shard,
                         size_t at)
{
    const struct k3_census *census = transfer->census;
    if (shard->header.entry_count - at < K3_EXPERT_PARTS) {
        return false;
    }
    const uint32_t first = census->tables.source_count;
    const uint32_t *owner = census->owner + shard->first_tensor + at;
    const uint32_t expert = (owner[0] - first) / K3_EXPERT_PARTS;
    for (unsigned i = 1; i < K3_EXPERT_PARTS; i++) {
        if (owner[i] == K3_NO_SOURCE || owner[i] < first ||
            (owner[i] - first) / K3_EXPERT_PARTS != expert) {
            return false;
        }
    }
    return true;
}

/* Takes the oldest expert back. */
static enum k3_code collect_expert(struct k3_transfer *transfer, struct k3_error *err)
{
    const struct k3_expert_job *job = &transfer->jobs[k3_team_collect(transfer->team)];
    if (job->code != K3_OK) {
        *err = job->err;
        return job->code;
    }
    k3_expert_written(&transfer->experts, job);
    transfer->census->tables.expert_digests[job->expert] = job->digest;
    for (unsigned part = 0; part < K3_EXPERT_PARTS; part++) {
        transfer->census->provenance.experts[job->expert * K3_EXPERT_PARTS + part].digest =
            job->sources[part];
    }
    return K3_OK;
}

static enum k3_code collect_all(struct k3_transfer *transfer, struct k3_error *err)
{
    enum k3_code code = K3_OK;
    while (code == K3_OK && !k3_team_is_idle(transfer->team)) {
        code = collect_expert(transfer, err);
    }
    return code;
}

/* Reads an expert and hands it to the team. */
static enum k3_code write_expert(struct k3_transfer *transfer, uint64_t expert,
                                 struct k3_error *err)
{
    enum k3_code code = K3_OK;
    if (k3_team_is_full(transfer->team)) {
        code = collect_expert(transfer, err);
    }
    if (code == K3_OK) {
        code = k3_expert_read(&transfer->experts, expert,
                              &transfer->jobs[k3_team_place(transfer->team)], err);
    }
    if (code == K3_OK) {
        k3_team_submit(transfer->team);
    }
    return code;
}

/* The entry at *at, or all six of an expert; *at moves behind. */
static enum k3_code pack_entry(struct k3_transfer *transfer, const struct k3_shard *shard,
                               size_t *at, struct k3_error *err)
{
    struct k3_census *census = transfer->census;
    const struct k3_tensor_entry *entry = &shard->header.entries[*at];
    const uint32_t source = census->owner[shard->first_tensor + *at];
    const uint64_t offset = shard->header.data_start + entry->begin;
    const uint32_t first_expert = census->tables.source_count;
    if (source != K3_NO_SOURCE && source >= first_expert && are_together(transfer, shard, *at)) {
        const uint64_t expert = (source - first_expert) / K3_EXPERT_PARTS;
        *at += K3_EXPERT_PARTS;
        transfer->is_written[expert] = true;
        return write_expert(transfer, expert, err);
    }
    (*at)++;
    if (source == K3_NO_SOURCE || source >= first_expert) {
        struct k3_digest ignored;
        struct k3_digest *digest =
            source == K3_NO_SOURCE
                ? &ignored
                : &k3_source_at(&census->tables, &census->provenance, source)->digest;
        return pass_over(transfer, offset, entry->end - entry->begin, digest, err);
    }
    return k3_trunk_write(&transfer->trunk, source, &census->provenance.trunk[source].digest, err);
}

enum k3_code k3_transfer_check_sha256(const struct k3_transfer *transfer, uint32_t shard,
                                      struct k3_error *err)
{
    const struct k3_shard_record *record = &transfer->census->provenance.shards[shard];
    const struct k3_manifest_entry *e =
        transfer->manifest ? k3_manifest_find(transfer->manifest, record->name) : NULL;
    if (!e || (record->has_sha256 && memcmp(e->sha256, record->sha256, K3_SHA256_BYTES) == 0)) {
        return K3_OK;
    }
    char found[K3_SHA256_HEX_BYTES], expected[K3_SHA256_HEX_BYTES];
    k3_sha256_hex(record->sha256, found);
    k3_sha256_hex(e->sha256, expected);
    return k3_fail(
        err, K3_ERR_DAMAGED, K3_ERROR_NO_OFFSET,
        "'%s' has SHA-256 %s, must have %s; download it again, then run the same command "
        "to resume",
        record->name, found, expected);
}

static enum k3_code pass(struct k3_transfer *transfer, uint32_t shard_index, struct k3_error *err)
{
    const struct k3_shard *shard = &transfer->census->set.shards[shard_index];
    enum k3_code code = k3_source_begin(&transfer->reader, shard_index, err);
    if (code == K3_OK) {
        code = pass_over(transfer, 0, shard->header.data_start, NULL, err);
    }
    for (size_t at = 0; code == K3_OK && at < shard->header.entry_count;) {
        code = pack_entry(transfer, shard, &at, err);
    }
    if (code == K3_OK) {
        code = collect_all(transfer, err);
    }
    if (code == K3_OK) {
        code = k3_source_end(&transfer->reader,
                             &transfer->census->provenance.shards[shard_index].digest, err);
    }
    transfer->reader.is_sequential = false;
    if (code == K3_OK && transfer->sha256) {
        struct k3_shard_record *record = &transfer->census->provenance.shards[shard_index];
        k3_sha256_value(transfer->sha256, record->sha256);
        record->has_sha256 = true;
        code = k3_transfer_check_sha256(transfer, shard_index, err);
    }
    return code;
}

/* A block that was never written is a hole; all whole blocks of zeros have one digest. */
static enum k3_code digest_block(struct k3_transfer *transfer, const struct k3_trunk_extent *extent,
                                 uint32_t block, struct k3_digest *out_digest, struct k3_error *err)
{
    const struct k3_file *file = &transfer->target->trunk;
    const uint64_t offset = extent->file_offset + block * K3_TRUNK_BLOCK_BYTES;
    const bool is_hole = k3_trunk_block_bytes(extent, block) == K3_TRUNK_BLOCK_BYTES &&
                         k3_file_next_data(file, offset) >= offset + K3_TRUNK_BLOCK_BYTES;
    if (is_hole && transfer->has_zero_block) {
        *out_digest = transfer->zero_block;
        return K3_OK;
    }
    const enum k3_code code =
        k3_trunk_digest_block(extent, block, file, &transfer->scratch, out_digest, err);
    if (code == K3_OK && is_hole) {
        transfer->zero_block = *out_digest;
        transfer->has_zero_block = true;
    }
    return code;
}

static enum k3_code digest_extent(struct k3_transfer *transfer,
                                  const struct k3_trunk_extent *extent, struct k3_error *err)
{
    struct k3_digest *digests = &transfer->census->tables.block_digests[extent->block_first];
    for (uint32_t b = 0; b < k3_extent_block_count(extent); b++) {
        const enum k3_code code = digest_block(transfer, extent, b, &digests[b], err);
        if (code != K3_OK) {
            return code;
        }
        if (!k3_report(transfer->observer, "pack", "digests", transfer->reader.done_bytes,
                       transfer->reader.total_bytes)) {
            return k3_fail(err, K3_ERR_INTERRUPTED, K3_ERROR_NO_OFFSET, "stopped while packing");
        }
    }
    return K3_OK;
}

/* Everything that becomes complete with this shard and is not yet. */
static enum k3_code complete(struct k3_transfer *transfer, uint32_t shard, struct k3_error *err)
{
    struct k3_pack_tables *tables = &transfer->census->tables;
    const struct k3_schedule_list *list = &transfer->schedule.experts;
    enum k3_code code = K3_OK;
    for (uint32_t i = list->first[shard]; code == K3_OK && i < list->first[shard + 1]; i++) {
        if (!transfer->is_written[list->items[i]]) {
            code = k3_transfer_again_expert(transfer, list->items[i], err);
        }
    }
    list = &transfer->schedule.extents;
    for (uint32_t i = list->first[shard]; code == K3_OK && i < list->first[shard + 1]; i++) {
        code = digest_extent(transfer, &tables->extents[list->items[i]], err);
    }
    return code;
}

/* Data first, and only when they are durable the record that says so. */
static enum k3_code settle(struct k3_transfer *transfer, uint32_t shard, struct k3_error *err)
{
    enum k3_code code = k3_file_sync(&transfer->target->trunk, err);
    if (code == K3_OK) {
        code = k3_file_sync(&transfer->target->experts, err);
    }
    uint8_t *payload = NULL;
    size_t len = 0;
    if (code == K3_OK) {
        code = k3_journal_shard_encode(transfer->census, &transfer->schedule, shard, &payload, &len,
                                       err);
    }
    if (code == K3_OK) {
        code = k3_transfer_record(transfer, K3_JOURNAL_SHARD, payload, len, err);
    }
    free(payload);
    k3_cache_drop(&transfer->target->trunk, 0, k3_trunk_data_end(&transfer->census->tables));
    return code;
}

enum k3_code k3_transfer_run(struct k3_transfer *transfer, struct k3_error *err)
{
    const uint32_t shard_count = transfer->census->provenance.shard_count;
    for (uint32_t i = 0; i < transfer->shards_done; i++) {
        transfer->reader.done_bytes += transfer->census->set.shards[i].file_bytes;
    }
    k3_expert_writer_go_direct(&transfer->experts);
    while (transfer->shards_done < shard_count) {
        const uint32_t shard = transfer->shards_done;
        enum k3_code code = pass(transfer, shard, err);
        if (code == K3_OK) {
            code = complete(transfer, shard, err);
        }
        if (code == K3_OK) {
            code = settle(transfer, shard, err);
        }
        if (code != K3_OK) {
            return code;
        }
        transfer->shards_done++;
        k3_report_shard(transfer->observer, "packed",
                        transfer->census->provenance.shards[shard].name);
    }
    return K3_OK;
}

static enum k3_code expect_digest(const struct k3_transfer *transfer, uint32_t source,
                                  const struct k3_digest *found, struct k3_error *err)
{
    const struct k3_pack_tables *tables = &transfer->census->tables;
    const struct k3_source_record *record =
        k3_source_at(tables, &transfer->census->provenance, source);
    if (k3_digest_equal(found, &record->digest)) {
        return K3_OK;
    }
    char name[K3_TENSOR_NAME_MAX];
    k3_source_name(tables, source, name);
    return k3_fail(err, K3_ERR_DAMAGED, record->offset,
                   "'%s': tensor '%s' reads differently than before: it was changed, or the disk "
                   "or memory fails; check it, then run again with --restart",
                   transfer->census->set.shards[record->shard].name, name);
}

enum k3_code k3_transfer_again_trunk(struct k3_transfer *transfer, uint32_t source,
                                     struct k3_error *err)
{
    struct k3_digest digest;
    const uint32_t shard = transfer->census->provenance.trunk[source].shard;
    enum k3_code code = k3_source_seek(&transfer->reader, shard, err);
    if (code == K3_OK) {
        code = k3_trunk_write(&transfer->trunk, source, &digest, err);
    }
    return code == K3_OK ? expect_digest(transfer, source, &digest, err) : code;
}

enum k3_code k3_transfer_again_expert(struct k3_transfer *transfer, uint64_t expert,
                                      struct k3_error *err)
{
    struct k3_digest sources[K3_EXPERT_PARTS];
    enum k3_code code = k3_expert_write(&transfer->experts, expert, sources,
                                        &transfer->census->tables.expert_digests[expert], err);
    for (unsigned part = 0; code == K3_OK && part < K3_EXPERT_PARTS; part++) {
        code = expect_digest(transfer, k3_expert_source(&transfer->census->tables, expert, part),
                             &sources[part], err);
    }
    return code;
}
