/* SPDX-License-Identifier: Apache-2.0 */
#include "format/pack/provenance.h"

#include <stdlib.h>

#include "format/base/assert.h"
#include "format/base/ckd.h"
#include "format/base/utf8.h"
#include "format/pack/byte_reader.h"

/* A SHARDS record with a name of one byte: no count may promise more than the bytes hold. */
#define SHARD_RECORD_MIN_BYTES (4U + 4U + 8U + K3_DIGEST_BYTES + K3_SHA256_BYTES + 1U)

static size_t expert_source_count(const struct k3_pack_tables *tables)
{
    return (size_t)k3_expert_total(&tables->layout) * K3_EXPERT_PARTS;
}

enum k3_code k3_provenance_create(const struct k3_pack_tables *tables, uint32_t shard_count,
                                  struct k3_provenance *out_provenance, struct k3_error *err)
{
    struct k3_provenance p = {.shard_count = shard_count};
    p.shards = calloc(shard_count ? shard_count : 1, sizeof *p.shards);
    p.trunk = calloc(tables->source_count, sizeof *p.trunk);
    p.experts = calloc(expert_source_count(tables), sizeof *p.experts);
    if (!p.shards || !p.trunk || !p.experts) {
        k3_provenance_done(&p);
        return k3_fail_no_memory(err, "provenance");
    }
    *out_provenance = p;
    return K3_OK;
}

void k3_provenance_done(struct k3_provenance *provenance)
{
    for (uint32_t i = 0; provenance->shards && i < provenance->shard_count; i++) {
        free(provenance->shards[i].name);
    }
    free(provenance->shards);
    free(provenance->trunk);
    free(provenance->experts);
    *provenance = (struct k3_provenance){0};
}

const struct k3_trunk_tensor *k3_source_first_tensor(const struct k3_pack_tables *tables,
                                                     uint32_t source)
{
    /* Sources ascend with the tensors, and at most one tensor shares: a short walk from below. */
    uint32_t at = source;
    while (at < tables->tensor_count && tables->tensors[at].source < source) {
        at += source - tables->tensors[at].source;
    }
    k3_assert(at < tables->tensor_count && tables->tensors[at].source == source);
    return at > 0 && tables->tensors[at - 1].source == source ? &tables->tensors[at - 1]
                                                              : &tables->tensors[at];
}

struct k3_source_shape k3_tensor_source_shape(const struct k3_pack_tables *tables,
                                              const struct k3_trunk_tensor *tensor)
{
    return k3_role_source_shape(&tables->spec, tensor->layer, tensor->role, tensor->cols);
}

bool k3_shard_name_is_good(const uint8_t *name, size_t len)
{
    if (len == 0 || len > K3_SHARD_NAME_MAX || memchr(name, 0, len) || memchr(name, '/', len)) {
        return false;
    }
    for (size_t at = 0; at < len;) {
        const size_t step = k3_utf8_sequence(name + at, len - at);
        if (step == 0) {
            return false;
        }
        at += step;
    }
    return true;
}

/* What a reader would refuse is not written: shard names come from the file system. */
static enum k3_code check_shard_names(const struct k3_provenance *p, struct k3_error *err)
{
    for (uint32_t i = 0; i < p->shard_count; i++) {
        const char *name = p->shards[i].name;
        if (!k3_shard_name_is_good((const uint8_t *)name, strlen(name))) {
            return k3_fail(err, K3_ERR_MALFORMED, K3_ERROR_NO_OFFSET,
                           "shard %u: its name is not UTF-8 of 1 to %u bytes", i,
                           K3_SHARD_NAME_MAX);
        }
    }
    return K3_OK;
}

static void write_shards(const struct k3_provenance *p, struct k3_byte_writer *w)
{
    k3_writer_u32(w, p->shard_count);
    for (uint32_t i = 0; i < p->shard_count; i++) {
        const struct k3_shard_record *shard = &p->shards[i];
        const size_t name_len = strlen(shard->name);
        k3_writer_u32(w, (uint32_t)name_len);
        k3_writer_u32(w, shard->has_sha256);
        k3_writer_u64(w, shard->file_bytes);
        k3_writer_put(w, shard->digest.bytes, K3_DIGEST_BYTES);
        k3_writer_put(w, shard->sha256, K3_SHA256_BYTES);
        k3_writer_put(w, shard->name, name_len);
    }
}

