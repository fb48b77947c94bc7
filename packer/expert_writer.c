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
    writer->direct = (struct k3_direct){.file = file, .fd = -1};
    writer->shape = k3_expert_shape_of(&tables->spec);
    struct k3_expert_job *own = &writer->own; /* fresh buffers are zero */
    enum k3_code code = k3_buffer_reserve(&own->source, writer->shape.source_bytes, err);
    if (code == K3_OK) {
        code = k3_buffer_reserve(&own->stored, tables->layout.used_bytes, err);
    }
    if (code == K3_OK) {
        for (unsigned part = 0; part < K3_EXPERT_PARTS; part++) {
            writer->zero_parts[part] =
                k3_digest_of(own->source.bytes, (size_t)writer->shape.part_bytes[part]);
        }
        writer->zero_digest = k3_digest_of(own->stored.bytes, (size_t)tables->layout.used_bytes);
    }
    return code;
}

void k3_expert_job_done(struct k3_expert_job *job)
{
    k3_buffer_done(&job->source);
    k3_buffer_done(&job->stored);
}

void k3_expert_writer_go_direct(struct k3_expert_writer *writer)
{
    k3_direct_open(writer->file, &writer->direct);
}

void k3_expert_writer_done(struct k3_expert_writer *writer)
{
    k3_direct_close(&writer->direct);
    k3_expert_job_done(&writer->own);
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

enum k3_code k3_expert_read(struct k3_expert_writer *writer, uint64_t expert,
                            struct k3_expert_job *job, struct k3_error *err)
{
    const struct k3_source_record *records = &writer->provenance->experts[expert * K3_EXPERT_PARTS];
    unsigned order[K3_EXPERT_PARTS];
    order_parts(records, order);
    job->expert = expert;
    job->is_zero = true;
    enum k3_code code = k3_buffer_reserve(&job->source, writer->shape.source_bytes, err);
    for (unsigned i = 0; code == K3_OK && i < K3_EXPERT_PARTS; i++) {
        const unsigned part = order[i];
        const struct k3_source_record *record = &records[part];
        bool is_zero = false;
        code = k3_source_seek(writer->reader, record->shard, err);
        if (code == K3_OK) {
            job->is_hole[part] = k3_source_is_hole(writer->reader, record->offset, record->bytes);
            code = k3_source_read(writer->reader, record->offset,
                                  job->source.bytes + writer->shape.part_offset[part],
                                  record->bytes, NULL, &is_zero, err);
            job->is_zero = job->is_zero && is_zero;
        }
    }
    return code;
}

/* Parts that are holes were not read: zeros where others were. */
static void digest_parts(const struct k3_expert_writer *w, struct k3_expert_job *job)
{
    for (unsigned part = 0; part < K3_EXPERT_PARTS; part++) {
        uint8_t *bytes = job->source.bytes + w->shape.part_offset[part];
        const size_t len = (size_t)w->shape.part_bytes[part];
        if (job->is_hole[part]) {
            job->sources[part] = w->zero_parts[part];
            if (!job->is_zero) {
                memset(bytes, 0, len);
            }
        } else {
            job->sources[part] = k3_digest_of(bytes, len);
        }
    }
}

static enum k3_code check_scales(const struct k3_expert_writer *w, const struct k3_expert_job *job,
                                 struct k3_error *err)
{
    for (unsigned m = 0; m < 3; m++) {
        const uint8_t *scales = job->source.bytes + w->shape.part_offset[2 * m + 1];
        const uint64_t groups = w->shape.part_bytes[2 * m + 1];
        const size_t bad = k3_mxfp4_find_forbidden(job->source.bytes + w->shape.part_offset[2 * m],
                                                   scales, (size_t)groups);
        if (bad == SIZE_MAX) {
            continue;
        }
        const uint32_t source = k3_expert_source(w->tables, job->expert, 2 * m + 1);
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

static enum k3_code finish(const struct k3_expert_writer *w, struct k3_expert_job *job)
{
    const struct k3_expert_layout *layout = &w->tables->layout;
    digest_parts(w, job);
    if (job->is_zero) {
        job->digest = w->zero_digest;
        return K3_OK;
    }
    enum k3_code code = check_scales(w, job, &job->err);
    if (code == K3_OK) {
        code = k3_buffer_reserve(&job->stored, layout->used_bytes, &job->err);
    }
    if (code != K3_OK) {
        return code;
    }
    k3_expert_encode(&w->shape, layout, job->source.bytes, job->stored.bytes);
    job->digest = k3_digest_of(job->stored.bytes, (size_t)layout->used_bytes);
    return k3_write_sparse_direct(&w->direct, k3_expert_offset(layout, job->expert),
                                  job->stored.bytes, layout->used_bytes, &job->err);
}

void k3_expert_finish(const struct k3_expert_writer *writer, struct k3_expert_job *job)
{
    job->err = (struct k3_error){0};
    job->code = finish(writer, job);
}

void k3_expert_written(struct k3_expert_writer *writer, const struct k3_expert_job *job)
{
    if (!job->is_zero) {
        const struct k3_expert_layout *layout = &writer->tables->layout;
        k3_write_behind(&writer->behind, writer->file, k3_expert_offset(layout, job->expert),
                        layout->used_bytes);
    }
}

enum k3_code k3_expert_write(struct k3_expert_writer *writer, uint64_t expert,
                             struct k3_digest out_sources[K3_EXPERT_PARTS],
                             struct k3_digest *out_stored, struct k3_error *err)
{
    struct k3_expert_job *job = &writer->own;
    const enum k3_code code = k3_expert_read(writer, expert, job, err);
    if (code != K3_OK) {
        return code;
    }
    k3_expert_finish(writer, job);
    if (job->code != K3_OK) {
        *err = job->err;
        return job->code;
    }
    k3_expert_written(writer, job);
    memcpy(out_sources, job->sources, sizeof job->sources);
    *out_stored = job->digest;
    return K3_OK;
}
