/* SPDX-License-Identifier: Apache-2.0 */
#include "format/pack/superblock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/base/bytes.h"
#include "format/base/file.h"
#include "tests/support/suite_main.h"
#include "tests/support/temp_folder.h"
#include "tests/unit/format/pack/pack_fixture.h"

static struct k3_error err;

enum { AT_DIGEST = 4080, DATA_END = 0x200000 + 9 * 0x10000 + 0x6000 };

/* The superblock of docs/format.md 14: k3.experts of the toy model, digests chosen to be seen. */
static struct k3_superblock example(void)
{
    struct k3_superblock s = {
        .file_kind = K3_FILE_EXPERTS,
        .section_table_offset = DATA_END + 0x240,
        .section_count = 3,
        .file_bytes = DATA_END + 0x240 + 3 * 64,
        .data_end = DATA_END,
        .writer = "k3pack 0.1.0",
    };
    for (uint8_t i = 0; i < 16; i++) {
        s.pack_id.bytes[i] = (uint8_t)(0xa0 + i);
        s.section_table_digest.bytes[i] = (uint8_t)(0xd0 + i);
    }
    return s;
}

static enum k3_code decode(const uint8_t *bytes, struct k3_superblock *out)
{
    return k3_superblock_decode(bytes, K3_FILE_EXPERTS, DATA_END + 0x300, out, &err);
}

START_TEST(round_trip)
{
    const struct k3_superblock s = example();
    uint8_t bytes[K3_SUPERBLOCK_BYTES];
    k3_superblock_encode(&s, bytes);
    struct k3_superblock back;
    memset(&back, 0xff, sizeof back);
    ck_assert_ok(decode(bytes, &back));
    ck_assert_int_eq((int)back.file_kind, (int)s.file_kind);
    ck_assert_mem_eq(&back.pack_id, &s.pack_id, 16);
    ck_assert_mem_eq(&back.section_table_digest, &s.section_table_digest, 16);
    ck_assert_uint_eq(back.file_bytes, s.file_bytes);
    ck_assert_uint_eq(back.section_table_offset, s.section_table_offset);
    ck_assert_uint_eq(back.section_count, s.section_count);
    ck_assert_uint_eq(back.data_end, s.data_end);
    ck_assert_str_eq(back.writer, s.writer);
}
END_TEST

/* A writer name that fills its field has no zero in the file, and one in memory. */
START_TEST(long_writer)
{
    struct k3_superblock s = example();
    memset(s.writer, 'w', K3_WRITER_BYTES);
    s.writer[K3_WRITER_BYTES] = 0;
    uint8_t bytes[K3_SUPERBLOCK_BYTES];
    k3_superblock_encode(&s, bytes);
    struct k3_superblock back;
    ck_assert_ok(decode(bytes, &back));
    ck_assert_str_eq(back.writer, s.writer);
}
END_TEST

START_TEST(flipped_bytes)
{
    const struct k3_superblock s = example();
    uint8_t bytes[K3_SUPERBLOCK_BYTES];
    k3_superblock_encode(&s, bytes);
    for (size_t at = 0; at < sizeof bytes; at++) {
        bytes[at] ^= 0x10;
        const enum k3_code expected = at < 8    ? K3_ERR_MALFORMED
                                      : at < 10 ? K3_ERR_UNSUPPORTED
                                                : K3_ERR_DAMAGED;
        struct k3_superblock out = {.section_count = 77};
        const enum k3_code code = decode(bytes, &out);
        ck_assert_msg(code == expected, "byte %zu: %s", at, k3_code_name(code));
        ck_assert_uint_eq(out.section_count, 77);
        bytes[at] ^= 0x10;
    }
}
END_TEST

