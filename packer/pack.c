/* SPDX-License-Identifier: Apache-2.0 */
#include "packer/pack.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/pack/pack_reader.h"
#include "format/pack/pack_seal.h"
#include "packer/journal_identity.h"
#include "packer/preflight.h"

/* One run. */
struct run {
    struct k3_census census;
    struct k3_manifest manifest;
    struct k3_target target;
    struct k3_transfer transfer;
    uint8_t *identity; /* owned */
    size_t identity_len;
    const struct k3_pack_request *request;
    const struct k3_observer *observer;
    struct k3_problems *problems;
    struct k3_pack_report report;
};

static void note_skipped(const struct run *run)
{
    const struct k3_census *c = &run->census;
    if (c->skipped_tensors > 0) {
        char line[160];
        snprintf(line, sizeof line,
                 "skipped %zu vision tensors (%" PRIu64 " bytes); %zu shards hold nothing else",
                 c->skipped_tensors, c->skipped_bytes, c->skipped_shards);
        k3_note(run->observer, line);
    }
}

static bool bundles_are_equal(const struct k3_file_bundle *a, const struct k3_file_bundle *b)
{
    for (unsigned i = 0; i < K3_BUNDLED_COUNT; i++) {
        const size_t len = a->files[i].len;
        if ((a->files[i].bytes == NULL) != (b->files[i].bytes == NULL) || len != b->files[i].len ||
            (len > 0 && memcmp(a->files[i].bytes, b->files[i].bytes, len) != 0)) {
            return false;
        }
    }
    return true;
}

static bool shards_are_equal(const struct k3_provenance *a, const struct k3_provenance *b)
{
    bool same = a->shard_count == b->shard_count;
    for (uint32_t i = 0; same && i < a->shard_count; i++) {
        same = strcmp(a->shards[i].name, b->shards[i].name) == 0 &&
               a->shards[i].file_bytes == b->shards[i].file_bytes;
    }
    return same;
}

/* Does this finished pack hold the same tensors from the same places, and the same small files? A
 * cheap answer: weights are not compared. */
static bool is_pack_of(const struct k3_census *census, const struct k3_pack *pack,
                       const struct k3_provenance *p)
{
    const struct k3_pack_tables *tables = &census->tables;
    if (!k3_model_spec_equal(&tables->spec, &pack->tables.spec) ||
        tables->source_count != pack->tables.source_count ||
        !shards_are_equal(p, &census->provenance) ||
        !bundles_are_equal(&census->files, &pack->files)) {
        return false;
    }
    const uint32_t total = k3_expert_source(tables, k3_expert_total(&tables->layout), 0);
    for (uint32_t source = 0; source < total; source++) {
        const struct k3_source_record *a = k3_source_at(tables, &census->provenance, source);
        const struct k3_source_record *b = k3_source_at(tables, p, source);
        if (a->shard != b->shard || a->offset != b->offset || a->bytes != b->bytes) {
            return false;
        }
    }
    return true;
}

static enum k3_code measure_pack(const struct k3_file files[3], struct k3_pack_report *report,
                                 struct k3_error *err)
{
    uint64_t *sizes[3] = {&report->index_bytes, &report->trunk_bytes, &report->experts_bytes};
    report->allocated_bytes = 0;
    for (unsigned i = 0; i < 3; i++) {
        uint64_t allocated = 0;
        enum k3_code code = k3_file_size(&files[i], sizes[i], err);
        if (code == K3_OK) {
            code = k3_file_allocated(&files[i], &allocated, err);
        }
        if (code != K3_OK) {
            return code;
        }
        report->allocated_bytes += allocated;
    }
    return K3_OK;
}

static enum k3_code report_pack(const struct k3_pack *pack, struct k3_pack_report *report,
                                struct k3_error *err)
{
    const struct k3_file files[3] = {pack->index, pack->trunk, pack->experts};
    report->pack_id = pack->superblock.pack_id;
    return measure_pack(files, report, err);
}

/* A finished pack is in the folder. */
static enum k3_code meet_pack(struct run *run, struct k3_error *err)
{
    struct k3_pack pack = {0};
    struct k3_provenance provenance = {0};
    const char *folder = run->target.folder;
    if (run->request->restart) {
        return k3_fail(
            err, K3_ERR_CANT_CREATE, K3_ERROR_NO_OFFSET,
            "'%s' holds a finished pack, which --restart does not touch; remove it first", folder);
    }
    enum k3_code code = k3_pack_open(folder, &pack, err);
    if (code != K3_OK) {
        return k3_error_context(err, code,
                                "'%s' already holds a pack, which cannot be used (see "
                                "k3pack --verify and --repair)",
                                folder);
    }
    code = k3_index_provenance(&pack.sections, &pack.tables, &provenance, err);
    if (code == K3_OK && !is_pack_of(&run->census, &pack, &provenance)) {
        code = k3_fail(err, K3_ERR_CANT_CREATE, K3_ERROR_NO_OFFSET,
                       "'%s' already holds a pack of another checkpoint; choose another folder or "
                       "remove it first",
                       folder);
    }
    if (code == K3_OK) {
        run->report.was_packed = true;
        code = report_pack(&pack, &run->report, err);
    }
    if (code == K3_OK) {
        code = k3_target_remove_journal(&run->target, err); /* a crash right after the seal */
    }
    k3_provenance_done(&provenance);
    k3_pack_close(&pack);
    return code;
}

