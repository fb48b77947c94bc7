/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "format/base/bytes.h"
#include "format/pack/sections.h"
#include "tests/support/suite_main.h"
#include "tests/support/temp_folder.h"
#include "tests/unit/format/pack/pack_fixture.h"

static struct k3_error err;
static const char *folder;
static struct k3_pack_parts parts;
static struct k3_section_builder builder;

static void setup(void)
{
    folder = k3_temp_folder_make();
    const struct k3_model_spec spec = k3_toy_spec();
    k3_pack_parts_init(&parts, &spec, spec.kda_heads, 2, 5);
    memset(&builder, 0, sizeof builder);
    for (unsigned kind = 1; kind <= K3_SECTION_KINDS; kind++) {
        size_t len = 0;
        uint8_t *raw = k3_parts_section(&parts, (enum k3_section_kind)kind, &len);
        ck_assert_ok(k3_section_builder_put(&builder, (enum k3_section_kind)kind, raw, len, &err));
        free(raw);
    }
}

static void teardown(void)
{
    k3_section_builder_done(&builder);
    k3_pack_parts_done(&parts);
    k3_temp_folder_remove(folder);
}

/* Opens folder/name for writing. */
static struct k3_file open_file(const char *name)
{
    char *path = k3_path_join(folder, name);
    struct k3_file file = K3_FILE_CLOSED;
    ck_assert_ok(k3_file_open_write(path, &file, &err));
    free(path);
    return file;
}

static uint8_t *read_file(const char *name, size_t *out_len)
{
    char *path = k3_path_join(folder, name);
    uint8_t *bytes = NULL;
    ck_assert_ok(k3_file_read_all(path, 1 << 26, &bytes, out_len, &err));
    free(path);
    return bytes;
}

/* docs/format.md 5, the table of which section stands where. */
static const struct {
    unsigned kind;
    const char *name;
    bool is_zstd, in_trunk, in_experts;
} kinds[] = {
    {1, "MODEL_SPEC", false, true, true},     {2, "TRUNK_EXTENTS", false, true, false},
    {3, "TRUNK_TENSORS", false, true, false}, {4, "TRUNK_DIGESTS", false, true, false},
    {5, "EXPERT_LAYOUT", false, false, true}, {6, "EXPERT_DIGESTS", false, false, true},
    {7, "FILES", true, true, false},          {8, "SHARDS", true, false, false},
    {9, "TRUNK_SOURCES", true, false, false}, {10, "EXPERT_SOURCES", true, false, false},
};

START_TEST(kind_table)
{
    for (size_t i = 0; i < K3_SECTION_KINDS; i++) {
        const enum k3_section_kind kind = (enum k3_section_kind)kinds[i].kind;
        ck_assert_str_eq(k3_section_name(kind), kinds[i].name);
        ck_assert(k3_section_is_compressed(kind) == kinds[i].is_zstd);
        ck_assert(k3_section_belongs(kind, K3_FILE_INDEX));
        ck_assert(k3_section_belongs(kind, K3_FILE_TRUNK) == kinds[i].in_trunk);
        ck_assert(k3_section_belongs(kind, K3_FILE_EXPERTS) == kinds[i].in_experts);
        const bool is_bulk = kind == K3_SECTION_TRUNK_DIGESTS ||
                             kind == K3_SECTION_EXPERT_DIGESTS ||
                             kind == K3_SECTION_TRUNK_SOURCES || kind == K3_SECTION_EXPERT_SOURCES;
        ck_assert_uint_eq(k3_section_raw_max(kind), is_bulk ? 1U << 30 : 64U << 20);
    }
}
END_TEST

static bool stands_in(size_t i, enum k3_file_kind file)
{
    return file == K3_FILE_INDEX ||
           (file == K3_FILE_TRUNK ? kinds[i].in_trunk : kinds[i].in_experts);
}

