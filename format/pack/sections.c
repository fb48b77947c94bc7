/* SPDX-License-Identifier: Apache-2.0 */
#include "format/pack/sections.h"

#include <inttypes.h>
#include <stdlib.h>
#include <zstd.h>

#include "format/base/bytes.h"
#include "format/base/ckd.h"

static const char *const names[K3_SECTION_KINDS + 1] = {"?",
                                                        "MODEL_SPEC",
                                                        "TRUNK_EXTENTS",
                                                        "TRUNK_TENSORS",
                                                        "TRUNK_DIGESTS",
                                                        "EXPERT_LAYOUT",
                                                        "EXPERT_DIGESTS",
                                                        "FILES",
                                                        "SHARDS",
                                                        "TRUNK_SOURCES",
                                                        "EXPERT_SOURCES"};

const char *k3_section_name(enum k3_section_kind kind)
{
    return kind >= 1 && kind <= K3_SECTION_KINDS ? names[kind] : names[0];
}

bool k3_section_is_compressed(enum k3_section_kind kind)
{
    return kind >= K3_SECTION_FILES;
}

bool k3_section_belongs(enum k3_section_kind kind, enum k3_file_kind file)
{
    const bool is_trunk = kind >= K3_SECTION_TRUNK_EXTENTS && kind <= K3_SECTION_TRUNK_DIGESTS;
    const bool is_expert = kind == K3_SECTION_EXPERT_LAYOUT || kind == K3_SECTION_EXPERT_DIGESTS;
    switch (file) {
    case K3_FILE_INDEX:
        return true;
    case K3_FILE_TRUNK:
        return is_trunk || kind == K3_SECTION_MODEL_SPEC || kind == K3_SECTION_FILES;
    case K3_FILE_EXPERTS:
        return is_expert || kind == K3_SECTION_MODEL_SPEC;
    }
    return false;
}

uint64_t k3_section_raw_max(enum k3_section_kind kind)
{
    const bool is_bulk = kind == K3_SECTION_TRUNK_DIGESTS || kind == K3_SECTION_EXPERT_DIGESTS ||
                         kind == K3_SECTION_TRUNK_SOURCES || kind == K3_SECTION_EXPERT_SOURCES;
    return is_bulk ? K3_SECTION_RAW_MAX_BULK : K3_SECTION_RAW_MAX;
}

static uint64_t first_section_offset(enum k3_file_kind kind, uint64_t data_end)
{
    return kind == K3_FILE_INDEX ? K3_SUPERBLOCK_BYTES : k3_round_up(data_end, K3_MATRIX_ALIGN);
}

static enum k3_code decode_entry(const uint8_t *p, uint64_t at, const char *file,
                                 struct k3_section *out, struct k3_error *err)
{
    const uint32_t kind = k3_le32_get(p);
    struct k3_section s = {
        .flags = k3_le32_get(p + 4),
        .offset = k3_le64_get(p + 8),
        .stored_bytes = k3_le64_get(p + 16),
        .raw_bytes = k3_le64_get(p + 24),
    };
    if (kind == 0 || kind > K3_SECTION_KINDS) {
        return k3_fail(err, K3_ERR_MALFORMED, at, "%s: unknown section kind %u", file, kind);
    }
    s.kind = (enum k3_section_kind)kind;
    if (s.flags != (k3_section_is_compressed(s.kind) ? K3_SECTION_ZSTD : 0U) ||
        !k3_bytes_are_zero(p + 48, 16)) {
        return k3_fail(err, K3_ERR_MALFORMED, at, "%s: section %s has wrong flags or spare bytes",
                       file, k3_section_name(s.kind));
    }
    if (s.raw_bytes > k3_section_raw_max(s.kind) || s.stored_bytes == 0 ||
        (s.flags == 0 && s.raw_bytes != s.stored_bytes)) {
        return k3_fail(err, K3_ERR_MALFORMED, at, "%s: section %s has an impossible size", file,
                       k3_section_name(s.kind));
    }
    memcpy(s.stored_digest.bytes, p + 32, K3_DIGEST_BYTES);
    *out = s;
    return K3_OK;
}

