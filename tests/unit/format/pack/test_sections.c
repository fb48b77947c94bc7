/* SPDX-License-Identifier: Apache-2.0 */
#include "format/pack/sections.h"

#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "format/base/bytes.h"
#include "format/pack/pack_reader.h"
#include "tests/support/suite_main.h"
#include "tests/support/temp_folder.h"
#include "tests/unit/format/pack/pack_fixture.h"

static struct k3_error err;
static uint8_t *index_bytes;
static size_t index_len;

static void setup(void)
{
    index_bytes = k3_toy_index_make(&index_len);
}

static void teardown(void)
{
    free(index_bytes);
}

/* Everything that opening a pack does with an index. */
static enum k3_code read_index(const uint8_t *bytes, size_t len)
{
    struct k3_section_set set;
    enum k3_code code = k3_index_parse(bytes, len, &set, &err);
    if (code != K3_OK) {
        return code;
    }
    struct k3_pack_tables tables;
    struct k3_file_bundle files;
    code = k3_index_decode(&set, &tables, &files, &err);
    if (code == K3_OK) {
        k3_pack_tables_done(&tables);
        k3_file_bundle_done(&files);
    }
    k3_section_set_done(&set);
    return code;
}

static const uint8_t flips[] = {0x01, 0x40, 0xff};

START_TEST(flipped_bytes)
{
    ck_assert_ok(read_index(index_bytes, index_len));
    for (size_t at = 0; at < index_len; at++) {
        index_bytes[at] ^= flips[_i];
        const enum k3_code code = read_index(index_bytes, index_len);
        const enum k3_code expected = at < 8    ? K3_ERR_MALFORMED
                                      : at < 10 ? K3_ERR_UNSUPPORTED
                                                : K3_ERR_DAMAGED;
        ck_assert_msg(code == expected, "byte %zu of %zu: %s", at, index_len, k3_code_name(code));
        index_bytes[at] ^= flips[_i];
    }
}
END_TEST

static enum k3_code read_from_file(const char *folder, const uint8_t *bytes, size_t len)
{
    k3_temp_file_write(folder, "index", bytes, len);
    char *path = k3_path_join(folder, "index");
    struct k3_file file = K3_FILE_CLOSED;
    ck_assert_ok(k3_file_open_read(path, &file, &err));
    struct k3_section_set set;
    const enum k3_code code = k3_section_set_read(&file, K3_FILE_INDEX, &set, &err);
    if (code == K3_OK) {
        k3_section_set_done(&set);
    }
    k3_file_close(&file);
    free(path);
    return code;
}

START_TEST(cut_files)
{
    const char *folder = k3_temp_folder_make();
    for (size_t len = 0; len < index_len; len += 64) {
        const enum k3_code code = read_from_file(folder, index_bytes, len);
        ck_assert_msg(code == K3_ERR_DAMAGED, "cut to %zu: %s", len, k3_code_name(code));
    }
    ck_assert_code(read_from_file(folder, index_bytes, index_len - 1), K3_ERR_DAMAGED);
    ck_assert_ok(read_from_file(folder, index_bytes, index_len));
    k3_temp_folder_remove(folder);
}
END_TEST

START_TEST(extended_files)
{
    const char *folder = k3_temp_folder_make();
    const size_t more[] = {1, 63, 64, 4096};
    for (size_t i = 0; i < sizeof more / sizeof more[0]; i++) {
        uint8_t *bytes = calloc(1, index_len + more[i]);
        memcpy(bytes, index_bytes, index_len);
        ck_assert_code(read_from_file(folder, bytes, index_len + more[i]), K3_ERR_DAMAGED);
        free(bytes);
    }
    k3_temp_folder_remove(folder);
}
END_TEST

/* A mutated section table or section under right digests. */
enum { SPEC, EXTENTS, TENSORS, DIGESTS, LAYOUT, EXPERTS, FILES, SHARDS, TRUNK_SOURCES, LAST };

static uint8_t *entry(unsigned index)
{
    return index_bytes + k3_le64_get(index_bytes + 48) + (size_t)64 * index;
}

static void add64(uint8_t *p, uint64_t more)
{
    k3_le64_put(p, k3_le64_get(p) + more);
}