static void write_trunk_sources(const struct k3_provenance *p, const struct k3_pack_tables *tables,
                                struct k3_byte_writer *w)
{
    k3_writer_u32(w, tables->source_count);
    for (uint32_t i = 0; i < tables->source_count; i++) {
        const struct k3_trunk_tensor *tensor = k3_source_first_tensor(tables, i);
        const struct k3_source_shape shape = k3_tensor_source_shape(tables, tensor);
        const struct k3_source_record *record = &p->trunk[i];
        char name[K3_TENSOR_NAME_MAX];
        k3_role_source_name(tensor->layer, tensor->role, name);
        k3_writer_u32(w, (uint32_t)strlen(name));
        k3_writer_u16(w, (uint16_t)shape.dtype);
        k3_writer_u16(w, (uint16_t)shape.ndim);
        for (uint32_t d = 0; d < shape.ndim; d++) {
            k3_writer_u64(w, shape.shape[d]);
        }
        k3_writer_u32(w, record->shard);
        k3_writer_u64(w, record->offset);
        k3_writer_u64(w, record->bytes);
        k3_writer_put(w, record->digest.bytes, K3_DIGEST_BYTES);
        k3_writer_put(w, name, strlen(name));
    }
}

static void write_expert_sources(const struct k3_provenance *p, const struct k3_pack_tables *tables,
                                 struct k3_byte_writer *w)
{
    const size_t count = expert_source_count(tables);
    for (size_t i = 0; i < count; i++) {
        k3_writer_u32(w, p->experts[i].shard);
        k3_writer_u32(w, 0);
        k3_writer_u64(w, p->experts[i].offset);
        k3_writer_u64(w, p->experts[i].bytes);
        k3_writer_put(w, p->experts[i].digest.bytes, K3_DIGEST_BYTES);
    }
}

static void write_section(const struct k3_provenance *p, const struct k3_pack_tables *tables,
                          enum k3_section_kind kind, struct k3_byte_writer *w)
{
    if (kind == K3_SECTION_SHARDS) {
        write_shards(p, w);
    } else if (kind == K3_SECTION_TRUNK_SOURCES) {
        write_trunk_sources(p, tables, w);
    } else {
        k3_assert(kind == K3_SECTION_EXPERT_SOURCES);
        write_expert_sources(p, tables, w);
    }
}

enum k3_code k3_provenance_encode(const struct k3_provenance *provenance,
                                  const struct k3_pack_tables *tables, enum k3_section_kind kind,
                                  uint8_t **out_bytes, size_t *out_len, struct k3_error *err)
{
    const enum k3_code code = check_shard_names(provenance, err);
    if (code != K3_OK) {
        return code;
    }
    struct k3_byte_writer w = {0};
    write_section(provenance, tables, kind, &w);
    uint8_t *bytes = malloc(w.at);
    if (!bytes) {
        return k3_fail_no_memory(err, "provenance");
    }
    w = (struct k3_byte_writer){.bytes = bytes};
    write_section(provenance, tables, kind, &w);
    *out_bytes = bytes;
    *out_len = w.at;
    return K3_OK;
}

static enum k3_code read_shards(struct k3_byte_reader *r, struct k3_provenance *p,
                                struct k3_error *err)
{
    for (uint32_t i = 0; i < p->shard_count; i++) {
        struct k3_shard_record *shard = &p->shards[i];
        const uint32_t name_len = k3_reader_u32(r);
        const uint32_t flags = k3_reader_u32(r);
        shard->file_bytes = k3_reader_u64(r);
        const uint8_t *digest = k3_reader_take(r, K3_DIGEST_BYTES);
        const uint8_t *sha256 = k3_reader_take(r, K3_SHA256_BYTES);
        const uint8_t *name = k3_reader_take(r, name_len);
        if (r->failed || flags > 1 || !k3_shard_name_is_good(name, name_len)) {
            return k3_fail(err, K3_ERR_MALFORMED, r->at, "SHARDS: record %u is cut or impossible",
                           i);
        }
        shard->has_sha256 = flags == 1;
        memcpy(shard->digest.bytes, digest, K3_DIGEST_BYTES);
        memcpy(shard->sha256, sha256, K3_SHA256_BYTES);
        shard->name = calloc(1, (size_t)name_len + 1);
        if (!shard->name) {
            return k3_fail_no_memory(err, "SHARDS");
        }
        memcpy(shard->name, name, name_len);
        if ((!shard->has_sha256 && !k3_bytes_are_zero(sha256, K3_SHA256_BYTES)) ||
            (i > 0 && strcmp(p->shards[i - 1].name, shard->name) >= 0)) {
            return k3_fail(err, K3_ERR_MALFORMED, r->at, "SHARDS: record %u out of order", i);
        }
    }
    return K3_OK;
}

static bool range_is_in_shard(const struct k3_provenance *p, const struct k3_source_record *record,
                              uint64_t expected_bytes)
{
    return record->bytes == expected_bytes && record->shard < p->shard_count &&
           k3_range_fits(record->offset, record->bytes, p->shards[record->shard].file_bytes);
}

