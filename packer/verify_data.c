/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/base/ckd.h"
#include "packer/page_cache.h"
#include "packer/restore.h"
#include "packer/source_range.h"
#include "packer/trunk_writer.h"
#include "packer/verify.h"

/* The pass over the data. */
struct pass {
    struct k3_verify *v;
    struct k3_restorer restorer;
    struct k3_buffer scratch;
    struct k3_drop_behind behind;
    uint64_t total_bytes;
    uint8_t *tensor_state; /* by stored tensor: what restoring it showed */
};

enum { STATE_UNKNOWN, STATE_GOOD, STATE_BAD };

static enum k3_code advance(struct pass *pass, uint64_t bytes, const char *subject,
                            struct k3_error *err)
{
    pass->v->checked_bytes += bytes;
    if (!k3_report(pass->v->observer, "verify", subject, pass->v->checked_bytes,
                   pass->total_bytes)) {
        return k3_fail(err, K3_ERR_INTERRUPTED, K3_ERROR_NO_OFFSET, "stopped while verifying");
    }
    return K3_OK;
}

/* Names the shard and the range in it, where provenance is known. */
static void add_source(const struct pass *pass, struct k3_damage *d, uint32_t source,
                       uint64_t offset, uint64_t bytes)
{
    const struct k3_verify *v = pass->v;
    k3_source_name(&v->tables, source, d->tensor);
    if (v->has_provenance) {
        const struct k3_source_record *record = k3_source_at(&v->tables, &v->provenance, source);
        d->shard = v->provenance.shards[record->shard].name;
        d->source_offset = record->offset + offset;
        d->source_bytes = bytes;
    }
}

static enum k3_code digest_sink(void *user, const uint8_t *bytes, uint64_t len,
                                struct k3_error *err)
{
    (void)err;
    k3_digest_stream_update(user, bytes, (size_t)len);
    return K3_OK;
}

/* Restores the source of a stored tensor and compares it with what was packed. */
static enum k3_code look_at_tensor(struct pass *pass, uint32_t tensor, struct k3_error *err)
{
    struct k3_verify *v = pass->v;
    struct k3_digest_stream *stream = NULL;
    enum k3_code code = k3_digest_stream_create(&stream, err);
    if (code != K3_OK) {
        return code;
    }
    const uint32_t source = v->tables.tensors[tensor].source;
    struct k3_error why;
    code = k3_restore_trunk(&pass->restorer, source, digest_sink, stream, &why);
    const struct k3_digest digest = k3_digest_stream_value(stream);
    k3_digest_stream_destroy(stream);
    if (code == K3_ERR_NO_MEMORY) {
        return k3_fail_no_memory(err, "damaged tensor");
    }
    const bool is_good =
        code == K3_OK && k3_digest_equal(&digest, &v->provenance.trunk[source].digest);
    pass->tensor_state[tensor] = is_good ? STATE_GOOD : STATE_BAD;
    return K3_OK;
}

/* One damaged block: every tensor in it that is not what it was, or all when nothing can tell. */
static enum k3_code name_block_damage(struct pass *pass, const struct k3_trunk_extent *extent,
                                      uint64_t at, uint64_t len, const char *reason,
                                      struct k3_error *err)
{
    struct k3_verify *v = pass->v;
    unsigned named = 0;
    for (uint32_t i = 0; i < extent->tensor_count; i++) {
        const uint32_t number = extent->tensor_first + i;
        const struct k3_trunk_tensor *t = &v->tables.tensors[number];
        const uint64_t first = k3_max_u64(at, t->file_offset);
        const uint64_t end = k3_min_u64(at + len, t->file_offset + t->stored_bytes);
        if (first >= end) {
            continue;
        }
        if (v->has_provenance && pass->tensor_state[number] == STATE_UNKNOWN) {
            const enum k3_code code = look_at_tensor(pass, number, err);
            if (code != K3_OK) {
                return code;
            }
        }
        if (pass->tensor_state[number] == STATE_GOOD) {
            continue;
        }
        struct k3_damage d = {.kind = K3_DAMAGE_TRUNK,
                              .file = K3_FILE_TRUNK,
                              .layer = extent->layer,
                              .offset = first,
                              .bytes = end - first};
        uint64_t offset = 0, bytes = 0;
        k3_source_range(&v->tables, t, first - t->file_offset, end - first, &offset, &bytes);
        add_source(pass, &d, t->source, offset, bytes);
        k3_damage_add(&v->damage, &d, "%s", reason);
        named++;
    }
    if (named == 0) {
        const struct k3_damage d = {.kind = K3_DAMAGE_PADDING,
                                    .file = K3_FILE_TRUNK,
                                    .layer = extent->layer,
                                    .offset = at,
                                    .bytes = len};
        k3_damage_add(&v->damage, &d, "padding between tensors is not zero; all tensors are good");
    }
    return K3_OK;
}