static void unknown_kind(void)
{
    k3_le32_put(entry(LAST), 11);
}
static void kind_zero(void)
{
    k3_le32_put(entry(SPEC), 0);
}
static void repeated_kind(void)
{
    k3_le32_put(entry(EXTENTS), 1);
}
static void swapped_entries(void)
{
    uint8_t first[64];
    memcpy(first, entry(SHARDS), 64);
    memcpy(entry(SHARDS), entry(TRUNK_SOURCES), 64);
    memcpy(entry(TRUNK_SOURCES), first, 64);
}
static void unknown_flag(void)
{
    k3_le32_put(entry(FILES) + 4, 3);
}
static void raw_called_zstd(void)
{
    k3_le32_put(entry(SPEC) + 4, 1);
}
static void zstd_called_raw(void)
{
    k3_le32_put(entry(FILES) + 4, 0);
    k3_le64_put(entry(FILES) + 24, k3_le64_get(entry(FILES) + 16));
}
static void spare_set(void)
{
    entry(DIGESTS)[63] = 1;
}
static void offset_moved(void)
{
    add64(entry(TENSORS) + 8, 64);
}
static void offset_back(void)
{
    k3_le64_put(entry(TENSORS) + 8, 4096);
}
static void offset_in_superblock(void)
{
    k3_le64_put(entry(SPEC) + 8, 0);
}
static void offset_wraps(void)
{
    k3_le64_put(entry(LAST) + 8, UINT64_MAX - 63);
}
static void stored_too_long(void)
{
    add64(entry(LAST) + 16, 1 << 20);
}
static void stored_wraps(void)
{
    k3_le64_put(entry(LAST) + 16, UINT64_MAX);
}
static void stored_reaches_table(void)
{
    add64(entry(LAST) + 16, 64);
}
static void stored_nothing(void)
{
    k3_le64_put(entry(FILES) + 16, 0);
}
static void raw_is_not_stored(void)
{
    add64(entry(SPEC) + 24, 1);
}
static void raw_above_the_maximum(void)
{
    k3_le64_put(entry(FILES) + 24, (64 << 20) + 1);
}
static void raw_is_not_the_frames(void)
{
    add64(entry(FILES) + 24, 1);
}
static void raw_is_huge(void)
{
    k3_le64_put(entry(FILES) + 24, UINT64_MAX);
}
static void frame_broken(void)
{
    index_bytes[k3_le64_get(entry(FILES) + 8)] ^= 1;
}
static void frame_body_broken(void)
{
    uint8_t *p = index_bytes + k3_le64_get(entry(FILES) + 8);
    memset(p + 8, 0xff, 8);
}
static void a_count_short(void)
{
    /* The table keeps its place, so the file says one section less and ends 64 bytes early. */
    k3_le32_put(index_bytes + 56, 9);
    index_len -= 64;
}
static void spec_says_another_layer_kind(void)
{
    index_bytes[4096 + 256] = 1;
}
static void extent_moved(void)
{
    add64(index_bytes + k3_le64_get(entry(EXTENTS) + 8) + 16, 2 << 20);
}
static void wrong_pack_id(void)
{
    /* Provenance is outside the pack id; a bundled file is inside. */
    index_bytes[24] ^= 1;
}

static const struct {
    void (*change)(void);
    bool is_in_table; /* must be refused before any section is decoded */
    const char *why;
} lies[] = {
    {unknown_kind, true, "unknown kind"},
    {kind_zero, true, "kind zero"},
    {repeated_kind, true, "repeated kind"},
    {swapped_entries, true, "kinds do not ascend"},
    {unknown_flag, true, "unknown flag"},
    {raw_called_zstd, true, "raw section called compressed"},
    {zstd_called_raw, true, "compressed section called raw"},
    {spare_set, true, "spare bytes"},
    {offset_moved, true, "gap between sections"},
    {offset_back, true, "sections overlap"},
    {offset_in_superblock, true, "section in the superblock"},
    {offset_wraps, true, "offset that wraps"},
    {stored_too_long, true, "section leaves the file"},
    {stored_wraps, true, "length that wraps"},
    {stored_reaches_table, true, "section reaches into the table"},
    {stored_nothing, true, "empty section"},
    {raw_is_not_stored, true, "raw section of two sizes"},
    {raw_above_the_maximum, true, "more raw bytes than allowed"},
    {raw_is_not_the_frames, false, "frame of another size"},
    {raw_is_huge, true, "raw bytes that wrap an allocation"},
    {frame_broken, false, "no zstd frame"},
    {frame_body_broken, false, "zstd frame with a damaged body"},
    {a_count_short, true, "last section missing"},
    {spec_says_another_layer_kind, false, "tables that are not the spec's"},
    {extent_moved, false, "an extent elsewhere"},
};

START_TEST(lying_index)
{
    lies[_i].change();
    k3_index_redigest(index_bytes, index_len);
    const enum k3_code code = read_index(index_bytes, index_len);
    ck_assert_msg(code == K3_ERR_MALFORMED, "%s: %s", lies[_i].why, k3_code_name(code));
    struct k3_section_set set;
    const enum k3_code parsed = k3_index_parse(index_bytes, index_len, &set, &err);
    ck_assert_msg((parsed != K3_OK) == lies[_i].is_in_table, "%s: parse", lies[_i].why);
    if (parsed == K3_OK) {
        k3_section_set_done(&set);
    }
}
END_TEST

START_TEST(foreign_pack_id)
{
    wrong_pack_id();
    k3_superblock_redigest(index_bytes);
    ck_assert_code(read_index(index_bytes, index_len), K3_ERR_DAMAGED);
    ck_assert_uint_eq(err.file_offset, 24);
}
END_TEST

