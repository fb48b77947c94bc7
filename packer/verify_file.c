/* SPDX-License-Identifier: Apache-2.0 */
#include "packer/verify_file.h"

#include <inttypes.h>
#include <stdlib.h>

#include "format/base/bytes.h"
#include "format/base/ckd.h"

static struct k3_damage damage_at(const struct k3_file_check *check, enum k3_damage_kind kind,
                                  uint64_t offset, uint64_t bytes)
{
    return (struct k3_damage){
        .kind = kind, .file = check->kind, .layer = K3_TOP_LEVEL, .offset = offset, .bytes = bytes};
}

static enum k3_code open_file(const char *folder, struct k3_file_check *check,
                              struct k3_damage_list *damage, struct k3_error *err)
{
    char *path = k3_path_join(folder, k3_file_kind_name(check->kind));
    if (!path) {
        return k3_fail_no_memory(err, folder);
    }
    struct k3_error why = {0};
    const enum k3_code code = k3_file_open_read(path, &check->file, &why);
    free(path);
    check->is_there = code == K3_OK;
    if (code == K3_ERR_NO_MEMORY) {
        return k3_fail_no_memory(err, folder);
    }
    if (code != K3_OK) {
        const struct k3_damage d = damage_at(check, K3_DAMAGE_FILE, 0, 0);
        k3_damage_add(damage, &d, "%s", why.message);
    }
    return K3_OK;
}

/* The superblock; with the size that it claims where the real one is another, so that what is left
 * can be looked at. */
static enum k3_code check_superblock(struct k3_file_check *check, struct k3_damage_list *damage,
                                     struct k3_error *err)
{
    uint8_t bytes[K3_SUPERBLOCK_BYTES];
    struct k3_error why = {0};
    const uint64_t size = check->file.file_bytes;
    struct k3_damage d = damage_at(check, K3_DAMAGE_FILE, 0, size);
    if (size < sizeof bytes) {
        k3_damage_add(damage, &d, "%" PRIu64 " bytes are fewer than a superblock has", size);
        return K3_OK;
    }
    if (k3_file_read(&check->file, 0, bytes, sizeof bytes, &why) != K3_OK) {
        k3_damage_add(damage, &d, "%s", why.message);
        return K3_OK;
    }
    const uint64_t claimed = k3_le64_get(bytes + 40);
    const enum k3_code code =
        k3_superblock_decode(bytes, check->kind, claimed, &check->set.superblock, &why);
    const struct k3_digest digest = k3_digest_of(bytes, sizeof bytes - K3_DIGEST_BYTES);
    const bool is_intact =
        memcmp(digest.bytes, bytes + sizeof bytes - K3_DIGEST_BYTES, K3_DIGEST_BYTES) == 0;
    if (code == K3_ERR_UNSUPPORTED && is_intact) {
        return k3_fail(err, code, why.file_offset, "%s", why.message);
    }
    check->has_superblock = code == K3_OK;
    if (code != K3_OK) {
        d = damage_at(check, K3_DAMAGE_SUPERBLOCK, 0, sizeof bytes);
        k3_damage_add(damage, &d, "%s", why.message);
    } else if (claimed != size) {
        d.offset = k3_min_u64(claimed, size);
        d.bytes = k3_max_u64(claimed, size) - d.offset;
        k3_damage_add(damage, &d,
                      "the file has %" PRIu64 " bytes, must have %" PRIu64 " (%s at the end)", size,
                      claimed, size < claimed ? "cut" : "something was added");
    }
    return K3_OK;
}

/* Reads everything from the first section on; false (and damage) when that is not possible. */
static enum k3_code read_tail(struct k3_file_check *check, bool *out_is_read,
                              struct k3_damage_list *damage, struct k3_error *err)
{
    const struct k3_superblock *s = &check->set.superblock;
    const uint64_t first = check->kind == K3_FILE_INDEX ? K3_SUPERBLOCK_BYTES
                                                        : k3_round_up(s->data_end, K3_MATRIX_ALIGN);
    const uint64_t table_bytes = (uint64_t)s->section_count * K3_SECTION_ENTRY_BYTES;
    const uint64_t size = check->file.file_bytes;
    struct k3_damage d =
        damage_at(check, K3_DAMAGE_SECTION_TABLE, s->section_table_offset, table_bytes);
    *out_is_read = false;
    if (s->section_table_offset < first ||
        !k3_range_fits(s->section_table_offset, table_bytes, size) ||
        s->section_table_offset - first > K3_TAIL_MAX) {
        k3_damage_add(damage, &d, "the section table is not in the file any more");
        return K3_OK;
    }
    const uint64_t len = s->section_table_offset + table_bytes - first;
    check->set.tail_offset = first;
    check->set.tail = malloc((size_t)len + 1);
    if (!check->set.tail) {
        return k3_fail_no_memory(err, k3_file_kind_name(check->kind));
    }
    struct k3_error why = {0};
    if (k3_file_read(&check->file, first, check->set.tail, (size_t)len, &why) != K3_OK) {
        k3_damage_add(damage, &d, "%s", why.message);
        return K3_OK;
    }
    const uint8_t *table = check->set.tail + (s->section_table_offset - first);
    const struct k3_digest digest = k3_digest_of(table, (size_t)table_bytes);
    if (!k3_digest_equal(&digest, &s->section_table_digest)) {
        k3_damage_add(damage, &d, "the section table does not match its digest");
        check->is_salvaged = true;
    }
    *out_is_read = true;
    return K3_OK;
}

