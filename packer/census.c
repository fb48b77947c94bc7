/* SPDX-License-Identifier: Apache-2.0 */
#include "packer/census.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/base/ckd.h"
#include "packer/checkpoint_files.h"

/* Lines per kind of problem. Where shards are missing, each of their tensors is missing too: a few
 * of those lines are enough. */
#define LINES_MAX           K3_CHECKPOINT_LINES_MAX
#define LINES_MAX_EXPLAINED 3

void k3_source_name(const struct k3_pack_tables *tables, uint32_t source,
                    char out_name[K3_TENSOR_NAME_MAX])
{
    if (source < tables->source_count) {
        const struct k3_trunk_tensor *tensor = k3_source_first_tensor(tables, source);
        k3_role_source_name(tensor->layer, tensor->role, out_name);
        return;
    }
    const uint32_t at = source - tables->source_count;
    const uint32_t expert = at / K3_EXPERT_PARTS;
    const struct k3_expert_layout *layout = &tables->layout;
    k3_expert_part_name(layout->first_layer + expert / layout->expert_count,
                        expert % layout->expert_count, at % K3_EXPERT_PARTS, out_name);
}

struct expected {
    enum k3_source_dtype dtype;
    uint32_t ndim;
    uint64_t shape[K3_SOURCE_DIMS_MAX];
};

static struct expected expect_source(const struct k3_pack_tables *tables, uint32_t source)
{
    struct expected e = {.dtype = K3_SOURCE_U8, .ndim = 2};
    if (source >= tables->source_count) {
        const unsigned part = (source - tables->source_count) % K3_EXPERT_PARTS;
        k3_expert_part_shape(&tables->spec, part, e.shape);
        return e;
    }
    const struct k3_source_shape s =
        k3_tensor_source_shape(tables, k3_source_first_tensor(tables, source));
    e.dtype = s.dtype == K3_DTYPE_F32 ? K3_SOURCE_F32 : K3_SOURCE_BF16;
    e.ndim = s.ndim;
    memcpy(e.shape, s.shape, sizeof e.shape);
    return e;
}

static void format_shape(const uint64_t *shape, uint32_t ndim, char *out_text, size_t len)
{
    size_t at = 0;
    at += (size_t)snprintf(out_text, len, "[");
    for (uint32_t i = 0; i < ndim && at < len; i++) {
        at += (size_t)snprintf(out_text + at, len - at, "%s%" PRIu64, i > 0 ? ", " : "", shape[i]);
    }
    if (at < len) {
        snprintf(out_text + at, len - at, "]");
    }
}

/* Every fact about the tensors that contradicts the model. */
struct findings {
    struct k3_problem_kind missing, wrong, strange;
};

static void check_entry(const struct expected *e, const struct k3_tensor_place *place,
                        struct k3_problem_kind *wrong)
{
    const struct k3_tensor_entry *entry = place->entry;
    if (entry->dtype == (uint8_t)e->dtype && entry->dims == e->ndim &&
        memcmp(entry->shape, e->shape, e->ndim * sizeof e->shape[0]) == 0) {
        return;
    }
    char have[200], need[100];
    format_shape(entry->shape, entry->dims, have, sizeof have);
    format_shape(e->shape, e->ndim, need, sizeof need);
    k3_problem_kind_add(wrong, "'%s': tensor '%s' is %s %s, the config needs %s %s",
                        place->shard->name, entry->name,
                        k3_source_dtype_name((enum k3_source_dtype)entry->dtype), have,
                        k3_source_dtype_name(e->dtype), need);
}