START_TEST(wrong_kind_of_file)
{
    struct k3_section_set set;
    uint8_t *tail = malloc(index_len - 4096);
    memcpy(tail, index_bytes + 4096, index_len - 4096);
    ck_assert_code(
        k3_section_set_parse(index_bytes, K3_FILE_TRUNK, tail, 4096, index_len - 4096, &set, &err),
        K3_ERR_MALFORMED);
    ck_assert_uint_eq(err.file_offset, 20);
    free(tail);
}
END_TEST

static const struct {
    size_t at;
    uint8_t value;
    const char *why;
} newer[] = {
    {8, 2, "a later version"},
    {12, 1, "an unknown incompatible feature"},
    {15, 0x80, "another unknown incompatible feature"},
};

START_TEST(newer_formats)
{
    index_bytes[newer[_i].at] = newer[_i].value;
    k3_index_redigest(index_bytes, index_len);
    ck_assert_msg(read_index(index_bytes, index_len) == K3_ERR_UNSUPPORTED, "%s", newer[_i].why);
}
END_TEST

START_TEST(compatible_features_are_ignored)
{
    index_bytes[10] = 9;
    index_bytes[16] = 0xff;
    k3_index_redigest(index_bytes, index_len);
    ck_assert_ok(read_index(index_bytes, index_len));
}
END_TEST

/* Section 7 of a set that holds nothing else. */
static enum k3_code unpack(uint8_t *stored, size_t stored_len, size_t raw_len)
{
    struct k3_section_set set = {.count = 1,
                                 .sections = {{.kind = K3_SECTION_FILES,
                                               .flags = 1,
                                               .stored_bytes = stored_len,
                                               .raw_bytes = raw_len}},
                                 .tail = stored};
    uint8_t *raw = NULL;
    size_t len = 0;
    const enum k3_code code = k3_section_raw(&set, K3_SECTION_FILES, &raw, &len, &err);
    if (code == K3_OK) {
        ck_assert_uint_eq(len, raw_len);
        free(raw);
    }
    return code;
}

/* A skippable frame behind the frame makes it two; zstd itself would not mind. */
START_TEST(skippable_frame)
{
    static const uint8_t skippable[] = {0x50, 0x2a, 0x4d, 0x18, 1, 0, 0, 0, 'x'};
    uint8_t frames[256];
    const size_t one = ZSTD_compress(frames, sizeof frames, "abc", 3, 1);
    memcpy(frames + one, skippable, sizeof skippable);
    ck_assert_ok(unpack(frames, one, 3));
    ck_assert_code(unpack(frames, one + sizeof skippable, 3), K3_ERR_MALFORMED);
}
END_TEST

/* A frame must state its content size. */
START_TEST(frame_without_size)
{
    ZSTD_CCtx *context = ZSTD_createCCtx();
    ZSTD_CCtx_setParameter(context, ZSTD_c_contentSizeFlag, 0);
    uint8_t frame[256];
    const size_t len = ZSTD_compress2(context, frame, sizeof frame, "abcabcabc", 9);
    ck_assert(!ZSTD_isError(len));
    ZSTD_freeCCtx(context);
    ck_assert_code(unpack(frame, len, 9), K3_ERR_MALFORMED);
}
END_TEST

/* Two frames are not one. */
START_TEST(two_frames)
{
    uint8_t frames[256];
    const size_t one = ZSTD_compress(frames, sizeof frames, "abc", 3, 1);
    ck_assert(!ZSTD_isError(one));
    memcpy(frames + one, frames, one);
    ck_assert_ok(unpack(frames, one, 3));
    ck_assert_code(unpack(frames, 2 * one, 3), K3_ERR_MALFORMED);
    ck_assert_code(unpack(frames, 2 * one, 6), K3_ERR_MALFORMED);
    ck_assert_code(unpack(frames, one - 1, 3), K3_ERR_MALFORMED);
    ck_assert_code(unpack(frames, one, 4), K3_ERR_MALFORMED);
    ck_assert_code(unpack(frames, one, 2), K3_ERR_MALFORMED);
}
END_TEST

Suite *k3_suite(void)
{
    Suite *suite = suite_create("sections");
    TCase *damage = tcase_create("damage");
    tcase_add_checked_fixture(damage, setup, teardown);
    tcase_add_loop_test(damage, flipped_bytes, 0, sizeof flips);
    tcase_add_test(damage, cut_files);
    tcase_add_test(damage, extended_files);
    suite_add_tcase(suite, damage);
    TCase *contract = tcase_create("contract");
    tcase_add_checked_fixture(contract, setup, teardown);
    tcase_add_loop_test(contract, lying_index, 0, sizeof lies / sizeof lies[0]);
    tcase_add_test(contract, foreign_pack_id);
    tcase_add_test(contract, wrong_kind_of_file);
    tcase_add_loop_test(contract, newer_formats, 0, sizeof newer / sizeof newer[0]);
    tcase_add_test(contract, compatible_features_are_ignored);
    tcase_add_test(contract, two_frames);
    tcase_add_test(contract, skippable_frame);
    tcase_add_test(contract, frame_without_size);
    suite_add_tcase(suite, contract);
    return suite;
}