/* Walks a written file by docs/format.md 3 and 4 alone. */
static void check_file(const uint8_t *bytes, size_t len, enum k3_file_kind file, uint64_t data_end)
{
    const uint64_t table = k3_le64_get(bytes + 48);
    const uint32_t count = k3_le32_get(bytes + 56);
    ck_assert_uint_eq(k3_le32_get(bytes + 20), (unsigned)file);
    ck_assert_uint_eq(k3_le64_get(bytes + 40), len);
    ck_assert_uint_eq(table + 64 * (uint64_t)count, len);
    ck_assert_uint_eq(k3_le64_get(bytes + 80), file == K3_FILE_INDEX ? 0 : 2 << 20);
    ck_assert_uint_eq(k3_le64_get(bytes + 88), data_end);
    const struct k3_digest digest = k3_digest_of(bytes + table, 64 * (size_t)count);
    ck_assert_mem_eq(bytes + 64, digest.bytes, 16);

    uint64_t cursor = file == K3_FILE_INDEX ? 4096 : (data_end + 4095) / 4096 * 4096;
    const uint8_t *entry = bytes + table;
    for (size_t i = 0; i < K3_SECTION_KINDS; i++) {
        if (!stands_in(i, file)) {
            continue;
        }
        const uint64_t stored = k3_le64_get(entry + 16);
        ck_assert_uint_eq(k3_le32_get(entry), kinds[i].kind);
        ck_assert_uint_eq(k3_le32_get(entry + 4), kinds[i].is_zstd);
        ck_assert_uint_eq(k3_le64_get(entry + 8), cursor);
        ck_assert(k3_bytes_are_zero(entry + 48, 16));
        const struct k3_digest section = k3_digest_of(bytes + cursor, (size_t)stored);
        ck_assert_mem_eq(entry + 32, section.bytes, 16);
        const uint64_t end = cursor + stored;
        cursor = (end + 63) / 64 * 64;
        ck_assert(k3_bytes_are_zero(bytes + end, (size_t)(cursor - end)));
        entry += 64;
    }
    ck_assert_uint_eq(cursor, table);
    ck_assert_ptr_eq(entry, bytes + len);
}

static const struct {
    enum k3_file_kind kind;
    uint64_t data_end;
    const char *why;
} files[] = {
    {K3_FILE_INDEX, 0, "index"},
    {K3_FILE_TRUNK, (2 << 20) + 8192, "trunk"},
    {K3_FILE_TRUNK, (2 << 20) + 8193, "trunk whose data end inside a page"},
    {K3_FILE_EXPERTS, (2 << 20) + 4096, "experts"},
};

START_TEST(written_by_the_document)
{
    struct k3_file file = open_file("file");
    const struct k3_digest id = k3_section_builder_pack_id(&builder);
    ck_assert_ok(
        k3_section_builder_write(&builder, &file, files[_i].kind, files[_i].data_end, &id, &err));
    k3_file_close(&file);
    size_t len = 0;
    uint8_t *bytes = read_file("file", &len);
    check_file(bytes, len, files[_i].kind, files[_i].data_end);
    ck_assert_mem_eq(bytes + 24, id.bytes, 16);
    free(bytes);
}
END_TEST

START_TEST(reads_back)
{
    struct k3_file file = open_file("file");
    const struct k3_digest id = k3_section_builder_pack_id(&builder);
    ck_assert_ok(
        k3_section_builder_write(&builder, &file, files[_i].kind, files[_i].data_end, &id, &err));
    k3_file_close(&file);
    char *path = k3_path_join(folder, "file");
    ck_assert_ok(k3_file_open_read(path, &file, &err));
    struct k3_section_set set;
    ck_assert_ok(k3_section_set_read(&file, files[_i].kind, &set, &err));
    for (size_t i = 0; i < K3_SECTION_KINDS; i++) {
        const enum k3_section_kind kind = (enum k3_section_kind)kinds[i].kind;
        uint8_t *raw = NULL;
        size_t raw_len = 0;
        if (!stands_in(i, files[_i].kind)) {
            ck_assert_ptr_null(k3_section_find(&set, kind));
            ck_assert_code(k3_section_raw(&set, kind, &raw, &raw_len, NULL), K3_ERR_MALFORMED);
            continue;
        }
        size_t expected_len = 0;
        uint8_t *expected = k3_parts_section(&parts, kind, &expected_len);
        ck_assert_ok(k3_section_raw(&set, kind, &raw, &raw_len, &err));
        ck_assert_uint_eq(raw_len, expected_len);
        ck_assert_mem_eq(raw, expected, raw_len);
        free(raw);
        free(expected);
    }
    k3_section_set_done(&set);
    k3_section_set_done(&set);
    k3_file_close(&file);
    free(path);
}
END_TEST