/* Fields that lie although the digest is right. */
static const struct {
    size_t at;
    unsigned bytes; /* width of the field */
    uint64_t value;
    enum k3_code code;
    uint64_t error_at;
    const char *why;
} lies[] = {
    {0, 1, 'P', K3_ERR_MALFORMED, 0, "another program's file"},
    {8, 2, 2, K3_ERR_UNSUPPORTED, 8, "a later layout"},
    {8, 2, 0, K3_ERR_UNSUPPORTED, 8, "an earlier layout"},
    {10, 2, 7, K3_OK, 0, "a later wording can be read"},
    {12, 4, 1, K3_ERR_UNSUPPORTED, 12, "an unknown feature"},
    {12, 4, UINT64_C(0x80000000), K3_ERR_UNSUPPORTED, 12, "another unknown feature"},
    {16, 4, 0xffffffff, K3_OK, 0, "unknown features that may be ignored"},
    {20, 4, 2, K3_ERR_MALFORMED, 20, "the trunk under the experts' name"},
    {20, 4, 0, K3_ERR_MALFORMED, 20, "no kind"},
    {20, 4, 0x103, K3_ERR_MALFORMED, 20, "a kind whose low byte is right"},
    {40, 8, DATA_END + 0x2ff, K3_ERR_DAMAGED, 40, "a file that is longer than it says"},
    {40, 8, DATA_END + 0x301, K3_ERR_DAMAGED, 40, "a file that is shorter than it says"},
    {48, 8, DATA_END + 0x200, K3_ERR_MALFORMED, 48, "a table that ends too early"},
    {48, 8, DATA_END + 0x280, K3_ERR_MALFORMED, 48, "a table that leaves the file"},
    {48, 8, DATA_END + 0x241, K3_ERR_MALFORMED, 48, "a table that is not aligned"},
    {48, 8, UINT64_MAX - 63, K3_ERR_MALFORMED, 48, "an offset that wraps"},
    {56, 4, 0, K3_ERR_MALFORMED, 48, "no sections"},
    {56, 4, 4, K3_ERR_MALFORMED, 48, "one section too many for the file"},
    {56, 4, 33, K3_ERR_MALFORMED, 48, "more sections than the format has"},
    {56, 4, 0x04000003, K3_ERR_MALFORMED, 48, "a count whose product wraps in 32 bits"},
    {60, 4, 1, K3_ERR_MALFORMED, 128, "spare field"},
    {80, 8, 0, K3_ERR_MALFORMED, 80, "data before the first extent"},
    {80, 8, 0x400000, K3_ERR_MALFORMED, 80, "data that starts elsewhere"},
    {88, 8, 0x1fffff, K3_ERR_MALFORMED, 80, "data that end before they start"},
    {88, 8, DATA_END + 0x241, K3_ERR_MALFORMED, 80, "data that reach into the table"},
    {88, 8, UINT64_MAX, K3_ERR_MALFORMED, 80, "data that end nowhere"},
    {96, 1, 'X', K3_OK, 0, "another writer"},
    {128, 1, 1, K3_ERR_MALFORMED, 128, "first spare byte"},
    {4079, 1, 1, K3_ERR_MALFORMED, 128, "last spare byte"},
};

START_TEST(lying_fields)
{
    const struct k3_superblock s = example();
    uint8_t bytes[K3_SUPERBLOCK_BYTES];
    k3_superblock_encode(&s, bytes);
    for (unsigned i = 0; i < lies[_i].bytes; i++) {
        bytes[lies[_i].at + i] = (uint8_t)(lies[_i].value >> 8 * i);
    }
    k3_superblock_redigest(bytes);
    struct k3_superblock out;
    const enum k3_code code = decode(bytes, &out);
    ck_assert_msg(code == lies[_i].code, "%s: %s", lies[_i].why, k3_code_name(code));
    ck_assert_msg(code == K3_OK || err.file_offset == lies[_i].error_at, "%s: at %llu",
                  lies[_i].why, (unsigned long long)err.file_offset);
}
END_TEST

/* The index has no data at all. */
START_TEST(index_has_no_data)
{
    struct k3_superblock s = {.file_kind = K3_FILE_INDEX,
                              .file_bytes = 4096 + 64,
                              .section_table_offset = 4096,
                              .section_count = 1};
    uint8_t bytes[K3_SUPERBLOCK_BYTES];
    k3_superblock_encode(&s, bytes);
    ck_assert_uint_eq(k3_le64_get(bytes + 80), 0);
    struct k3_superblock out;
    ck_assert_ok(k3_superblock_decode(bytes, K3_FILE_INDEX, 4160, &out, &err));
    k3_le64_put(bytes + 88, 4096);
    k3_superblock_redigest(bytes);
    ck_assert_code(k3_superblock_decode(bytes, K3_FILE_INDEX, 4160, &out, &err), K3_ERR_MALFORMED);
}
END_TEST