/* Kinds ascend, exactly those of the file; ranges follow each other, zeros between. */
static enum k3_code check_order(const struct k3_section_set *set, uint64_t table_offset,
                                struct k3_error *err)
{
    const enum k3_file_kind file = set->superblock.file_kind;
    uint32_t at = 0;
    uint64_t cursor = set->tail_offset;
    for (unsigned kind = 1; kind <= K3_SECTION_KINDS; kind++) {
        if (!k3_section_belongs((enum k3_section_kind)kind, file)) {
            continue;
        }
        if (at >= set->count || set->sections[at].kind != (enum k3_section_kind)kind) {
            return k3_fail(err, K3_ERR_MALFORMED, table_offset,
                           "%s: section %s is missing or out of place", k3_file_kind_name(file),
                           k3_section_name((enum k3_section_kind)kind));
        }
        const struct k3_section *s = &set->sections[at++];
        if (s->offset != cursor || !k3_range_fits(s->offset, s->stored_bytes, table_offset)) {
            return k3_fail(err, K3_ERR_MALFORMED, table_offset,
                           "%s: section %s does not lie where the format puts it",
                           k3_file_kind_name(file), k3_section_name(s->kind));
        }
        const uint64_t end = s->offset + s->stored_bytes;
        cursor = k3_round_up(end, K3_SECTION_ALIGN);
        if (cursor > table_offset ||
            !k3_bytes_are_zero(set->tail + (end - set->tail_offset), (size_t)(cursor - end))) {
            return k3_fail(err, K3_ERR_DAMAGED, end, "%s: padding after section %s is not zero",
                           k3_file_kind_name(file), k3_section_name(s->kind));
        }
    }
    if (at != set->count || cursor != table_offset) {
        return k3_fail(err, K3_ERR_MALFORMED, table_offset, "%s: sections that do not belong here",
                       k3_file_kind_name(file));
    }
    return K3_OK;
}

static enum k3_code check_digests(const struct k3_section_set *set, struct k3_error *err)
{
    for (uint32_t i = 0; i < set->count; i++) {
        const struct k3_section *s = &set->sections[i];
        const struct k3_digest digest =
            k3_digest_of(k3_section_stored(set, s), (size_t)s->stored_bytes);
        if (!k3_digest_equal(&digest, &s->stored_digest)) {
            return k3_fail(err, K3_ERR_DAMAGED, s->offset,
                           "%s: section %s (bytes %" PRIu64 "..%" PRIu64
                           ") does not match its digest",
                           k3_file_kind_name(set->superblock.file_kind), k3_section_name(s->kind),
                           s->offset, s->offset + s->stored_bytes);
        }
    }
    return K3_OK;
}

enum k3_code k3_section_set_parse(const uint8_t superblock[K3_SUPERBLOCK_BYTES],
                                  enum k3_file_kind kind, uint8_t *tail, uint64_t tail_offset,
                                  uint64_t tail_len, struct k3_section_set *out_set,
                                  struct k3_error *err)
{
    struct k3_section_set set = {.tail_offset = tail_offset, .tail = tail};
    const char *file = k3_file_kind_name(kind);
    enum k3_code code =
        k3_superblock_decode(superblock, kind, tail_offset + tail_len, &set.superblock, err);
    if (code != K3_OK) {
        return code;
    }
    const uint64_t table_offset = set.superblock.section_table_offset;
    if (tail_offset != first_section_offset(kind, set.superblock.data_end) ||
        table_offset < tail_offset) {
        return k3_fail(err, K3_ERR_MALFORMED, 0, "%s: sections do not start where the data ends",
                       file);
    }
    const uint8_t *table = tail + (table_offset - tail_offset);
    set.count = set.superblock.section_count;
    const struct k3_digest digest = k3_digest_of(table, (size_t)set.count * K3_SECTION_ENTRY_BYTES);
    if (!k3_digest_equal(&digest, &set.superblock.section_table_digest)) {
        return k3_fail(err, K3_ERR_DAMAGED, table_offset,
                       "%s: section table does not match its digest", file);
    }
    for (uint32_t i = 0; i < set.count; i++) {
        const uint64_t at = (uint64_t)i * K3_SECTION_ENTRY_BYTES;
        code = decode_entry(table + at, table_offset + at, file, &set.sections[i], err);
        if (code != K3_OK) {
            return code;
        }
    }
    code = check_order(&set, table_offset, err);
    if (code == K3_OK) {
        code = check_digests(&set, err);
    }
    if (code == K3_OK) {
        *out_set = set;
    }
    return code;
}