static enum k3_code check_block(struct pass *pass, const struct k3_trunk_extent *extent,
                                uint32_t block, struct k3_error *err)
{
    struct k3_verify *v = pass->v;
    const struct k3_file *file = &k3_verify_file(v, K3_FILE_TRUNK)->file;
    const uint64_t at = extent->file_offset + block * K3_TRUNK_BLOCK_BYTES;
    const uint64_t len = k3_trunk_block_bytes(extent, block);
    struct k3_digest found;
    struct k3_error why = {0};
    enum k3_code code = k3_trunk_digest_block(extent, block, file, &pass->scratch, &found, &why);
    if (code == K3_ERR_NO_MEMORY) {
        return k3_fail_no_memory(err, "block");
    }
    v->checked_blocks++;
    k3_drop_behind(&pass->behind, file, at + len);
    if (code != K3_OK) {
        code = name_block_damage(pass, extent, at, len, why.message, err);
    } else if (!k3_digest_equal(&found, &v->tables.block_digests[extent->block_first + block])) {
        code =
            name_block_damage(pass, extent, at, len, "stored bytes do not match their digest", err);
    }
    return code == K3_OK ? advance(pass, len, K3_TRUNK_NAME, err) : code;
}

static enum k3_code check_trunk(struct pass *pass, struct k3_error *err)
{
    const struct k3_pack_tables *tables = &pass->v->tables;
    for (uint32_t e = 0; e < tables->extent_count; e++) {
        for (uint32_t b = 0; b < k3_extent_block_count(&tables->extents[e]); b++) {
            const enum k3_code code = check_block(pass, &tables->extents[e], b, err);
            if (code != K3_OK) {
                return code;
            }
        }
    }
    return K3_OK;
}

/* The stored range that part `part` of an expert shares with its neighbours: w1 and w3 lie tile by
 * tile in turn. */
static void part_range(const struct k3_expert_layout *layout, unsigned part, uint64_t *out_offset,
                       uint64_t *out_bytes)
{
    const bool is_w2 = part / 2 == 1;
    *out_offset = is_w2 ? layout->w2_offset : 0;
    *out_bytes = is_w2 ? layout->used_bytes - layout->w2_offset : layout->w2_offset;
}

/* Which parts of the extent in scratch are not what was packed? */
static enum k3_code find_bad_parts(struct pass *pass, uint64_t expert,
                                   bool out_is_bad[K3_EXPERT_PARTS], struct k3_error *err)
{
    const struct k3_expert_shape *shape = &pass->restorer.shape;
    struct k3_buffer *source = &pass->restorer.source;
    const enum k3_code code = k3_buffer_reserve(source, shape->source_bytes, err);
    if (code != K3_OK) {
        return code;
    }
    k3_expert_decode(shape, &pass->v->tables.layout, pass->scratch.bytes, source->bytes);
    for (unsigned part = 0; part < K3_EXPERT_PARTS; part++) {
        const struct k3_digest found =
            k3_digest_of(source->bytes + shape->part_offset[part], (size_t)shape->part_bytes[part]);
        const struct k3_source_record *record =
            &pass->v->provenance.experts[expert * K3_EXPERT_PARTS + part];
        out_is_bad[part] = !k3_digest_equal(&found, &record->digest);
    }
    return K3_OK;
}

/* One damaged expert: every part that is not what it was, or all when nothing can tell. */
static enum k3_code name_expert_damage(struct pass *pass, uint64_t expert, bool is_read,
                                       const char *reason, struct k3_error *err)
{
    struct k3_verify *v = pass->v;
    const struct k3_expert_layout *layout = &v->tables.layout;
    bool is_bad[K3_EXPERT_PARTS] = {true, true, true, true, true, true};
    struct k3_damage base = {.kind = K3_DAMAGE_EXPERT,
                             .file = K3_FILE_EXPERTS,
                             .layer =
                                 layout->first_layer + (uint32_t)(expert / layout->expert_count),
                             .has_expert = true,
                             .expert = (uint32_t)(expert % layout->expert_count),
                             .offset = k3_expert_offset(layout, expert),
                             .bytes = layout->used_bytes};
    if (is_read && v->has_provenance) {
        const enum k3_code code = find_bad_parts(pass, expert, is_bad, err);
        if (code != K3_OK) {
            return code;
        }
    }
    unsigned named = 0;
    for (unsigned part = 0; part < K3_EXPERT_PARTS; part++) {
        if (!is_bad[part]) {
            continue;
        }
        struct k3_damage d = base;
        part_range(layout, part, &d.offset, &d.bytes);
        d.offset += base.offset;
        add_source(pass, &d, k3_expert_source(&v->tables, expert, part), 0,
                   pass->restorer.shape.part_bytes[part]);
        k3_damage_add(&v->damage, &d, "%s", reason);
        named++;
    }
    if (named == 0) {
        base.kind = K3_DAMAGE_PADDING;
        k3_damage_add(&v->damage, &base, "padding is not zero; all parts are good");
    }
    return K3_OK;
}

