/* SPDX-License-Identifier: Apache-2.0 */
#include "format/pack/superblock.h"

#include <inttypes.h>
#include <string.h>

#include "format/base/bytes.h"
#include "format/base/ckd.h"

static const uint8_t magic[8] = {0x89, 'K', '3', 'P', '\r', '\n', 0x1a, '\n'};

enum {
    AT_MAJOR = 8,
    AT_MINOR = 10,
    AT_INCOMPAT = 12,
    AT_FILE_KIND = 20,
    AT_PACK_ID = 24,
    AT_FILE_BYTES = 40,
    AT_TABLE_OFFSET = 48,
    AT_SECTION_COUNT = 56,
    AT_SPARE = 60,
    AT_TABLE_DIGEST = 64,
    AT_DATA_OFFSET = 80,
    AT_DATA_END = 88,
    AT_WRITER = 96,
    AT_REST = 128,
    AT_DIGEST = 4080
};
_Static_assert(AT_DIGEST + K3_DIGEST_BYTES == K3_SUPERBLOCK_BYTES, "digest ends the superblock");

const char *k3_file_kind_name(enum k3_file_kind kind)
{
    return kind == K3_FILE_INDEX   ? K3_INDEX_NAME
           : kind == K3_FILE_TRUNK ? K3_TRUNK_NAME
                                   : K3_EXPERTS_NAME;
}

static uint64_t data_offset_of(enum k3_file_kind kind)
{
    return kind == K3_FILE_INDEX ? 0 : K3_DATA_OFFSET;
}

void k3_superblock_encode(const struct k3_superblock *superblock,
                          uint8_t out_bytes[K3_SUPERBLOCK_BYTES])
{
    uint8_t *p = out_bytes;
    memset(p, 0, K3_SUPERBLOCK_BYTES);
    memcpy(p, magic, sizeof magic);
    k3_le16_put(p + AT_MAJOR, K3_VERSION_MAJOR);
    k3_le16_put(p + AT_MINOR, K3_VERSION_MINOR);
    k3_le32_put(p + AT_FILE_KIND, (uint32_t)superblock->file_kind);
    memcpy(p + AT_PACK_ID, superblock->pack_id.bytes, K3_DIGEST_BYTES);
    k3_le64_put(p + AT_FILE_BYTES, superblock->file_bytes);
    k3_le64_put(p + AT_TABLE_OFFSET, superblock->section_table_offset);
    k3_le32_put(p + AT_SECTION_COUNT, superblock->section_count);
    memcpy(p + AT_TABLE_DIGEST, superblock->section_table_digest.bytes, K3_DIGEST_BYTES);
    k3_le64_put(p + AT_DATA_OFFSET, data_offset_of(superblock->file_kind));
    k3_le64_put(p + AT_DATA_END, superblock->data_end);
    memcpy(p + AT_WRITER, superblock->writer, strnlen(superblock->writer, K3_WRITER_BYTES));
    const struct k3_digest digest = k3_digest_of(p, AT_DIGEST);
    memcpy(p + AT_DIGEST, digest.bytes, K3_DIGEST_BYTES);
}

static enum k3_code check_identity(const uint8_t *p, const char *name, struct k3_error *err)
{
    if (memcmp(p, magic, sizeof magic) != 0) {
        return k3_fail(err, K3_ERR_MALFORMED, 0, "%s: not a file of a pack (magic bytes differ)",
                       name);
    }
    const uint16_t major = k3_le16_get(p + AT_MAJOR);
    if (major != K3_VERSION_MAJOR) {
        return k3_fail(err, K3_ERR_UNSUPPORTED, AT_MAJOR,
                       "%s: pack format version %u, this program reads version %u", name, major,
                       K3_VERSION_MAJOR);
    }
    const struct k3_digest digest = k3_digest_of(p, AT_DIGEST);
    if (memcmp(digest.bytes, p + AT_DIGEST, K3_DIGEST_BYTES) != 0) {
        return k3_fail(err, K3_ERR_DAMAGED, 0, "%s: superblock does not match its digest", name);
    }
    const uint32_t unknown = k3_le32_get(p + AT_INCOMPAT) & ~K3_FEATURES_INCOMPAT;
    if (unknown != 0) {
        return k3_fail(err, K3_ERR_UNSUPPORTED, AT_INCOMPAT,
                       "%s: uses a format feature (bits 0x%x) that this program does not know; a "
                       "newer version is needed",
                       name, unknown);
    }
    return K3_OK;
}