/* Journal and data files are such that every place that will be written reads as zeros. */
static enum k3_code prepare(struct run *run, struct k3_error *err)
{
    struct k3_transfer *t = &run->transfer;
    const struct k3_pack_tables *tables = &run->census.tables;
    enum k3_code code = K3_OK;
    if (run->request->restart) {
        code = k3_file_truncate(&run->target.journal, 0, err);
    }
    if (code == K3_OK) {
        code = k3_resume_journal(t, run->identity, run->identity_len, run->problems, err);
    }
    if (code == K3_OK) {
        code = k3_target_open_data(&run->target, t->shards_done == 0, k3_trunk_data_end(tables),
                                   k3_experts_data_end(tables), err);
    }
    if (code == K3_OK && t->shards_done > 0) {
        code = k3_resume_data(t, &run->report.resumed, err);
    }
    return code;
}

static enum k3_code report_done(struct run *run, struct k3_error *err)
{
    struct k3_pack pack = {0};
    enum k3_code code = k3_pack_open(run->target.folder, &pack, err);
    if (code == K3_OK) {
        code = report_pack(&pack, &run->report, err);
        k3_pack_close(&pack);
    }
    return code;
}

static enum k3_code transfer_and_seal(struct run *run, struct k3_error *err)
{
    enum k3_code code = prepare(run, err);
    if (code == K3_OK) {
        code = k3_transfer_run(&run->transfer, err);
    }
    if (code == K3_OK) {
        struct k3_digest pack_id;
        code = k3_pack_seal(run->target.folder, &run->target.trunk, &run->target.experts,
                            &run->census.tables, &run->census.files, &run->census.provenance,
                            &pack_id, err);
    }
    if (code == K3_OK) {
        code = k3_target_remove_journal(&run->target, err);
    }
    return code == K3_OK ? report_done(run, err) : code;
}

static enum k3_code make_pack(struct run *run, struct k3_error *err)
{
    struct k3_space space;
    enum k3_code code =
        k3_preflight(run->target.folder, &run->report.plan, &run->census.set,
                     k3_target_held_bytes(&run->target), run->observer, &space, err);
    if (code != K3_OK) {
        k3_target_forget(&run->target);
        return code;
    }
    code = k3_identity_encode(&run->census, &run->identity, &run->identity_len, err);
    if (code == K3_OK) {
        code = k3_transfer_init(&run->transfer, &run->census, &run->target,
                                run->request->manifest ? &run->manifest : NULL, run->request->jobs,
                                run->observer, err);
    }
    return code == K3_OK ? transfer_and_seal(run, err) : code;
}

static enum k3_code read_manifest(struct run *run, struct k3_error *err)
{
    enum k3_code code = k3_manifest_read(run->request->manifest, &run->manifest, err);
    if (code == K3_OK) {
        run->census.has_sha256 = true;
        code = k3_manifest_check(&run->manifest, &run->census, run->problems, err);
    }
    return code == K3_OK ? k3_problems_result(run->problems, run->request->checkpoint, err) : code;
}

enum k3_code k3_pack_make(const struct k3_pack_request *request, const struct k3_observer *observer,
                          struct k3_problems *problems, struct k3_pack_report *out_report,
                          struct k3_error *err)
{
    struct run run = {.request = request, .observer = observer, .problems = problems};
    enum k3_code code = k3_target_check_apart(request->folder, request->checkpoint, err);
    if (code == K3_OK) {
        code = k3_census_take(request->checkpoint, &run.census, problems, err);
    }
    if (code == K3_OK && request->manifest) {
        code = read_manifest(&run, err);
    }
    if (code == K3_OK) {
        note_skipped(&run);
        run.report.plan = k3_plan_make(&run.census);
        code = k3_target_open(request->folder, &run.target, err);
    }
    if (code == K3_OK) {
        code = run.target.has_pack ? meet_pack(&run, err) : make_pack(&run, err);
    }
    if (code == K3_OK) {
        *out_report = run.report;
    }
    k3_transfer_done(&run.transfer);
    k3_target_close(&run.target);
    k3_census_done(&run.census);
    k3_manifest_done(&run.manifest);
    free(run.identity);
    return code;
}