static void find_sources(struct k3_census *census, struct findings *findings)
{
    const struct k3_pack_tables *tables = &census->tables;
    const uint32_t count = k3_expert_source(tables, k3_expert_total(&tables->layout), 0);
    for (uint32_t source = 0; source < count; source++) {
        char name[K3_TENSOR_NAME_MAX];
        struct k3_tensor_place place;
        k3_source_name(tables, source, name);
        if (!k3_shard_set_find(&census->set, name, &place)) {
            k3_problem_kind_add(&findings->missing, "tensor '%s' is in no shard", name);
            continue;
        }
        const struct expected e = expect_source(tables, source);
        check_entry(&e, &place, &findings->wrong);
        const size_t at =
            place.shard->first_tensor + (size_t)(place.entry - place.shard->header.entries);
        census->owner[at] = source;
        struct k3_source_record *record = k3_source_at(tables, &census->provenance, source);
        record->shard = (uint32_t)place.shard_index;
        record->offset = place.file_offset;
        record->bytes = place.bytes;
    }
}

static bool is_vision(const char *name)
{
    return strncmp(name, "vision_tower.", 13) == 0 || strncmp(name, "mm_projector.", 13) == 0;
}

/* Tensors that nothing asked for: the vision part, which is left out, and strangers. */
static void sort_rest(struct k3_census *census, struct k3_problem_kind *strange)
{
    for (size_t i = 0; i < census->set.shard_count; i++) {
        const struct k3_shard *shard = &census->set.shards[i];
        size_t vision = 0;
        for (size_t j = 0; j < shard->header.entry_count; j++) {
            const struct k3_tensor_entry *entry = &shard->header.entries[j];
            if (census->owner[shard->first_tensor + j] != K3_NO_SOURCE) {
                continue;
            }
            struct k3_tensor_place known;
            if (k3_shard_set_find(&census->set, entry->name, &known) && known.entry != entry) {
                continue; /* a second copy: said where the shards were read */
            }
            if (is_vision(entry->name)) {
                vision++;
                census->skipped_bytes += entry->end - entry->begin;
            } else {
                k3_problem_kind_add(strange,
                                    "'%s': unknown tensor '%s' (not part of the model that the "
                                    "config describes)",
                                    shard->name, entry->name);
            }
        }
        census->skipped_tensors += vision;
        census->skipped_shards += vision > 0 && vision == shard->header.entry_count;
    }
}

/* The one length that the config does not give. */
static void read_a_log_lengths(const struct k3_shard_set *set, const struct k3_model_spec *spec,
                               uint32_t *out_len, struct k3_problems *problems)
{
    for (uint32_t layer = 0; layer < spec->layers; layer++) {
        char name[K3_TENSOR_NAME_MAX];
        struct k3_tensor_place place;
        out_len[layer] = spec->kda_heads;
        if (spec->layer_kind[layer] != K3_LAYER_KDA) {
            continue;
        }
        k3_role_source_name(layer, K3_ROLE_KDA_A_LOG, name);
        if (!k3_shard_set_find(set, name, &place) || place.entry->dims != 1) {
            continue; /* reported with all the others */
        }
        const uint64_t len = place.entry->shape[0];
        if (len >= spec->kda_heads && len <= K3_A_LOG_MAX) {
            out_len[layer] = (uint32_t)len;
        } else {
            k3_problems_add(problems, K3_ERR_MALFORMED,
                            "'%s': tensor '%s' has %" PRIu64 " values, must have %u..%u",
                            place.shard->name, name, len, spec->kda_heads, K3_A_LOG_MAX);
        }
    }
}

/* A config that asks for far more tensors than there are is not worth its tables. */
static bool is_far_too_large(const struct k3_shard_set *set, const struct k3_model_spec *spec,
                             struct k3_problems *problems)
{
    const uint64_t needed = (uint64_t)k3_spec_moe_layers(spec) * spec->experts * K3_EXPERT_PARTS;
    if (needed <= (uint64_t)set->tensor_count + 1000000) {
        return false;
    }
    k3_problems_add(problems, K3_ERR_MALFORMED,
                    "'config.json' needs %" PRIu64 " expert tensors, the shards hold %zu tensors "
                    "in all: config and shards belong to different models",
                    needed, set->tensor_count);
    return true;
}