/* Entry `at` of a table whose digest is right. */
static bool decode_entry(const struct k3_section_set *set, uint32_t at, struct k3_section *out)
{
    const uint64_t table_at = set->superblock.section_table_offset - set->tail_offset;
    const uint8_t *p = set->tail + table_at + (uint64_t)at * K3_SECTION_ENTRY_BYTES;
    const uint32_t kind = k3_le32_get(p);
    if (kind == 0 || kind > K3_SECTION_KINDS) {
        return false;
    }
    *out = (struct k3_section){.kind = (enum k3_section_kind)kind,
                               .flags = k3_le32_get(p + 4),
                               .offset = k3_le64_get(p + 8),
                               .stored_bytes = k3_le64_get(p + 16),
                               .raw_bytes = k3_le64_get(p + 24)};
    memcpy(out->stored_digest.bytes, p + 32, K3_DIGEST_BYTES);
    const bool is_compressed = k3_section_is_compressed(out->kind);
    return out->flags == (is_compressed ? K3_SECTION_ZSTD : 0U) &&
           out->raw_bytes <= K3_SECTION_RAW_MAX_BULK &&
           (is_compressed || out->raw_bytes == out->stored_bytes) &&
           out->offset >= set->tail_offset &&
           k3_range_fits(out->offset - set->tail_offset, out->stored_bytes, table_at);
}

/* A section, and the zeros from its end to the next thing. */
static void check_section(struct k3_file_check *check, const struct k3_section *s,
                          struct k3_damage_list *damage)
{
    const uint8_t *stored = k3_section_stored(&check->set, s);
    const struct k3_digest digest = k3_digest_of(stored, (size_t)s->stored_bytes);
    const bool is_good = k3_digest_equal(&digest, &s->stored_digest);
    if (!is_good) {
        struct k3_damage d = damage_at(check, K3_DAMAGE_SECTION, s->offset, s->stored_bytes);
        d.section = s->kind;
        k3_damage_add(damage, &d, "section %s does not match its digest", k3_section_name(s->kind));
    }
    check->is_good[s->kind] = is_good;
    const uint64_t end = s->offset + s->stored_bytes;
    const uint64_t next =
        k3_min_u64(k3_round_up(end, K3_SECTION_ALIGN), check->set.superblock.section_table_offset);
    if (!k3_bytes_are_zero(stored + s->stored_bytes, (size_t)(next - end))) {
        struct k3_damage d = damage_at(check, K3_DAMAGE_PADDING, end, next - end);
        d.section = s->kind;
        k3_damage_add(damage, &d, "padding after section %s is not zero", k3_section_name(s->kind));
    }
}

static void check_sections(struct k3_file_check *check, struct k3_damage_list *damage)
{
    struct k3_section_set *set = &check->set;
    for (uint32_t i = 0; i < set->superblock.section_count; i++) {
        struct k3_section *s = &set->sections[i];
        if (!decode_entry(set, i, s) || check->is_good[s->kind]) {
            const struct k3_damage d =
                damage_at(check, K3_DAMAGE_SECTION_TABLE, set->superblock.section_table_offset, 0);
            k3_damage_add(damage, &d, "entry %u of the section table is impossible", i);
            return;
        }
        set->count++;
        check_section(check, s, damage);
    }
}

/* What a damaged table still says rightly: a section that matches the digest in its entry is that
 * section, whatever is wrong elsewhere. Nothing is reported: the cause was. */
