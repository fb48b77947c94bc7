/* SPDX-License-Identifier: Apache-2.0 */
#include "packer/repair_unit.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "format/base/ckd.h"
#include "packer/page_cache.h"
#include "packer/trunk_units.h"
#include "packer/trunk_writer.h"

#define PAGE_BYTES UINT64_C(4096)

void k3_mender_init(struct k3_mender *mender, struct k3_verify *verify, const char *checkpoint,
                    struct k3_file *trunk, struct k3_file *experts, struct k3_damage_list *lacking)
{
    *mender = (struct k3_mender){.v = verify,
                                 .checkpoint = checkpoint,
                                 .files = {trunk, experts},
                                 .shard = K3_FILE_CLOSED,
                                 .lacking = lacking};
    k3_restorer_init(&mender->restorer, &verify->tables, trunk, experts);
}

void k3_mender_done(struct k3_mender *mender)
{
    if (mender->v) {
        k3_file_close(&mender->shard);
    }
    k3_restorer_done(&mender->restorer);
    k3_buffer_done(&mender->image);
    k3_buffer_done(&mender->stored);
    k3_buffer_done(&mender->source);
    k3_buffer_done(&mender->encoded);
    k3_buffer_done(&mender->scratch);
    *mender = (struct k3_mender){0};
}

/* The shard of a source, open; false (with a reason) where it is not there. */
static bool open_shard(struct k3_mender *m, uint32_t shard, struct k3_error *why)
{
    if (m->shard.fd >= 0 && m->shard_index == shard) {
        return true;
    }
    k3_file_close(&m->shard);
    m->shard = K3_FILE_CLOSED;
    char *path = k3_path_join(m->checkpoint, m->v->provenance.shards[shard].name);
    const enum k3_code code =
        path ? k3_file_open_read(path, &m->shard, why) : k3_fail_no_memory(why, "path");
    free(path);
    m->shard_index = shard;
    return code == K3_OK;
}

/* Bytes [offset, offset + bytes) of a source tensor to out_bytes. */
static bool read_source(struct k3_mender *m, uint32_t source, uint64_t offset, uint64_t bytes,
                        uint8_t *out_bytes, struct k3_error *why)
{
    const struct k3_source_record *record = k3_source_at(&m->v->tables, &m->v->provenance, source);
    if (!open_shard(m, record->shard, why)) {
        return false;
    }
    const enum k3_code code =
        k3_file_read(&m->shard, record->offset + offset, out_bytes, (size_t)bytes, why);
    k3_cache_drop(&m->shard, record->offset + offset, bytes);
    return code == K3_OK;
}

static void add_lacking(struct k3_mender *m, const struct k3_damage *base, uint32_t source,
                        uint64_t offset, uint64_t bytes, const char *reason)
{
    struct k3_damage d = *base;
    const struct k3_source_record *record = k3_source_at(&m->v->tables, &m->v->provenance, source);
    k3_source_name(&m->v->tables, source, d.tensor);
    d.shard = m->v->provenance.shards[record->shard].name;
    d.source_offset = record->offset + offset;
    d.source_bytes = bytes;
    k3_damage_add(m->lacking, &d, "%s", reason);
}

/* Writes the pages of the image that differ from what is stored (all, where nothing could be
 * read), makes them durable and reads all of it back from the device. */
static enum k3_code put_image(struct k3_mender *m, const struct k3_file *file, uint64_t offset,
                              uint64_t bytes, bool is_read, const struct k3_digest *expected,
                              bool *out_is_mended, struct k3_error *err)
{
    enum k3_code code = K3_OK;
    for (uint64_t at = 0; code == K3_OK && at < bytes; at += PAGE_BYTES) {
        const size_t len = (size_t)k3_min_u64(PAGE_BYTES, bytes - at);
        if (!is_read || memcmp(m->image.bytes + at, m->stored.bytes + at, len) != 0) {
            code = k3_file_write(file, offset + at, m->image.bytes + at, len, err);
            m->written_bytes += len;
        }
    }
    if (code == K3_OK) {
        code = k3_file_sync(file, err);
    }
    if (code != K3_OK) {
        return code;
    }
    k3_cache_drop(file, offset, bytes);
    struct k3_direct direct;
    k3_direct_open(file, &direct);
    code = k3_direct_read(&direct, offset, m->stored.bytes, bytes, err);
    k3_direct_close(&direct);
    if (code == K3_OK) {
        const struct k3_digest found = k3_digest_of(m->stored.bytes, (size_t)bytes);
        *out_is_mended = k3_digest_equal(&found, expected);
        if (!*out_is_mended) {
            code = k3_fail(err, K3_ERR_IO, offset,
                           "'%s': bytes %" PRIu64 "..%" PRIu64
                           " read back other than they were written: the disk or memory fails",
                           file->path, offset, offset + bytes);
        }
    }
    return code;
}

