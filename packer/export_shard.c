/* SPDX-License-Identifier: Apache-2.0 */
#include "packer/export_shard.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/base/ckd.h"

#define HEADER_ALIGN 8U

static struct k3_export_tensor describe(const struct k3_pack_tables *tables, uint32_t source)
{
    struct k3_export_tensor t = {.source = source, .dtype = K3_SOURCE_U8, .ndim = 2};
    k3_source_name(tables, source, t.name);
    if (source >= tables->source_count) {
        k3_expert_part_shape(&tables->spec, (source - tables->source_count) % K3_EXPERT_PARTS,
                             t.shape);
        t.bytes = t.shape[0] * t.shape[1];
        return t;
    }
    const struct k3_source_shape shape =
        k3_tensor_source_shape(tables, k3_source_first_tensor(tables, source));
    t.dtype = shape.dtype == K3_DTYPE_F32 ? K3_SOURCE_F32 : K3_SOURCE_BF16;
    t.ndim = shape.ndim;
    memcpy(t.shape, shape.shape, sizeof t.shape);
    t.bytes = k3_source_bytes(&shape);
    return t;
}

static int dtype_rank(enum k3_source_dtype dtype)
{
    return dtype == K3_SOURCE_F32 ? 0 : dtype == K3_SOURCE_BF16 ? 1 : 2;
}

static int compare_tensors(const void *a, const void *b)
{
    const struct k3_export_tensor *x = a, *y = b;
    const int by_dtype = dtype_rank(x->dtype) - dtype_rank(y->dtype);
    return by_dtype != 0 ? by_dtype : strcmp(x->name, y->name);
}

static enum k3_code collect(const struct k3_pack_tables *tables, const struct k3_provenance *p,
                            uint32_t shard, struct k3_export_shard *out, struct k3_error *err)
{
    const uint32_t total = k3_expert_source(tables, k3_expert_total(&tables->layout), 0);
    size_t count = 0;
    for (uint32_t source = 0; source < total; source++) {
        count += k3_source_at(tables, p, source)->shard == shard;
    }
    out->tensors = calloc(count + 1, sizeof *out->tensors);
    if (!out->tensors) {
        return k3_fail_no_memory(err, "tensor list");
    }
    for (uint32_t source = 0; source < total; source++) {
        if (k3_source_at(tables, p, source)->shard == shard) {
            out->tensors[out->count++] = describe(tables, source);
        }
    }
    qsort(out->tensors, out->count, sizeof *out->tensors, compare_tensors);
    return K3_OK;
}

static void print_header(const struct k3_export_shard *shard, FILE *stream)
{
    uint64_t offset = 0;
    fputc('{', stream);
    for (size_t i = 0; i < shard->count; i++) {
        const struct k3_export_tensor *t = &shard->tensors[i];
        fprintf(stream, "%s\"%s\":{\"dtype\":\"%s\",\"shape\":[", i > 0 ? "," : "", t->name,
                k3_source_dtype_name(t->dtype));
        for (uint32_t d = 0; d < t->ndim; d++) {
            fprintf(stream, "%s%" PRIu64, d > 0 ? "," : "", t->shape[d]);
        }
        fprintf(stream, "],\"data_offsets\":[%" PRIu64 ",%" PRIu64 "]}", offset, offset + t->bytes);
        offset += t->bytes;
    }
    fputc('}', stream);
}

static enum k3_code make_header(struct k3_export_shard *shard, struct k3_error *err)
{
    FILE *stream = open_memstream(&shard->header, &shard->header_len);
    if (!stream) {
        return k3_fail_no_memory(err, "shard header");
    }
    print_header(shard, stream);
    const long at = ftell(stream);
    for (uint64_t i = at < 0 ? 0 : (uint64_t)at; i % HEADER_ALIGN != 0; i++) {
        fputc(' ', stream);
    }
    const bool failed = at < 0 || ferror(stream);
    if (fclose(stream) != 0 || failed) {
        return k3_fail_no_memory(err, "shard header");
    }
    return K3_OK;
}

enum k3_code k3_export_shard_make(const struct k3_pack_tables *tables,
                                  const struct k3_provenance *provenance, uint32_t shard,
                                  struct k3_export_shard *out_shard, struct k3_error *err)
{
    struct k3_export_shard s = {0};
    enum k3_code code = collect(tables, provenance, shard, &s, err);
    if (code == K3_OK && s.count > 0) {
        code = make_header(&s, err);
        s.file_bytes = 8 + s.header_len;
        for (size_t i = 0; i < s.count; i++) {
            s.file_bytes += s.tensors[i].bytes;
        }
    }
    if (code != K3_OK) {
        k3_export_shard_done(&s);
        return code;
    }
    *out_shard = s;
    return K3_OK;
}

void k3_export_shard_done(struct k3_export_shard *shard)
{
    free(shard->tensors);
    free(shard->header);
    *shard = (struct k3_export_shard){0};
}
