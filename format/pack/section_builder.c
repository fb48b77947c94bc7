/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdlib.h>
#include <zstd.h>

#include "format/base/assert.h"
#include "format/base/bytes.h"
#include "format/base/ckd.h"
#include "format/pack/sections.h"

#define ZSTD_LEVEL 9

static enum k3_code compress(const uint8_t *raw, size_t raw_len, uint8_t **out, size_t *out_len,
                             const char *name, struct k3_error *err)
{
    const size_t bound = ZSTD_compressBound(raw_len);
    uint8_t *stored = malloc(bound);
    if (!stored) {
        return k3_fail_no_memory(err, name);
    }
    const size_t got = ZSTD_compress(stored, bound, raw, raw_len, ZSTD_LEVEL);
    if (ZSTD_isError(got)) {
        free(stored);
        return k3_fail(err, K3_ERR_NO_MEMORY, K3_ERROR_NO_OFFSET, "section %s: zstd: %s", name,
                       ZSTD_getErrorName(got));
    }
    *out = stored;
    *out_len = got;
    return K3_OK;
}

enum k3_code k3_section_builder_put(struct k3_section_builder *builder, enum k3_section_kind kind,
                                    const uint8_t *raw, size_t raw_len, struct k3_error *err)
{
    k3_assert(!builder->stored[kind]);
    if (raw_len > k3_section_raw_max(kind)) {
        return k3_fail(err, K3_ERR_MALFORMED, K3_ERROR_NO_OFFSET,
                       "section %s: %zu bytes, a pack holds at most %" PRIu64,
                       k3_section_name(kind), raw_len, k3_section_raw_max(kind));
    }
    uint8_t *stored = NULL;
    size_t stored_len = raw_len;
    if (k3_section_is_compressed(kind)) {
        const enum k3_code code =
            compress(raw, raw_len, &stored, &stored_len, k3_section_name(kind), err);
        if (code != K3_OK) {
            return code;
        }
    } else {
        stored = malloc(raw_len + 1);
        if (!stored) {
            return k3_fail_no_memory(err, k3_section_name(kind));
        }
        memcpy(stored, raw, raw_len);
    }
    builder->stored[kind] = stored;
    builder->stored_len[kind] = stored_len;
    builder->raw_len[kind] = raw_len;
    builder->raw_digest[kind] = k3_digest_of(raw, raw_len);
    return K3_OK;
}

void k3_section_builder_done(struct k3_section_builder *builder)
{
    for (unsigned kind = 1; kind <= K3_SECTION_KINDS; kind++) {
        free(builder->stored[kind]);
    }
    *builder = (struct k3_section_builder){0};
}

struct k3_digest k3_section_builder_pack_id(const struct k3_section_builder *builder)
{
    uint8_t records[K3_SECTION_CONTENT_LAST * (4 + K3_DIGEST_BYTES)];
    uint8_t *p = records;
    for (unsigned kind = 1; kind <= K3_SECTION_CONTENT_LAST; kind++) {
        k3_assert(builder->stored[kind]);
        k3_le32_put(p, kind);
        memcpy(p + 4, builder->raw_digest[kind].bytes, K3_DIGEST_BYTES);
        p += 4 + K3_DIGEST_BYTES;
    }
    return k3_digest_of(records, sizeof records);
}

static void encode_entry(const struct k3_section_builder *builder, unsigned kind, uint64_t offset,
                         uint8_t *p)
{
    memset(p, 0, K3_SECTION_ENTRY_BYTES);
    k3_le32_put(p, kind);
    k3_le32_put(p + 4, k3_section_is_compressed((enum k3_section_kind)kind) ? K3_SECTION_ZSTD : 0);
    k3_le64_put(p + 8, offset);
    k3_le64_put(p + 16, builder->stored_len[kind]);
    k3_le64_put(p + 24, builder->raw_len[kind]);
    const struct k3_digest digest = k3_digest_of(builder->stored[kind], builder->stored_len[kind]);
    memcpy(p + 32, digest.bytes, K3_DIGEST_BYTES);
}

/* Writes `bytes` and the zeros up to the next section; *cursor moves there. */
static enum k3_code write_padded(const struct k3_file *file, uint64_t *cursor, const uint8_t *bytes,
                                 size_t len, struct k3_error *err)
{
    static const uint8_t zeros[K3_SECTION_ALIGN];
    enum k3_code code = k3_file_write(file, *cursor, bytes, len, err);
    if (code != K3_OK) {
        return code;
    }
    const uint64_t end = *cursor + len;
    *cursor = k3_round_up(end, K3_SECTION_ALIGN);
    return k3_file_write(file, end, zeros, (size_t)(*cursor - end), err);
}

enum k3_code k3_section_builder_write(const struct k3_section_builder *builder,
                                      const struct k3_file *file, enum k3_file_kind kind,
                                      uint64_t data_end, const struct k3_digest *pack_id,
                                      struct k3_error *err)
{
    uint8_t table[K3_SECTION_KINDS * K3_SECTION_ENTRY_BYTES];
    uint32_t count = 0;
    uint64_t cursor =
        kind == K3_FILE_INDEX ? K3_SUPERBLOCK_BYTES : k3_round_up(data_end, K3_MATRIX_ALIGN);
    enum k3_code code = K3_OK;
    for (unsigned k = 1; k <= K3_SECTION_KINDS; k++) {
        if (!k3_section_belongs((enum k3_section_kind)k, kind)) {
            continue;
        }
        k3_assert(builder->stored[k]);
        encode_entry(builder, k, cursor, table + (size_t)count * K3_SECTION_ENTRY_BYTES);
        count++;
        code = write_padded(file, &cursor, builder->stored[k], builder->stored_len[k], err);
        if (code != K3_OK) {
            return code;
        }
    }
    const size_t table_len = (size_t)count * K3_SECTION_ENTRY_BYTES;
    struct k3_superblock superblock = {
        .file_kind = kind,
        .pack_id = *pack_id,
        .file_bytes = cursor + table_len,
        .section_table_offset = cursor,
        .section_count = count,
        .section_table_digest = k3_digest_of(table, table_len),
        .data_end = kind == K3_FILE_INDEX ? 0 : data_end,
        .writer = "k3pack " K3_VERSION,
    };
    code = k3_file_write(file, cursor, table, table_len, err);
    if (code == K3_OK) {
        code = k3_file_truncate(file, superblock.file_bytes, err);
    }
    if (code != K3_OK) {
        return code;
    }
    uint8_t bytes[K3_SUPERBLOCK_BYTES];
    k3_superblock_encode(&superblock, bytes);
    return k3_file_write(file, 0, bytes, sizeof bytes, err);
}