static enum k3_code read_trunk_source(struct k3_byte_reader *r, const struct k3_pack_tables *tables,
                                      uint32_t at, struct k3_provenance *p, struct k3_error *err)
{
    const struct k3_trunk_tensor *tensor = k3_source_first_tensor(tables, at);
    const struct k3_source_shape expected = k3_tensor_source_shape(tables, tensor);
    char name[K3_TENSOR_NAME_MAX];
    k3_role_source_name(tensor->layer, tensor->role, name);
    const uint32_t name_len = k3_reader_u32(r);
    bool same = k3_reader_u16(r) == (uint16_t)expected.dtype;
    same = k3_reader_u16(r) == expected.ndim && same;
    for (uint32_t d = 0; d < expected.ndim && same; d++) {
        same = k3_reader_u64(r) == expected.shape[d];
    }
    struct k3_source_record *record = &p->trunk[at];
    record->shard = k3_reader_u32(r);
    record->offset = k3_reader_u64(r);
    record->bytes = k3_reader_u64(r);
    const uint8_t *digest = k3_reader_take(r, K3_DIGEST_BYTES);
    const uint8_t *found = k3_reader_take(r, name_len);
    if (r->failed || !same || name_len != strlen(name) || memcmp(found, name, name_len) != 0 ||
        !range_is_in_shard(p, record, k3_source_bytes(&expected))) {
        return k3_fail(err, K3_ERR_MALFORMED, r->at, "TRUNK_SOURCES: record %u is not that of '%s'",
                       at, name);
    }
    memcpy(record->digest.bytes, digest, K3_DIGEST_BYTES);
    return K3_OK;
}

static enum k3_code read_expert_sources(struct k3_byte_reader *r,
                                        const struct k3_pack_tables *tables,
                                        struct k3_provenance *p, struct k3_error *err)
{
    const size_t count = expert_source_count(tables);
    for (size_t i = 0; i < count; i++) {
        uint64_t shape[2];
        k3_expert_part_shape(&tables->spec, (unsigned)(i % K3_EXPERT_PARTS), shape);
        struct k3_source_record *record = &p->experts[i];
        record->shard = k3_reader_u32(r);
        const uint32_t spare = k3_reader_u32(r);
        record->offset = k3_reader_u64(r);
        record->bytes = k3_reader_u64(r);
        const uint8_t *digest = k3_reader_take(r, K3_DIGEST_BYTES);
        if (r->failed || spare != 0 || !range_is_in_shard(p, record, shape[0] * shape[1])) {
            return k3_fail(err, K3_ERR_MALFORMED, r->at, "EXPERT_SOURCES: record %zu is impossible",
                           i);
        }
        memcpy(record->digest.bytes, digest, K3_DIGEST_BYTES);
    }
    return K3_OK;
}

static enum k3_code read_all(struct k3_byte_reader readers[3], const struct k3_pack_tables *tables,
                             struct k3_provenance *p, struct k3_error *err)
{
    enum k3_code code = read_shards(&readers[0], p, err);
    if (code == K3_OK && k3_reader_u32(&readers[1]) != tables->source_count) {
        code = k3_fail(err, K3_ERR_MALFORMED, 0, "TRUNK_SOURCES: wrong count");
    }
    for (uint32_t i = 0; code == K3_OK && i < tables->source_count; i++) {
        code = read_trunk_source(&readers[1], tables, i, p, err);
    }
    if (code == K3_OK) {
        code = read_expert_sources(&readers[2], tables, p, err);
    }
    for (unsigned i = 0; code == K3_OK && i < 3; i++) {
        if (readers[i].at != readers[i].len) {
            code = k3_fail(err, K3_ERR_MALFORMED, readers[i].at,
                           "provenance: bytes after the last record");
        }
    }
    return code;
}

enum k3_code k3_provenance_decode(const struct k3_section_bytes sections[3],
                                  const struct k3_pack_tables *tables,
                                  struct k3_provenance *out_provenance, struct k3_error *err)
{
    struct k3_byte_reader readers[3];
    for (unsigned i = 0; i < 3; i++) {
        readers[i] = (struct k3_byte_reader){.bytes = sections[i].bytes, .len = sections[i].len};
    }
    const uint32_t shard_count = k3_reader_u32(&readers[0]);
    if (shard_count == 0 || shard_count > K3_SHARDS_MAX ||
        shard_count > sections[0].len / SHARD_RECORD_MIN_BYTES) {
        return k3_fail(err, K3_ERR_MALFORMED, 0, "SHARDS: impossible count %u", shard_count);
    }
    if (sections[2].len != expert_source_count(tables) * K3_EXPERT_SOURCE_BYTES) {
        return k3_fail(err, K3_ERR_MALFORMED, 0, "EXPERT_SOURCES: %zu bytes, this model needs %zu",
                       sections[2].len, expert_source_count(tables) * K3_EXPERT_SOURCE_BYTES);
    }
    struct k3_provenance p;
    enum k3_code code = k3_provenance_create(tables, shard_count, &p, err);
    if (code != K3_OK) {
        return code;
    }
    code = read_all(readers, tables, &p, err);
    if (code != K3_OK) {
        k3_provenance_done(&p);
        return code;
    }
    *out_provenance = p;
    return K3_OK;
}