enum k3_code k3_section_set_read(const struct k3_file *file, enum k3_file_kind kind,
                                 struct k3_section_set *out_set, struct k3_error *err)
{
    uint8_t superblock[K3_SUPERBLOCK_BYTES];
    if (file->file_bytes < sizeof superblock) {
        return k3_fail(err, K3_ERR_DAMAGED, 0, "%s: %" PRIu64 " bytes are too few for a pack file",
                       k3_file_kind_name(kind), file->file_bytes);
    }
    enum k3_code code = k3_file_read(file, 0, superblock, sizeof superblock, err);
    if (code != K3_OK) {
        return code;
    }
    struct k3_superblock s;
    code = k3_superblock_decode(superblock, kind, file->file_bytes, &s, err);
    if (code != K3_OK) {
        return code;
    }
    const uint64_t tail_offset = first_section_offset(kind, s.data_end);
    if (tail_offset > file->file_bytes || file->file_bytes - tail_offset > K3_TAIL_MAX) {
        return k3_fail(err, K3_ERR_MALFORMED, 0, "%s: sections of an impossible size",
                       k3_file_kind_name(kind));
    }
    const uint64_t tail_len = file->file_bytes - tail_offset;
    uint8_t *tail = malloc((size_t)tail_len + 1);
    if (!tail) {
        return k3_fail_no_memory(err, k3_file_kind_name(kind));
    }
    code = k3_file_read(file, tail_offset, tail, (size_t)tail_len, err);
    if (code == K3_OK) {
        code = k3_section_set_parse(superblock, kind, tail, tail_offset, tail_len, out_set, err);
    }
    if (code != K3_OK) {
        free(tail);
    }
    return code;
}

void k3_section_set_done(struct k3_section_set *set)
{
    free(set->tail);
    set->tail = NULL;
    set->count = 0;
}

const struct k3_section *k3_section_find(const struct k3_section_set *set,
                                         enum k3_section_kind kind)
{
    for (uint32_t i = 0; i < set->count; i++) {
        if (set->sections[i].kind == kind) {
            return &set->sections[i];
        }
    }
    return NULL;
}

static enum k3_code decompress(const struct k3_section *s, const uint8_t *stored, uint8_t *raw,
                               struct k3_error *err)
{
    const unsigned long long said = ZSTD_getFrameContentSize(stored, (size_t)s->stored_bytes);
    const size_t frame = ZSTD_findFrameCompressedSize(stored, (size_t)s->stored_bytes);
    if (said != s->raw_bytes || frame != s->stored_bytes) {
        return k3_fail(err, K3_ERR_MALFORMED, s->offset,
                       "section %s: not one zstd frame of the stated size",
                       k3_section_name(s->kind));
    }
    const size_t got = ZSTD_decompress(raw, (size_t)s->raw_bytes, stored, (size_t)s->stored_bytes);
    if (ZSTD_isError(got) || got != s->raw_bytes) {
        return k3_fail(err, K3_ERR_MALFORMED, s->offset, "section %s: zstd: %s",
                       k3_section_name(s->kind),
                       ZSTD_isError(got) ? ZSTD_getErrorName(got) : "wrong size");
    }
    return K3_OK;
}

enum k3_code k3_section_raw(const struct k3_section_set *set, enum k3_section_kind kind,
                            uint8_t **out_bytes, size_t *out_len, struct k3_error *err)
{
    const struct k3_section *s = k3_section_find(set, kind);
    if (!s) {
        return k3_fail(err, K3_ERR_MALFORMED, 0, "%s: no section %s",
                       k3_file_kind_name(set->superblock.file_kind), k3_section_name(kind));
    }
    uint8_t *raw = malloc((size_t)s->raw_bytes + 1);
    if (!raw) {
        return k3_fail_no_memory(err, k3_section_name(kind));
    }
    const uint8_t *stored = k3_section_stored(set, s);
    if (s->flags & K3_SECTION_ZSTD) {
        const enum k3_code code = decompress(s, stored, raw, err);
        if (code != K3_OK) {
            free(raw);
            return code;
        }
    } else {
        memcpy(raw, stored, (size_t)s->raw_bytes);
    }
    *out_bytes = raw;
    *out_len = (size_t)s->raw_bytes;
    return K3_OK;
}