static void salvage_sections(struct k3_file_check *check)
{
    struct k3_section_set *set = &check->set;
    const uint32_t count = set->superblock.section_count; /* 1..K3_SECTIONS_MAX */
    for (uint32_t i = 0; i < count; i++) {
        struct k3_section s;
        if (!decode_entry(set, i, &s) || check->is_good[s.kind]) {
            continue;
        }
        const struct k3_digest digest =
            k3_digest_of(k3_section_stored(set, &s), (size_t)s.stored_bytes);
        if (k3_digest_equal(&digest, &s.stored_digest)) {
            set->sections[set->count++] = s;
            check->is_good[s.kind] = true;
        }
    }
}

/* Without a superblock: the table is what ends the file, and its first entry says where the tail
 * starts. */
static enum k3_code salvage_without_superblock(struct k3_file_check *check, struct k3_error *err)
{
    static const uint32_t counts[] = {
        [K3_FILE_INDEX] = 10, [K3_FILE_TRUNK] = 5, [K3_FILE_EXPERTS] = 3};
    const uint64_t size = check->file.file_bytes;
    const uint64_t table_bytes = (uint64_t)counts[check->kind] * K3_SECTION_ENTRY_BYTES;
    uint8_t entry[K3_SECTION_ENTRY_BYTES];
    struct k3_error why;
    if (size < K3_SUPERBLOCK_BYTES + table_bytes ||
        k3_file_read(&check->file, size - table_bytes, entry, sizeof entry, &why) != K3_OK) {
        return K3_OK;
    }
    const uint64_t first = k3_le64_get(entry + 8), table_at = size - table_bytes;
    if (first < K3_SUPERBLOCK_BYTES || first % K3_SECTION_ALIGN != 0 || first > table_at ||
        table_at - first > K3_TAIL_MAX) {
        return K3_OK;
    }
    struct k3_section_set *set = &check->set;
    set->tail = malloc((size_t)(size - first));
    if (!set->tail) {
        return k3_fail_no_memory(err, k3_file_kind_name(check->kind));
    }
    set->tail_offset = first;
    set->superblock = (struct k3_superblock){.section_table_offset = table_at,
                                             .section_count = counts[check->kind]};
    if (k3_file_read(&check->file, first, set->tail, (size_t)(size - first), &why) == K3_OK) {
        check->is_salvaged = true;
        salvage_sections(check);
    }
    return K3_OK;
}

/* Nothing is wrong so far: the strict reader must agree. */
static enum k3_code check_strictly(struct k3_file_check *check, struct k3_damage_list *damage,
                                   struct k3_error *err)
{
    struct k3_section_set set = {0};
    struct k3_error why = {0};
    const enum k3_code code = k3_section_set_read(&check->file, check->kind, &set, &why);
    if (code == K3_OK) {
        check->is_sound = true;
        k3_section_set_done(&set);
    } else if (code == K3_ERR_NO_MEMORY) {
        return k3_fail_no_memory(err, k3_file_kind_name(check->kind));
    } else {
        const struct k3_damage d = damage_at(check, K3_DAMAGE_SECTION_TABLE, why.file_offset, 0);
        k3_damage_add(damage, &d, "%s", why.message);
    }
    return K3_OK;
}

static enum k3_code examine(const char *folder, struct k3_file_check *check,
                            struct k3_damage_list *damage, struct k3_error *err)
{
    const uint64_t before = damage->total;
    bool has_tail = false;
    enum k3_code code = open_file(folder, check, damage, err);
    if (code == K3_OK && check->is_there) {
        code = check_superblock(check, damage, err);
    }
    if (code == K3_OK && check->has_superblock) {
        code = read_tail(check, &has_tail, damage, err);
    }
    if (code == K3_OK && check->is_there && !check->has_superblock) {
        code = salvage_without_superblock(check, err);
    }
    if (code == K3_OK && has_tail && check->is_salvaged) {
        salvage_sections(check);
    } else if (code == K3_OK && has_tail) {
        check_sections(check, damage);
        if (damage->total == before) {
            code = check_strictly(check, damage, err);
        }
    }
    return code;
}

enum k3_code k3_file_check_make(const char *folder, enum k3_file_kind kind,
                                struct k3_file_check *out_check, struct k3_damage_list *damage,
                                struct k3_error *err)
{
    struct k3_file_check check = {.kind = kind, .file = K3_FILE_CLOSED};
    const enum k3_code code = examine(folder, &check, damage, err);
    if (code != K3_OK) {
        k3_file_check_done(&check);
        return code;
    }
    *out_check = check;
    return K3_OK;
}

void k3_file_check_done(struct k3_file_check *check)
{
    if (check->is_there) {
        k3_file_close(&check->file);
    }
    k3_section_set_done(&check->set);
    *check = (struct k3_file_check){.file = K3_FILE_CLOSED};
}