/* What is stored now, to m->stored; zeros where it cannot be read. */
static enum k3_code read_stored(struct k3_mender *m, const struct k3_file *file, uint64_t offset,
                                uint64_t bytes, bool *out_is_read, struct k3_error *err)
{
    struct k3_error why;
    enum k3_code code = k3_buffer_reserve(&m->stored, bytes, err);
    if (code == K3_OK) {
        code = k3_buffer_reserve(&m->image, bytes, err);
    }
    if (code != K3_OK) {
        return code;
    }
    *out_is_read = k3_file_read(file, offset, m->stored.bytes, (size_t)bytes, &why) == K3_OK;
    if (!*out_is_read) {
        memset(m->stored.bytes, 0, (size_t)bytes);
    }
    return K3_OK;
}

/* The part of a block that a tensor takes, from its end to the next tensor's start included. */
struct slice {
    const struct k3_trunk_tensor *tensor;
    uint64_t first, end; /* in the file */
};

static bool slice_of(const struct k3_trunk_tensor *t, uint64_t at, uint64_t len,
                     struct slice *out_slice)
{
    *out_slice = (struct slice){.tensor = t,
                                .first = k3_max_u64(at, t->file_offset),
                                .end = k3_min_u64(at + len, t->file_offset + t->stored_bytes)};
    return out_slice->first < out_slice->end;
}

/* Overlays a slice of the image with what the shards give for it; without, it stays. */
static enum k3_code overlay_slice(struct k3_mender *m, const struct slice *s, uint64_t at,
                                  bool *out_is_made, struct k3_error *why, struct k3_error *err)
{
    const struct k3_trunk_tensor *t = s->tensor;
    const struct k3_unit_range range =
        k3_trunk_unit_range(&m->v->tables, t, s->first - t->file_offset, s->end - s->first);
    enum k3_code code = k3_buffer_reserve(&m->source, range.source_bytes, err);
    if (code == K3_OK) {
        code = k3_buffer_reserve(&m->encoded, range.stored_bytes, err);
    }
    if (code != K3_OK) {
        return code;
    }
    *out_is_made =
        read_source(m, t->source, range.source_offset, range.source_bytes, m->source.bytes, why);
    if (!*out_is_made) {
        return K3_OK;
    }
    code = k3_trunk_units_encode(t, &range, m->source.bytes, m->encoded.bytes, &m->scratch, err);
    if (code == K3_OK) {
        memcpy(m->image.bytes + (s->first - at),
               m->encoded.bytes + (s->first - t->file_offset - range.stored_offset),
               (size_t)(s->end - s->first));
    }
    return code;
}

/* What is between tensors is zero. */
static void clear_padding(struct k3_mender *m, const struct k3_trunk_extent *extent, uint64_t at,
                          uint64_t len)
{
    uint64_t from = at;
    for (uint32_t i = 0; i < extent->tensor_count; i++) {
        struct slice s;
        if (slice_of(&m->v->tables.tensors[extent->tensor_first + i], at, len, &s)) {
            memset(m->image.bytes + (from - at), 0, (size_t)(s.first - from));
            from = s.end;
        }
    }
    memset(m->image.bytes + (from - at), 0, (size_t)(at + len - from));
}

/* Tries tensor by tensor first: the others may be good in the pack and absent from the shards. Then
 * all of them together. */
static enum k3_code make_block(struct k3_mender *m, const struct k3_trunk_extent *extent,
                               uint64_t at, uint64_t len, const struct k3_digest *expected,
                               bool *out_is_made, struct k3_error *err)
{
    enum k3_code code = K3_OK;
    *out_is_made = false;
    for (unsigned attempt = 0; code == K3_OK && attempt < 2; attempt++) {
        const bool together = attempt == 1;
        memcpy(m->image.bytes, m->stored.bytes, (size_t)len);
        clear_padding(m, extent, at, len);
        struct k3_digest found = k3_digest_of(m->image.bytes, (size_t)len);
        *out_is_made = k3_digest_equal(&found, expected);
        for (uint32_t i = 0; code == K3_OK && !*out_is_made && i < extent->tensor_count; i++) {
            struct slice s;
            struct k3_error why;
            bool is_read = false;
            if (!slice_of(&m->v->tables.tensors[extent->tensor_first + i], at, len, &s)) {
                continue;
            }
            code = overlay_slice(m, &s, at, &is_read, &why, err);
            if (code == K3_OK && is_read) {
                found = k3_digest_of(m->image.bytes, (size_t)len);
                *out_is_made = k3_digest_equal(&found, expected);
            }
            if (code == K3_OK && !*out_is_made && !together) {
                memcpy(m->image.bytes + (s.first - at), m->stored.bytes + (s.first - at),
                       (size_t)(s.end - s.first));
            }
        }
        if (*out_is_made) {
            break;
        }
    }
    return code;
}