/* The example is not made up: the toy model's experts really lie so. */
START_TEST(example_is_a_pack)
{
    const char *folder = k3_temp_folder_make();
    k3_toy_pack_make(folder, 1);
    char *path = k3_path_join(folder, "k3.experts");
    struct k3_file file = K3_FILE_CLOSED;
    ck_assert_ok(k3_file_open_read(path, &file, &err));
    uint8_t bytes[K3_SUPERBLOCK_BYTES];
    ck_assert_ok(k3_file_read(&file, 0, bytes, sizeof bytes, &err));
    struct k3_superblock real;
    ck_assert_ok(k3_superblock_decode(bytes, K3_FILE_EXPERTS, file.file_bytes, &real, &err));
    const struct k3_superblock s = example();
    ck_assert_uint_eq(real.file_bytes, s.file_bytes);
    ck_assert_uint_eq(real.section_table_offset, s.section_table_offset);
    ck_assert_uint_eq(real.section_count, s.section_count);
    ck_assert_uint_eq(real.data_end, s.data_end);
    k3_file_close(&file);
    free(path);
    k3_temp_folder_remove(folder);
}
END_TEST

/* "offset  16 bytes  |text|"; a run of equal lines is one "*"; as hexdump -C prints it. */
static void hex_dump(const uint8_t *bytes, size_t len, FILE *out)
{
    bool is_repeat = false;
    for (size_t at = 0; at < len; at += 16) {
        if (at > 0 && memcmp(bytes + at, bytes + at - 16, 16) == 0) {
            if (!is_repeat) {
                fputs("*\n", out);
            }
            is_repeat = true;
            continue;
        }
        is_repeat = false;
        fprintf(out, "%08zx ", at);
        for (size_t i = 0; i < 16; i++) {
            fprintf(out, "%s%02x", i % 8 == 0 ? " " : "", bytes[at + i]);
            fputs(i % 8 == 7 ? " " : " ", out);
        }
        fputs(" |", out);
        for (size_t i = 0; i < 16; i++) {
            const uint8_t c = bytes[at + i];
            fputc(c >= 0x20 && c < 0x7f ? c : '.', out);
        }
        fputs("|\n", out);
    }
    fprintf(out, "%08zx\n", len);
}

#define GOLDEN K3_TESTS_DIR "/golden/pack_superblock.hex"

static char *read_text(const char *path)
{
    uint8_t *bytes = NULL;
    size_t len = 0;
    ck_assert_ok(k3_file_read_all(path, 1 << 20, &bytes, &len, &err));
    char *text = strndup((const char *)bytes, len);
    free(bytes);
    return text;
}

/* Run with K3_UPDATE_GOLDEN=1 to write the golden file anew; then docs/format.md 14 follows. */
START_TEST(golden)
{
    const struct k3_superblock s = example();
    uint8_t bytes[K3_SUPERBLOCK_BYTES];
    k3_superblock_encode(&s, bytes);
    char *text = NULL;
    size_t text_len = 0;
    FILE *stream = open_memstream(&text, &text_len);
    ck_assert_ptr_nonnull(stream);
    hex_dump(bytes, sizeof bytes, stream);
    ck_assert_int_eq(fclose(stream), 0);
    if (getenv("K3_UPDATE_GOLDEN")) {
        FILE *file = fopen(GOLDEN, "w");
        ck_assert_ptr_nonnull(file);
        fputs(text, file);
        ck_assert_int_eq(fclose(file), 0);
    }
    char *expected = read_text(GOLDEN);
    ck_assert_str_eq(text, expected);
    free(expected);
    free(text);
}
END_TEST

/* docs/format.md 14 quotes the golden file: the first fenced block of that section. */
START_TEST(document_quotes_golden)
{
    char *document = read_text(K3_TESTS_DIR "/../docs/format.md");
    char *expected = read_text(GOLDEN);
    char *section = strstr(document, "\n## 14. Worked example\n");
    ck_assert_ptr_nonnull(section);
    char *begin = strstr(section, "\n```\n");
    ck_assert_ptr_nonnull(begin);
    begin += 5;
    char *end = strstr(begin, "```\n");
    ck_assert_ptr_nonnull(end);
    *end = 0;
    ck_assert_str_eq(begin, expected);
    free(document);
    free(expected);
}
END_TEST

Suite *k3_suite(void)
{
    Suite *suite = suite_create("superblock");
    TCase *round = tcase_create("round trip");
    tcase_add_test(round, round_trip);
    tcase_add_test(round, long_writer);
    suite_add_tcase(suite, round);
    TCase *damage = tcase_create("damage");
    tcase_add_test(damage, flipped_bytes);
    tcase_add_loop_test(damage, lying_fields, 0, sizeof lies / sizeof lies[0]);
    tcase_add_test(damage, index_has_no_data);
    suite_add_tcase(suite, damage);
    TCase *contract = tcase_create("contract");
    tcase_add_test(contract, example_is_a_pack);
    tcase_add_test(contract, golden);
    tcase_add_test(contract, document_quotes_golden);
    suite_add_tcase(suite, contract);
    return suite;
}
