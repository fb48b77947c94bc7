/* SPDX-License-Identifier: Apache-2.0 */
#include "packer/against.h"

#include <inttypes.h>
#include <string.h>

#include "packer/census.h"
#include "packer/page_cache.h"
#include "packer/restore.h"

struct comparison {
    struct k3_verify *v;
    const struct k3_census *census;
    struct k3_restorer restorer;
    struct k3_file shard;
    uint32_t shard_index;
    struct k3_drop_behind behind;
    struct k3_buffer scratch;
    uint64_t done_bytes, total_bytes;
    struct k3_against_report report;
    /* The tensor that is being compared. */
    uint32_t source;
    uint64_t at;
    bool is_different;
    bool shard_failed; /* an error came from reading the shard, not the pack */
};

static struct k3_damage difference(enum k3_file_kind file)
{
    return (struct k3_damage){.kind = K3_DAMAGE_DIFFERENCE, .file = file, .layer = K3_TOP_LEVEL};
}

static void add_difference(struct comparison *c, uint64_t source_offset, uint64_t bytes,
                           const char *what)
{
    const bool is_trunk = c->source < c->v->tables.source_count;
    struct k3_damage d = difference(is_trunk ? K3_FILE_TRUNK : K3_FILE_EXPERTS);
    k3_source_name(&c->v->tables, c->source, d.tensor);
    d.shard = c->census->set.shards[c->shard_index].name;
    d.source_offset = source_offset;
    d.source_bytes = bytes;
    k3_damage_add(&c->v->damage, &d, "%s", what);
    c->is_different = true;
}

/* Compares what was restored with the same bytes of the shard. */
static enum k3_code compare_sink(void *user, const uint8_t *bytes, uint64_t len,
                                 struct k3_error *err)
{
    struct comparison *c = user;
    enum k3_code code = k3_buffer_reserve(&c->scratch, len, err);
    if (code == K3_OK) {
        code = k3_file_read(&c->shard, c->at, c->scratch.bytes, (size_t)len, err);
        c->shard_failed = code != K3_OK;
    }
    if (code != K3_OK) {
        return code;
    }
    if (!c->is_different && memcmp(c->scratch.bytes, bytes, (size_t)len) != 0) {
        uint64_t i = 0;
        while (c->scratch.bytes[i] == bytes[i]) {
            i++;
        }
        add_difference(c, c->at + i, 1, "pack and checkpoint differ, first at this byte");
    }
    c->at += len;
    c->done_bytes += len;
    k3_drop_behind(&c->behind, &c->shard, c->at);
    if (!k3_report(c->v->observer, "compare", c->census->set.shards[c->shard_index].name,
                   c->done_bytes, c->total_bytes)) {
        return k3_fail(err, K3_ERR_INTERRUPTED, K3_ERROR_NO_OFFSET, "stopped while comparing");
    }
    return K3_OK;
}

static enum k3_code compare_source(struct comparison *c, uint32_t source, uint64_t offset,
                                   uint64_t bytes, struct k3_error *err)
{
    c->source = source;
    c->at = offset;
    c->is_different = false;
    const enum k3_code code = k3_restore_source(&c->restorer, source, compare_sink, c, err);
    if (code == K3_ERR_DAMAGED || (code == K3_ERR_IO && !c->shard_failed)) {
        add_difference(c, offset, bytes, "the pack's bytes cannot be turned back");
        return K3_OK;
    }
    if (code == K3_OK && !c->is_different) {
        c->report.tensors++;
        c->report.bytes += bytes;
    }
    return code;
}

static enum k3_code compare_shard(struct comparison *c, uint32_t shard_index, struct k3_error *err)
{
    const struct k3_shard *shard = &c->census->set.shards[shard_index];
    enum k3_code code = k3_shard_open(shard, &c->shard, err);
    c->shard_index = shard_index;
    c->behind = (struct k3_drop_behind){0};
    for (size_t i = 0; code == K3_OK && i < shard->header.entry_count; i++) {
        const uint32_t source = c->census->owner[shard->first_tensor + i];
        const struct k3_tensor_entry *entry = &shard->header.entries[i];
        if (source != K3_NO_SOURCE) {
            code = compare_source(c, source, shard->header.data_start + entry->begin,
                                  entry->end - entry->begin, err);
        }
    }
    k3_file_close(&c->shard);
    return code;
}

static void compare_files(struct k3_verify *v, const struct k3_census *census)
{
    for (unsigned i = 0; i < K3_BUNDLED_COUNT; i++) {
        const uint8_t *a = v->bundle.files[i].bytes, *b = census->files.files[i].bytes;
        const size_t len = v->bundle.files[i].len;
        if ((a == NULL) != (b == NULL) ||
            (a && (len != census->files.files[i].len || memcmp(a, b, len) != 0))) {
            struct k3_damage d = difference(K3_FILE_INDEX);
            d.section = K3_SECTION_FILES;
            k3_damage_add(&v->damage, &d, "'%s' is not that of the checkpoint",
                          k3_bundled_name((enum k3_bundled_file)i));
        }
    }
}

bool k3_tables_are_equal(const struct k3_pack_tables *a, const struct k3_pack_tables *b)
{
    if (!k3_model_spec_equal(&a->spec, &b->spec) || a->tensor_count != b->tensor_count) {
        return false;
    }
    for (uint32_t i = 0; i < a->tensor_count; i++) {
        if (a->tensors[i].cols != b->tensors[i].cols) {
            return false;
        }
    }
    return true;
}

static enum k3_code compare_all(struct k3_verify *v, const struct k3_census *census,
                                struct k3_against_report *out_report, struct k3_error *err)
{
    compare_files(v, census);
    if (!k3_tables_are_equal(&v->tables, &census->tables)) {
        const struct k3_damage d = difference(K3_FILE_INDEX);
        k3_damage_add(&v->damage, &d, "the pack and the checkpoint are different models");
        return K3_OK;
    }
    struct comparison c = {.v = v, .census = census, .shard = K3_FILE_CLOSED};
    k3_restorer_init(&c.restorer, &v->tables, &k3_verify_file(v, K3_FILE_TRUNK)->file,
                     &k3_verify_file(v, K3_FILE_EXPERTS)->file);
    c.total_bytes = census->set.tensor_bytes - census->skipped_bytes;
    enum k3_code code = K3_OK;
    for (uint32_t i = 0; code == K3_OK && i < census->set.shard_count; i++) {
        code = compare_shard(&c, i, err);
    }
    if (code == K3_OK) {
        *out_report = c.report;
    }
    k3_buffer_done(&c.scratch);
    k3_restorer_done(&c.restorer);
    return code;
}

enum k3_code k3_verify_against(struct k3_verify *verify, const char *checkpoint,
                               struct k3_problems *problems, struct k3_against_report *out_report,
                               struct k3_error *err)
{
    if (!verify->has_tables || !verify->has_bundle || !verify->has_trunk_digests ||
        !k3_verify_file(verify, K3_FILE_TRUNK)->is_there ||
        !k3_verify_file(verify, K3_FILE_EXPERTS)->is_there) {
        return k3_fail(err, K3_ERR_DAMAGED, K3_ERROR_NO_OFFSET,
                       "'%s': the index is damaged, so nothing can be compared with '%s'",
                       verify->folder, checkpoint);
    }
    struct k3_census census = {0};
    enum k3_code code = k3_census_take(checkpoint, &census, problems, err);
    if (code == K3_OK) {
        code = compare_all(verify, &census, out_report, err);
    }
    k3_census_done(&census);
    return code;
}