enum k3_code k3_superblock_decode(const uint8_t bytes[K3_SUPERBLOCK_BYTES],
                                  enum k3_file_kind expected_kind, uint64_t actual_file_bytes,
                                  struct k3_superblock *out_superblock, struct k3_error *err)
{
    const uint8_t *p = bytes;
    const char *name = k3_file_kind_name(expected_kind);
    const enum k3_code code = check_identity(p, name, err);
    if (code != K3_OK) {
        return code;
    }
    struct k3_superblock s = {
        .file_kind = expected_kind,
        .file_bytes = k3_le64_get(p + AT_FILE_BYTES),
        .section_table_offset = k3_le64_get(p + AT_TABLE_OFFSET),
        .section_count = k3_le32_get(p + AT_SECTION_COUNT),
        .data_end = k3_le64_get(p + AT_DATA_END),
    };
    if (k3_le32_get(p + AT_FILE_KIND) != (uint32_t)expected_kind) {
        return k3_fail(err, K3_ERR_MALFORMED, AT_FILE_KIND,
                       "%s: holds another file of a pack (kind %u)", name,
                       k3_le32_get(p + AT_FILE_KIND));
    }
    if (s.file_bytes != actual_file_bytes) {
        return k3_fail(err, K3_ERR_DAMAGED, AT_FILE_BYTES,
                       "%s: has %" PRIu64 " bytes, must have %" PRIu64 " (cut or extended?)", name,
                       actual_file_bytes, s.file_bytes);
    }
    if (s.section_count == 0 || s.section_count > K3_SECTIONS_MAX ||
        s.section_table_offset % K3_SECTION_ALIGN != 0 ||
        !k3_range_fits(s.section_table_offset, (uint64_t)s.section_count * K3_SECTION_ENTRY_BYTES,
                       s.file_bytes) ||
        s.section_table_offset + (uint64_t)s.section_count * K3_SECTION_ENTRY_BYTES !=
            s.file_bytes) {
        return k3_fail(err, K3_ERR_MALFORMED, AT_TABLE_OFFSET,
                       "%s: the section table does not end the file", name);
    }
    const bool is_index = expected_kind == K3_FILE_INDEX;
    if (k3_le64_get(p + AT_DATA_OFFSET) != data_offset_of(expected_kind) ||
        (is_index ? s.data_end != 0
                  : s.data_end < K3_DATA_OFFSET || s.data_end > s.section_table_offset)) {
        return k3_fail(err, K3_ERR_MALFORMED, AT_DATA_OFFSET, "%s: data range is not possible",
                       name);
    }
    if (!k3_bytes_are_zero(p + AT_SPARE, AT_TABLE_DIGEST - AT_SPARE) ||
        !k3_bytes_are_zero(p + AT_REST, AT_DIGEST - AT_REST)) {
        return k3_fail(err, K3_ERR_MALFORMED, AT_REST, "%s: spare bytes are not zero", name);
    }
    memcpy(s.pack_id.bytes, p + AT_PACK_ID, K3_DIGEST_BYTES);
    memcpy(s.section_table_digest.bytes, p + AT_TABLE_DIGEST, K3_DIGEST_BYTES);
    memcpy(s.writer, p + AT_WRITER, K3_WRITER_BYTES);
    *out_superblock = s;
    return K3_OK;
}
