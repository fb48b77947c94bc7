/* SPDX-License-Identifier: Apache-2.0 */
#include "packer/expert_writer.h"

#include <inttypes.h>

#include "format/base/bytes.h"
#include "format/base/ckd.h"
#include "format/pack/tiles.h"
#include "packer/census.h"
#include "packer/sparse_write.h"

enum k3_code k3_expert_writer_init(struct k3_expert_writer *writer,
                                   const struct k3_pack_tables *tables,
                                   const struct k3_provenance *provenance,
                                   const struct k3_file *file, struct k3_source_reader *reader,
                                   struct k3_error *err)
{
    *writer = (struct k3_expert_writer){
        .tables = tables, .provenance = provenance, .file = file, .reader = reader};
    writer->shape = k3_expert_shape_of(&tables->spec);
    enum k3_code code = k3_digest_stream_create(&writer->digest, err);
    if (code == K3_OK) {
        code = k3_buffer_reserve(&writer->source, writer->shape.source_bytes, err);
    }
    if (code == K3_OK) {
        code = k3_buffer_reserve(&writer->stored, tables->layout.used_bytes, err);
    }
    if (code == K3_OK) {
        for (unsigned part = 0; part < K3_EXPERT_PARTS; part++) {
            writer->zero_parts[part] =
                k3_digest_of(writer->source.bytes, (size_t)writer->shape.part_bytes[part]);
        }
        writer->zero_digest = k3_digest_of(writer->stored.bytes, (size_t)tables->layout.used_bytes);
    }
    return code;
}

void k3_expert_writer_done(struct k3_expert_writer *writer)
{
    if (writer->digest) {
        k3_digest_stream_destroy(writer->digest);
    }
    k3_buffer_done(&writer->source);
    k3_buffer_done(&writer->stored);
    *writer = (struct k3_expert_writer){0};
}

/* Parts in the order of the shards. */
static void order_parts(const struct k3_source_record *records, unsigned out_order[K3_EXPERT_PARTS])
{
    for (unsigned i = 0; i < K3_EXPERT_PARTS; i++) {
        unsigned at = i;
        for (; at > 0; at--) {
            const struct k3_source_record *a = &records[out_order[at - 1]], *b = &records[i];
            if (a->shard < b->shard || (a->shard == b->shard && a->offset < b->offset)) {
                break;
            }
            out_order[at] = out_order[at - 1];
        }
        out_order[at] = i;
    }
}

/* A part that is a hole has a digest that is known. */
static enum k3_code read_part(struct k3_expert_writer *w, const struct k3_source_record *record,
                              unsigned part, uint8_t *out_bytes, struct k3_digest *out_digest,
                              bool *out_is_zero, struct k3_error *err)
{
    const bool is_hole = k3_source_is_hole(w->reader, record->offset, record->bytes);
    k3_digest_stream_reset(w->digest);
    const enum k3_code code = k3_source_read(w->reader, record->offset, out_bytes, record->bytes,
                                             is_hole ? NULL : w->digest, out_is_zero, err);
    if (code == K3_OK) {
        *out_digest = is_hole ? w->zero_parts[part] : k3_digest_stream_value(w->digest);
    }
    return code;
}

/* Reads all parts into the source buffer; *out_is_zero when nothing but zeros was there. */
static enum k3_code read_parts(struct k3_expert_writer *w, uint64_t expert,
                               struct k3_digest out_sources[K3_EXPERT_PARTS], bool *out_is_zero,
                               struct k3_error *err)
{
    const struct k3_source_record *records = &w->provenance->experts[expert * K3_EXPERT_PARTS];
    unsigned order[K3_EXPERT_PARTS];
    bool is_zero[K3_EXPERT_PARTS];
    order_parts(records, order);
    *out_is_zero = true;
    for (unsigned i = 0; i < K3_EXPERT_PARTS; i++) {
        const unsigned part = order[i];
        uint8_t *bytes = w->source.bytes + w->shape.part_offset[part];
        enum k3_code code = k3_source_seek(w->reader, records[part].shard, err);
        if (code == K3_OK) {
            code =
                read_part(w, &records[part], part, bytes, &out_sources[part], &is_zero[part], err);
        }
        if (code != K3_OK) {
            return code;
        }
        *out_is_zero = *out_is_zero && is_zero[part];
    }
    for (unsigned part = 0; !*out_is_zero && part < K3_EXPERT_PARTS; part++) {
        if (is_zero[part]) {
            memset(w->source.bytes + w->shape.part_offset[part], 0,
                   (size_t)w->shape.part_bytes[part]);
        }
    }
    return K3_OK;
}

static enum k3_code check_scales(const struct k3_expert_writer *w, uint64_t expert,
                                 struct k3_error *err)
{
    for (unsigned m = 0; m < 3; m++) {
        const uint8_t *scales = w->source.bytes + w->shape.part_offset[2 * m + 1];
        const uint64_t groups = w->shape.part_bytes[2 * m + 1];
        const size_t bad = k3_mxfp4_find_forbidden(w->source.bytes + w->shape.part_offset[2 * m],
                                                   scales, (size_t)groups);
        if (bad == SIZE_MAX) {
            continue;
        }
        const uint32_t source = k3_expert_source(w->tables, expert, 2 * m + 1);
        const struct k3_source_record *record = k3_source_at(w->tables, w->provenance, source);
        char name[K3_TENSOR_NAME_MAX];
        k3_source_name(w->tables, source, name);
        return k3_fail(err, K3_ERR_DAMAGED, record->offset + bad,
                       "'%s': tensor '%s' row %" PRIu64 " group %" PRIu64 " (file byte %" PRIu64
                       ") has scale code %u, which no weight can have%s; download this shard again",
                       w->reader->set->shards[record->shard].name, name,
                       bad / w->shape.part_row_bytes[2 * m + 1],
                       bad % w->shape.part_row_bytes[2 * m + 1], record->offset + bad, scales[bad],
                       scales[bad] == 0 ? " unless its 32 weights are zero" : "");
    }
    return K3_OK;
}

enum k3_code k3_expert_write(struct k3_expert_writer *writer, uint64_t expert,
                             struct k3_digest out_sources[K3_EXPERT_PARTS],
                             struct k3_digest *out_stored, struct k3_error *err)
{
    const struct k3_expert_layout *layout = &writer->tables->layout;
    bool is_zero = false;
    enum k3_code code = read_parts(writer, expert, out_sources, &is_zero, err);
    if (code != K3_OK) {
        return code;
    }
    if (is_zero) {
        *out_stored = writer->zero_digest;
        return K3_OK;
    }
    code = check_scales(writer, expert, err);
    if (code != K3_OK) {
        return code;
    }
    k3_expert_encode(&writer->shape, layout, writer->source.bytes, writer->stored.bytes);
    *out_stored = k3_digest_of(writer->stored.bytes, (size_t)layout->used_bytes);
    const uint64_t offset = k3_expert_offset(layout, expert);
    code = k3_write_sparse(writer->file, offset, writer->stored.bytes, (size_t)layout->used_bytes,
                           err);
    if (code == K3_OK) {
        k3_write_behind(&writer->behind, writer->file, offset, layout->used_bytes);
    }
    return code;
}
