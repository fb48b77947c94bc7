/* SPDX-License-Identifier: Apache-2.0 */
#include "packer/repair.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/file.h>

#include "format/base/ckd.h"
#include "packer/against.h"
#include "packer/repair_index.h"
#include "packer/repair_unit.h"

struct run {
    const char *folder, *checkpoint;
    bool quick;
    const struct k3_verify_scope *scope;
    unsigned jobs;
    const struct k3_observer *observer;
    struct k3_problems *problems;
    struct k3_verify v;
    struct k3_file files[2]; /* trunk, experts: open for writing, locked */
    bool has_builder;
    struct k3_section_builder builder;
    struct k3_repair_report *report;
};

static const enum k3_file_kind kinds[2] = {K3_FILE_TRUNK, K3_FILE_EXPERTS};

static enum k3_code open_locked(struct run *run, unsigned i, struct k3_error *err)
{
    char *path = k3_path_join(run->folder, k3_file_kind_name(kinds[i]));
    enum k3_code code =
        path ? k3_file_open_write(path, &run->files[i], err) : k3_fail_no_memory(err, run->folder);
    free(path);
    if (code == K3_OK && flock(run->files[i].fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
        code = k3_fail(err, K3_ERR_BUSY, K3_ERROR_NO_OFFSET, "another k3pack is repairing '%s'",
                       run->folder);
    }
    return code;
}

/* Can this pack be repaired at all? Before anything is written. */
static enum k3_code check_repairable(const struct run *run, struct k3_error *err)
{
    const struct k3_verify *v = &run->v;
    for (unsigned i = 0; i < 3; i++) {
        if (v->files[i].is_foreign) {
            return k3_fail(err, K3_ERR_DAMAGED, K3_ERROR_NO_OFFSET,
                           "'%s': %s belongs to another pack; put the right one back, or move it "
                           "away so that it is made anew",
                           run->folder, k3_file_kind_name(v->files[i].kind));
        }
    }
    if (!v->has_tables || !v->has_trunk_digests || !v->has_expert_digests) {
        return k3_fail(err, K3_ERR_DAMAGED, K3_ERROR_NO_OFFSET,
                       "'%s': both copies of a table are lost: this pack cannot be repaired, make "
                       "it anew",
                       run->folder);
    }
    return K3_OK;
}

/* A data file that is missing or cut gets its size back, as holes, so that every extent can be read
 * (and found damaged). */
static enum k3_code restore_sizes(struct run *run, bool *out_changed, struct k3_error *err)
{
    *out_changed = false;
    enum k3_code code = K3_OK;
    for (unsigned i = 0; code == K3_OK && i < 2; i++) {
        const uint64_t need =
            i == 0 ? k3_trunk_data_end(&run->v.tables) : k3_experts_data_end(&run->v.tables);
        code = open_locked(run, i, err);
        if (code == K3_OK && run->files[i].file_bytes < need) {
            code = k3_file_truncate(&run->files[i], need, err);
            *out_changed = true;
        }
        *out_changed = *out_changed || !run->v.files[i + 1].is_there;
    }
    return code;
}

static enum k3_code examine(struct run *run, struct k3_error *err)
{
    bool changed = false;
    enum k3_code code = k3_verify_structure(run->folder, run->observer, &run->v, err);
    if (code == K3_OK) {
        code = check_repairable(run, err);
    }
    if (code == K3_OK) {
        code = restore_sizes(run, &changed, err);
    }
    if (code == K3_OK && changed) {
        k3_verify_done(&run->v);
        code = k3_verify_structure(run->folder, run->observer, &run->v, err);
    }
    if (code == K3_OK && !run->v.has_bundle) {
        code = k3_verify_salvage_bundle(&run->v, err);
    }
    return code;
}

static bool is_metadata_sound(const struct k3_verify *v)
{
    return v->files[0].is_sound && v->files[1].is_sound && v->files[2].is_sound &&
           v->has_provenance;
}

static bool has_bad_units(const struct k3_verify *v)
{
    bool any = false;
    for (uint32_t i = 0; !any && v->block_state && i < v->tables.block_count; i++) {
        any = v->block_state[i] == K3_UNIT_BAD;
    }
    const uint64_t experts = k3_expert_total(&v->tables.layout);
    for (uint64_t i = 0; !any && v->expert_state && i < experts; i++) {
        any = v->expert_state[i] == K3_UNIT_BAD;
    }
    return any;
}

static enum k3_code go_on(const struct run *run, uint64_t done, uint64_t total,
                          struct k3_error *err)
{
    return k3_report(run->observer, "repair", run->folder, done, total)
               ? K3_OK
               : k3_fail(err, K3_ERR_INTERRUPTED, K3_ERROR_NO_OFFSET, "stopped while repairing");
}

static enum k3_code mend_blocks(struct run *run, struct k3_mender *mender, struct k3_error *err)
{
    struct k3_verify *v = &run->v;
    enum k3_code code = K3_OK;
    for (uint32_t e = 0; code == K3_OK && e < v->tables.extent_count; e++) {
        const struct k3_trunk_extent *extent = &v->tables.extents[e];
        for (uint32_t b = 0; code == K3_OK && b < k3_extent_block_count(extent); b++) {
            uint8_t *state = &v->block_state[extent->block_first + b];
            bool is_mended = false;
            if (*state != K3_UNIT_BAD) {
                continue;
            }
            run->report->bad_blocks++;
            code = k3_mend_block(mender, extent, b, &is_mended, err);
            *state = is_mended ? K3_UNIT_GOOD : K3_UNIT_BAD;
            run->report->mended_blocks += is_mended;
            if (code == K3_OK) {
                code = go_on(run, e, v->tables.extent_count, err);
            }
        }
    }
    return code;
}

static enum k3_code mend_experts(struct run *run, struct k3_mender *mender, struct k3_error *err)
{
    struct k3_verify *v = &run->v;
    const uint64_t total = k3_expert_total(&v->tables.layout);
    enum k3_code code = K3_OK;
    for (uint64_t e = 0; code == K3_OK && e < total; e++) {
        bool is_mended = false;
        if (v->expert_state[e] != K3_UNIT_BAD) {
            continue;
        }
        run->report->bad_experts++;
        code = k3_mend_expert(mender, e, &is_mended, err);
        v->expert_state[e] = is_mended ? K3_UNIT_GOOD : K3_UNIT_BAD;
        run->report->mended_experts += is_mended;
        if (code == K3_OK) {
            code = go_on(run, e, total, err);
        }
    }
    return code;
}

static enum k3_code mend_data(struct run *run, struct k3_error *err)
{
    struct k3_mender mender;
    k3_mender_init(&mender, &run->v, run->checkpoint, &run->files[0], &run->files[1],
                   &run->report->lacking);
    enum k3_code code = mend_blocks(run, &mender, err);
    if (code == K3_OK) {
        code = mend_experts(run, &mender, err);
    }
    run->report->written_bytes = mender.written_bytes;
    k3_mender_done(&mender);
    return code;
}

/* Provenance that was made from shards is believed only where the pack holds the same bytes. */
static enum k3_code prove_provenance(struct run *run, struct k3_error *err)
{
    struct k3_against_report report;
    const uint64_t before = run->v.damage.total;
    enum k3_code code = k3_verify_against(&run->v, run->checkpoint, run->problems, &report, err);
    if (code == K3_OK && run->v.damage.total > before) {
        code = k3_fail(err, K3_ERR_DAMAGED, K3_ERROR_NO_OFFSET,
                       "'%s' does not hold the tensors of '%s', so no index was made from it; "
                       "k3pack --verify --against lists the differences",
                       run->folder, run->checkpoint);
    }
    return code;
}

/* Provenance that could not be made, or not be proved because data are missing, is not written. */
static bool can_make_index(const struct run *run)
{
    const struct k3_repair_report *r = run->report;
    return run->v.has_provenance && (!r->provenance || (r->bad_blocks == r->mended_blocks &&
                                                        r->bad_experts == r->mended_experts));
}

static enum k3_code mend_metadata(struct run *run, struct k3_error *err)
{
    struct k3_repair_report *r = run->report;
    enum k3_code code = k3_repair_sections(&run->v, &run->builder, err);
    run->has_builder = code == K3_OK;
    bool *const is_written[2] = {&r->trunk_tail, &r->experts_tail};
    for (unsigned i = 0; code == K3_OK && i < 2; i++) {
        if (!run->v.files[i + 1].is_sound) {
            code = k3_repair_tail(&run->v, &run->builder, &run->files[i], kinds[i], err);
            *is_written[i] = code == K3_OK;
        }
    }
    if (code == K3_OK && !run->v.files[0].is_sound && can_make_index(run)) {
        code = k3_repair_index(&run->v, &run->builder, err);
        r->index = code == K3_OK;
    }
    return code;
}

/* What a reader will see now. */
static enum k3_code look_again(struct run *run, struct k3_error *err)
{
    struct k3_verify v = {0};
    const enum k3_code code = k3_verify_structure(run->folder, run->observer, &v, err);
    if (code == K3_OK) {
        run->report->left = v.damage;
        v.damage = (struct k3_damage_list){0};
        k3_verify_done(&v);
    }
    return code;
}

static enum k3_code remake_provenance(struct run *run, struct k3_error *out_later,
                                      struct k3_error *err)
{
    k3_note(run->observer,
            "the record of where bytes came from is lost: reading all shards to make "
            "it again");
    const enum k3_code code =
        k3_repair_provenance(&run->v, run->checkpoint, run->problems, out_later);
    run->report->provenance = code == K3_OK;
    if (code != K3_OK && run->problems->total == 0) {
        *err = *out_later;
        return code;
    }
    return K3_OK;
}

static enum k3_code repair(struct run *run, struct k3_error *err)
{
    enum k3_code code = examine(run, err);
    if (code == K3_OK && !run->quick) {
        code = k3_verify_data(&run->v, run->scope, run->jobs, err);
        run->report->checked_bytes = run->v.checked_bytes;
    }
    const bool is_sound = code == K3_OK && is_metadata_sound(&run->v);
    struct k3_error later = {0}; /* an incomplete checkpoint: what it does not stop is done first */
    if (code == K3_OK && !run->v.has_provenance && (!is_sound || has_bad_units(&run->v))) {
        code = remake_provenance(run, &later, err);
    }
    if (code == K3_OK && run->v.has_provenance && has_bad_units(&run->v)) {
        code = mend_data(run, err);
    }
    if (code == K3_OK && run->report->provenance && can_make_index(run)) {
        code = prove_provenance(run, err);
    }
    if (code == K3_OK && !is_sound) {
        code = mend_metadata(run, err);
    }
    if (code == K3_OK && later.code != K3_OK) {
        *err = later;
        return later.code;
    }
    return code == K3_OK ? look_again(run, err) : code;
}

enum k3_code k3_repair(const char *folder, const char *checkpoint, bool quick,
                       const struct k3_verify_scope *scope, unsigned jobs,
                       const struct k3_observer *observer, struct k3_problems *problems,
                       struct k3_repair_report *out_report, struct k3_error *err)
{
    struct run run = {.folder = folder,
                      .checkpoint = checkpoint,
                      .quick = quick,
                      .scope = scope,
                      .jobs = jobs,
                      .observer = observer,
                      .problems = problems,
                      .files = {K3_FILE_CLOSED, K3_FILE_CLOSED},
                      .report = out_report};
    *out_report = (struct k3_repair_report){0};
    const enum k3_code code = repair(&run, err);
    if (run.has_builder) {
        k3_section_builder_done(&run.builder);
    }
    if (run.v.folder) {
        k3_verify_done(&run.v);
    }
    k3_file_close(&run.files[0]);
    k3_file_close(&run.files[1]);
    return code;
}

void k3_repair_report_done(struct k3_repair_report *report)
{
    k3_damage_done(&report->lacking);
    k3_damage_done(&report->left);
}