/* Says for each tensor of the block what the shards lack or have wrong. */
static enum k3_code name_lacking(struct k3_mender *m, const struct k3_trunk_extent *extent,
                                 uint64_t at, uint64_t len, struct k3_error *err)
{
    for (uint32_t i = 0; i < extent->tensor_count; i++) {
        struct slice s;
        struct k3_error why = {0};
        bool is_read = false;
        if (!slice_of(&m->v->tables.tensors[extent->tensor_first + i], at, len, &s)) {
            continue;
        }
        memcpy(m->image.bytes, m->stored.bytes, (size_t)len);
        const enum k3_code code = overlay_slice(m, &s, at, &is_read, &why, err);
        if (code != K3_OK) {
            return code;
        }
        if (is_read && memcmp(m->image.bytes + (s.first - at), m->stored.bytes + (s.first - at),
                              (size_t)(s.end - s.first)) == 0) {
            continue; /* the pack already has what the shard gives */
        }
        const struct k3_unit_range range = k3_trunk_unit_range(
            &m->v->tables, s.tensor, s.first - s.tensor->file_offset, s.end - s.first);
        const struct k3_damage base = {.kind = K3_DAMAGE_TRUNK,
                                       .file = K3_FILE_TRUNK,
                                       .layer = extent->layer,
                                       .offset = s.first,
                                       .bytes = s.end - s.first};
        add_lacking(m, &base, s.tensor->source, range.source_offset, range.source_bytes,
                    is_read ? "the shard gives other bytes than were packed" : why.message);
    }
    return K3_OK;
}

enum k3_code k3_mend_block(struct k3_mender *mender, const struct k3_trunk_extent *extent,
                           uint32_t block, bool *out_is_mended, struct k3_error *err)
{
    const struct k3_file *file = mender->files[0];
    const uint64_t at = extent->file_offset + block * K3_TRUNK_BLOCK_BYTES;
    const uint64_t len = k3_trunk_block_bytes(extent, block);
    const struct k3_digest *expected =
        &mender->v->tables.block_digests[extent->block_first + block];
    bool is_read = false, is_made = false;
    *out_is_mended = false;
    enum k3_code code = read_stored(mender, file, at, len, &is_read, err);
    if (code == K3_OK) {
        code = make_block(mender, extent, at, len, expected, &is_made, err);
    }
    if (code == K3_OK && !is_made) {
        return name_lacking(mender, extent, at, len, err);
    }
    return code == K3_OK ? put_image(mender, file, at, len, is_read, expected, out_is_mended, err)
                         : code;
}

/* Parts of an expert to `source`: from the pack where it still has what was packed, else from the
 * shard; what neither has is said. */
static bool gather_parts(struct k3_mender *m, uint64_t expert, const struct k3_damage *base)
{
    const struct k3_expert_shape *shape = &m->restorer.shape;
    bool is_complete = true;
    for (unsigned part = 0; part < K3_EXPERT_PARTS; part++) {
        const uint32_t source = k3_expert_source(&m->v->tables, expert, part);
        const struct k3_source_record *record =
            k3_source_at(&m->v->tables, &m->v->provenance, source);
        uint8_t *bytes = m->source.bytes + shape->part_offset[part];
        const size_t len = (size_t)shape->part_bytes[part];
        struct k3_error why = {0};
        struct k3_digest found = k3_digest_of(bytes, len);
        if (k3_digest_equal(&found, &record->digest)) {
            continue;
        }
        const bool is_read = read_source(m, source, 0, len, bytes, &why);
        found = k3_digest_of(bytes, len);
        if (!is_read || !k3_digest_equal(&found, &record->digest)) {
            add_lacking(m, base, source, 0, len,
                        is_read ? "the shard gives other bytes than were packed" : why.message);
            is_complete = false;
        }
    }
    return is_complete;
}

enum k3_code k3_mend_expert(struct k3_mender *mender, uint64_t expert, bool *out_is_mended,
                            struct k3_error *err)
{
    const struct k3_expert_layout *layout = &mender->v->tables.layout;
    const struct k3_file *file = mender->files[1];
    const uint64_t at = k3_expert_offset(layout, expert), len = layout->used_bytes;
    const struct k3_digest *expected = &mender->v->tables.expert_digests[expert];
    const struct k3_damage base = {.kind = K3_DAMAGE_EXPERT,
                                   .file = K3_FILE_EXPERTS,
                                   .layer = layout->first_layer +
                                            (uint32_t)(expert / layout->expert_count),
                                   .has_expert = true,
                                   .expert = (uint32_t)(expert % layout->expert_count),
                                   .offset = at,
                                   .bytes = len};
    bool is_read = false;
    *out_is_mended = false;
    enum k3_code code = read_stored(mender, file, at, len, &is_read, err);
    if (code == K3_OK) {
        code = k3_buffer_reserve(&mender->source, mender->restorer.shape.source_bytes, err);
    }
    if (code != K3_OK) {
        return code;
    }
    k3_expert_decode(&mender->restorer.shape, layout, mender->stored.bytes, mender->source.bytes);
    if (!gather_parts(mender, expert, &base)) {
        return K3_OK;
    }
    memset(mender->image.bytes, 0, (size_t)len);
    k3_expert_encode(&mender->restorer.shape, layout, mender->source.bytes, mender->image.bytes);
    const struct k3_digest found = k3_digest_of(mender->image.bytes, (size_t)len);
    if (!k3_digest_equal(&found, expected)) {
        k3_damage_add(mender->lacking, &base,
                      "its sources are right, but do not give the recorded digest");
        return K3_OK;
    }
    return put_image(mender, file, at, len, is_read, expected, out_is_mended, err);
}