static enum k3_code check_expert(struct pass *pass, uint64_t expert, struct k3_error *err)
{
    struct k3_verify *v = pass->v;
    const struct k3_file *file = &k3_verify_file(v, K3_FILE_EXPERTS)->file;
    const struct k3_expert_layout *layout = &v->tables.layout;
    const uint64_t at = k3_expert_offset(layout, expert);
    struct k3_error why = {0};
    enum k3_code code = k3_buffer_reserve(&pass->scratch, layout->used_bytes, err);
    if (code != K3_OK) {
        return code;
    }
    code = k3_file_read(file, at, pass->scratch.bytes, (size_t)layout->used_bytes, &why);
    v->checked_experts++;
    k3_drop_behind(&pass->behind, file, at + layout->used_bytes);
    if (code != K3_OK) {
        code = name_expert_damage(pass, expert, false, why.message, err);
    } else {
        const struct k3_digest found =
            k3_digest_of(pass->scratch.bytes, (size_t)layout->used_bytes);
        if (!k3_digest_equal(&found, &v->tables.expert_digests[expert])) {
            code = name_expert_damage(pass, expert, true, "stored bytes do not match their digest",
                                      err);
        }
    }
    return code == K3_OK ? advance(pass, layout->used_bytes, K3_EXPERTS_NAME, err) : code;
}

static enum k3_code check_experts(struct pass *pass, struct k3_error *err)
{
    const uint64_t total = k3_expert_total(&pass->v->tables.layout);
    enum k3_code code = K3_OK;
    for (uint64_t e = 0; code == K3_OK && e < total; e++) {
        code = check_expert(pass, e, err);
    }
    return code;
}

/* False where it is another pack's, or where nothing is left to check against (which is said). */
static bool can_check(struct k3_verify *v, const struct k3_file_check *file, bool has_digests)
{
    if (!file->is_there || file->is_foreign) {
        return false;
    }
    if (!v->has_tables || !has_digests) {
        const struct k3_damage d = {
            .kind = K3_DAMAGE_FILE, .file = file->kind, .layer = K3_TOP_LEVEL};
        k3_damage_add(&v->damage, &d,
                      "its data cannot be checked: no good table of digests is left");
        return false;
    }
    return true;
}

static uint64_t bytes_to_check(const struct k3_pack_tables *tables, bool with_trunk,
                               bool with_experts)
{
    uint64_t bytes = 0;
    for (uint32_t e = 0; with_trunk && e < tables->extent_count; e++) {
        bytes += tables->extents[e].used_bytes;
    }
    if (with_experts) {
        bytes += k3_expert_total(&tables->layout) * tables->layout.used_bytes;
    }
    return bytes;
}

enum k3_code k3_verify_data(struct k3_verify *verify, struct k3_error *err)
{
    const struct k3_file_check *trunk = k3_verify_file(verify, K3_FILE_TRUNK);
    const struct k3_file_check *experts = k3_verify_file(verify, K3_FILE_EXPERTS);
    const bool with_trunk = can_check(verify, trunk, verify->has_trunk_digests);
    const bool with_experts = can_check(verify, experts, verify->has_expert_digests);
    if (!with_trunk && !with_experts) {
        return K3_OK;
    }
    struct pass pass = {.v = verify};
    pass.total_bytes = bytes_to_check(&verify->tables, with_trunk, with_experts);
    k3_restorer_init(&pass.restorer, &verify->tables, &trunk->file, &experts->file);
    pass.tensor_state = calloc(verify->tables.tensor_count, 1);
    enum k3_code code = pass.tensor_state ? K3_OK : k3_fail_no_memory(err, "tensor states");
    if (code == K3_OK && with_trunk) {
        k3_cache_expect_sequential(&trunk->file);
        code = check_trunk(&pass, err);
    }
    pass.behind = (struct k3_drop_behind){0};
    if (code == K3_OK && with_experts) {
        k3_cache_expect_sequential(&experts->file);
        code = check_experts(&pass, err);
    }
    free(pass.tensor_state);
    k3_buffer_done(&pass.scratch);
    k3_restorer_done(&pass.restorer);
    return code;
}
