/* SPDX-License-Identifier: Apache-2.0 */
#include "packer/verify_name.h"

#include <stdlib.h>
#include <string.h>

#include "format/base/ckd.h"
#include "packer/source_range.h"
#include "packer/trunk_writer.h"

enum { STATE_UNKNOWN, STATE_GOOD, STATE_BAD };

/* Names the shard and the range in it, where provenance is known. */
static void add_source(const struct k3_namer *namer, struct k3_damage *d, uint32_t source,
                       uint64_t offset, uint64_t bytes)
{
    const struct k3_verify *v = namer->v;
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
static enum k3_code look_at_tensor(struct k3_namer *namer, uint32_t tensor, struct k3_error *err)
{
    struct k3_verify *v = namer->v;
    struct k3_digest_stream *stream = NULL;
    enum k3_code code = k3_digest_stream_create(&stream, err);
    if (code != K3_OK) {
        return code;
    }
    const uint32_t source = v->tables.tensors[tensor].source;
    struct k3_error why;
    code = k3_restore_trunk(&namer->restorer, source, digest_sink, stream, &why);
    const struct k3_digest digest = k3_digest_stream_value(stream);
    k3_digest_stream_destroy(stream);
    if (code == K3_ERR_NO_MEMORY) {
        return k3_fail_no_memory(err, "damaged tensor");
    }
    const bool is_good =
        code == K3_OK && k3_digest_equal(&digest, &v->provenance.trunk[source].digest);
    namer->tensor_state[tensor] = is_good ? STATE_GOOD : STATE_BAD;
    return K3_OK;
}

/* One damaged block: every tensor in it that is not what it was, or all when nothing can tell. */
enum k3_code k3_name_block(struct k3_namer *namer, const struct k3_trunk_extent *extent,
                           uint32_t block, const char *reason, struct k3_error *err)
{
    struct k3_verify *v = namer->v;
    const uint64_t at = extent->file_offset + block * K3_TRUNK_BLOCK_BYTES;
    const uint64_t len = k3_trunk_block_bytes(extent, block);
    unsigned named = 0;
    for (uint32_t i = 0; i < extent->tensor_count; i++) {
        const uint32_t number = extent->tensor_first + i;
        const struct k3_trunk_tensor *t = &v->tables.tensors[number];
        const uint64_t first = k3_max_u64(at, t->file_offset);
        const uint64_t end = k3_min_u64(at + len, t->file_offset + t->stored_bytes);
        if (first >= end) {
            continue;
        }
        if (v->has_provenance && namer->tensor_state[number] == STATE_UNKNOWN) {
            const enum k3_code code = look_at_tensor(namer, number, err);
            if (code != K3_OK) {
                return code;
            }
        }
        if (namer->tensor_state[number] == STATE_GOOD) {
            continue;
        }
        struct k3_damage d = {.kind = K3_DAMAGE_TRUNK,
                              .file = K3_FILE_TRUNK,
                              .layer = extent->layer,
                              .offset = first,
                              .bytes = end - first};
        uint64_t offset = 0, bytes = 0;
        k3_source_range(&v->tables, t, first - t->file_offset, end - first, &offset, &bytes);
        add_source(namer, &d, t->source, offset, bytes);
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

/* The stored range that part `part` of an expert shares with its neighbours: w1 and w3 lie tile by
 * tile in turn. */
static void part_range(const struct k3_expert_layout *layout, unsigned part, uint64_t *out_offset,
                       uint64_t *out_bytes)
{
    const bool is_w2 = part / 2 == 1;
    *out_offset = is_w2 ? layout->w2_offset : 0;
    *out_bytes = is_w2 ? layout->used_bytes - layout->w2_offset : layout->w2_offset;
}

/* Which parts of a stored extent are not what was packed? */
static enum k3_code find_bad_parts(struct k3_namer *namer, uint64_t expert, const uint8_t *stored,
                                   bool out_is_bad[K3_EXPERT_PARTS], struct k3_error *err)
{
    const struct k3_expert_shape *shape = &namer->restorer.shape;
    struct k3_buffer *source = &namer->restorer.source;
    const enum k3_code code = k3_buffer_reserve(source, shape->source_bytes, err);
    if (code != K3_OK) {
        return code;
    }
    k3_expert_decode(shape, &namer->v->tables.layout, stored, source->bytes);
    for (unsigned part = 0; part < K3_EXPERT_PARTS; part++) {
        const struct k3_digest found =
            k3_digest_of(source->bytes + shape->part_offset[part], (size_t)shape->part_bytes[part]);
        const struct k3_source_record *record =
            &namer->v->provenance.experts[expert * K3_EXPERT_PARTS + part];
        out_is_bad[part] = !k3_digest_equal(&found, &record->digest);
    }
    return K3_OK;
}

/* One damaged expert: every part that is not what it was, or all when nothing can tell. */
enum k3_code k3_name_expert(struct k3_namer *namer, uint64_t expert, const uint8_t *stored,
                            const char *reason, struct k3_error *err)
{
    struct k3_verify *v = namer->v;
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
    if (stored && v->has_provenance) {
        const enum k3_code code = find_bad_parts(namer, expert, stored, is_bad, err);
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
        add_source(namer, &d, k3_expert_source(&v->tables, expert, part), 0,
                   namer->restorer.shape.part_bytes[part]);
        k3_damage_add(&v->damage, &d, "%s", reason);
        named++;
    }
    if (named == 0) {
        base.kind = K3_DAMAGE_PADDING;
        k3_damage_add(&v->damage, &base, "padding is not zero; all parts are good");
    }
    return K3_OK;
}

enum k3_code k3_namer_init(struct k3_namer *namer, struct k3_verify *verify, struct k3_error *err)
{
    *namer = (struct k3_namer){.v = verify};
    k3_restorer_init(&namer->restorer, &verify->tables,
                     &k3_verify_file(verify, K3_FILE_TRUNK)->file,
                     &k3_verify_file(verify, K3_FILE_EXPERTS)->file);
    namer->tensor_state = calloc(verify->tables.tensor_count, 1);
    return namer->tensor_state ? K3_OK : k3_fail_no_memory(err, "tensor states");
}

void k3_namer_done(struct k3_namer *namer)
{
    free(namer->tensor_state);
    k3_restorer_done(&namer->restorer);
    *namer = (struct k3_namer){0};
}