static enum k3_code name_shards(struct k3_census *census, struct k3_problems *problems,
                                struct k3_error *err)
{
    for (uint32_t i = 0; i < census->provenance.shard_count; i++) {
        struct k3_shard_record *record = &census->provenance.shards[i];
        record->name = strdup(census->set.shards[i].name);
        if (!record->name) {
            return k3_fail_no_memory(err, "shard names");
        }
        if (!k3_shard_name_is_good((const uint8_t *)record->name, strlen(record->name))) {
            k3_problems_add(
                problems, K3_ERR_MALFORMED,
                "'%s': the name of a shard must be UTF-8 of at most %u bytes; rename it",
                record->name, K3_SHARD_NAME_MAX);
        }
        record->file_bytes = census->set.shards[i].file_bytes;
    }
    return K3_OK;
}

static enum k3_code make_tables(struct k3_census *census, const struct k3_model_spec *spec,
                                struct k3_problems *problems, struct k3_error *err)
{
    uint32_t a_log_len[K3_LAYERS_MAX];
    read_a_log_lengths(&census->set, spec, a_log_len, problems);
    enum k3_code code = k3_pack_tables_derive(spec, a_log_len, &census->tables, err);
    if (code == K3_OK) {
        code = k3_provenance_create(&census->tables, (uint32_t)census->set.shard_count,
                                    &census->provenance, err);
    }
    if (code == K3_OK) {
        code = name_shards(census, problems, err);
    }
    if (code != K3_OK) {
        return code;
    }
    census->owner = malloc((census->set.tensor_count + 1) * sizeof *census->owner);
    if (!census->owner) {
        return k3_fail_no_memory(err, "tensor owners");
    }
    memset(census->owner, 0xff, census->set.tensor_count * sizeof *census->owner);
    return K3_OK;
}

static enum k3_code match(struct k3_census *census, const struct k3_model_spec *spec,
                          struct k3_problems *problems, struct k3_error *err)
{
    if (is_far_too_large(&census->set, spec, problems)) {
        return K3_OK;
    }
    const size_t missing_lines = problems->total > 0 ? LINES_MAX_EXPLAINED : LINES_MAX;
    const enum k3_code code = make_tables(census, spec, problems, err);
    if (code != K3_OK) {
        return code;
    }
    struct findings findings = {
        .missing = {problems, K3_ERR_MALFORMED, "tensors are in no shard", missing_lines, 0},
        .wrong = {problems, K3_ERR_MALFORMED, "tensors have another dtype or shape", LINES_MAX, 0},
        .strange = {problems, K3_ERR_MALFORMED, "unknown tensors", LINES_MAX, 0},
    };
    find_sources(census, &findings);
    k3_problem_kind_end(&findings.missing);
    k3_problem_kind_end(&findings.wrong);
    sort_rest(census, &findings.strange);
    k3_problem_kind_end(&findings.strange);
    return K3_OK;
}

enum k3_code k3_census_take(const char *checkpoint, struct k3_census *out_census,
                            struct k3_problems *problems, struct k3_error *err)
{
    struct k3_census census = {0};
    struct k3_model_spec spec;
    bool spec_is_valid = false;
    enum k3_code code = k3_shard_set_scan(checkpoint, &census.set, problems, err);
    if (code == K3_OK) {
        code = k3_checkpoint_files_read(checkpoint, &census.files, &spec, &spec_is_valid, problems,
                                        err);
    }
    if (code == K3_OK && spec_is_valid) {
        code = match(&census, &spec, problems, err);
    }
    if (code == K3_OK) {
        code = k3_problems_result(problems, checkpoint, err);
    }
    if (code != K3_OK) {
        k3_census_done(&census);
        return code;
    }
    *out_census = census;
    return K3_OK;
}

void k3_census_done(struct k3_census *census)
{
    k3_shard_set_done(&census->set);
    k3_file_bundle_done(&census->files);
    k3_pack_tables_done(&census->tables);
    k3_provenance_done(&census->provenance);
    free(census->owner);
    *census = (struct k3_census){0};
}