/* docs/format.md 10. */
START_TEST(pack_id)
{
    uint8_t records[7 * 20];
    for (unsigned kind = 1; kind <= 7; kind++) {
        size_t len = 0;
        uint8_t *raw = k3_parts_section(&parts, (enum k3_section_kind)kind, &len);
        const struct k3_digest digest = k3_digest_of(raw, len);
        k3_le32_put(records + (kind - 1) * 20, kind);
        memcpy(records + (kind - 1) * 20 + 4, digest.bytes, 16);
        free(raw);
    }
    const struct k3_digest expected = k3_digest_of(records, sizeof records);
    const struct k3_digest id = k3_section_builder_pack_id(&builder);
    ck_assert_mem_eq(id.bytes, expected.bytes, 16);
}
END_TEST

/* Writing over a longer file leaves nothing of it behind. */
START_TEST(over_a_longer_file)
{
    const size_t long_len = (2 << 20) + 100000;
    uint8_t *junk = malloc(long_len);
    memset(junk, 0xee, long_len);
    k3_temp_file_write(folder, "file", junk, long_len);
    free(junk);
    struct k3_file file = open_file("file");
    const struct k3_digest id = k3_section_builder_pack_id(&builder);
    ck_assert_ok(
        k3_section_builder_write(&builder, &file, K3_FILE_EXPERTS, (2 << 20) + 4096, &id, &err));
    k3_file_close(&file);
    size_t len = 0;
    uint8_t *bytes = read_file("file", &len);
    check_file(bytes, len, K3_FILE_EXPERTS, (2 << 20) + 4096);
    free(bytes);
}
END_TEST

/* More than a reader accepts must not be written: the pack would be sealed and unreadable. */
START_TEST(too_many_bytes)
{
    const size_t max = 64 << 20;
    uint8_t *raw = calloc(1, max + 1);
    struct k3_section_builder b = {0};
    ck_assert_code(k3_section_builder_put(&b, K3_SECTION_FILES, raw, max + 1, &err),
                   K3_ERR_MALFORMED);
    ck_assert_code(k3_section_builder_put(&b, K3_SECTION_MODEL_SPEC, raw, max + 1, &err),
                   K3_ERR_MALFORMED);
    ck_assert_ptr_null(b.stored[K3_SECTION_FILES]);
    ck_assert_ok(k3_section_builder_put(&b, K3_SECTION_FILES, raw, max, &err));
    k3_section_builder_done(&b);
    free(raw);
}
END_TEST

Suite *k3_suite(void)
{
    Suite *suite = suite_create("section_builder");
    const int file_count = sizeof files / sizeof files[0];
    TCase *contract = tcase_create("contract");
    tcase_add_checked_fixture(contract, setup, teardown);
    tcase_add_test(contract, kind_table);
    tcase_add_loop_test(contract, written_by_the_document, 0, file_count);
    tcase_add_test(contract, pack_id);
    tcase_add_test(contract, over_a_longer_file);
    suite_add_tcase(suite, contract);
    TCase *round = tcase_create("round trip");
    tcase_add_checked_fixture(round, setup, teardown);
    tcase_add_loop_test(round, reads_back, 0, file_count);
    suite_add_tcase(suite, round);
    TCase *bounds = tcase_create("bounds");
    tcase_add_test(bounds, too_many_bytes);
    suite_add_tcase(suite, bounds);
    return suite;
}
