/* SPDX-License-Identifier: Apache-2.0 */
#include "format/pack/pack_reader.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "format/base/bytes.h"
#include "tests/support/suite_main.h"
#include "tests/support/temp_folder.h"
#include "tests/unit/format/pack/pack_fixture.h"

static struct k3_error err;
static char folder[512];

static void setup(void)
{
    snprintf(folder, sizeof folder, "%s", k3_temp_folder_make());
    k3_toy_pack_make(folder, 21);
}

static void teardown(void)
{
    k3_temp_folder_remove(folder);
}

static char *path_of(const char *name)
{
    char *path = k3_path_join(folder, name);
    ck_assert_ptr_nonnull(path);
    return path;
}

/* Opens and closes. */
static enum k3_code try_open(void)
{
    struct k3_pack pack;
    err = (struct k3_error){0};
    const enum k3_code code = k3_pack_open(folder, &pack, &err);
    if (code == K3_OK) {
        k3_pack_close(&pack);
    }
    return code;
}

START_TEST(opens_what_was_sealed)
{
    struct k3_pack pack;
    ck_assert_ok(k3_pack_open(folder, &pack, &err));
    const struct k3_model_spec spec = k3_toy_spec();
    ck_assert_mem_eq(&pack.tables.spec, &spec, sizeof spec);
    ck_assert_str_eq((const char *)pack.files.files[K3_BUNDLED_TOKENIZER_CONFIG].bytes, "{}");
    ck_assert_ptr_null(pack.files.files[K3_BUNDLED_GENERATION_CONFIG].bytes);
    ck_assert_uint_eq(pack.files.files[K3_BUNDLED_LICENSE].len, 0);
    ck_assert_str_eq(pack.folder, folder);

    /* Every extent is what its digest says. */
    uint8_t *bytes = malloc(1 << 20);
    for (uint32_t e = 0; e < pack.tables.extent_count; e++) {
        const struct k3_trunk_extent *extent = &pack.tables.extents[e];
        ck_assert_uint_le(extent->used_bytes, 1 << 20);
        ck_assert_ok(k3_file_read(&pack.trunk, extent->file_offset, bytes,
                                  (size_t)extent->used_bytes, &err));
        const struct k3_digest digest = k3_digest_of(bytes, (size_t)extent->used_bytes);
        ck_assert_mem_eq(digest.bytes, pack.tables.block_digests[extent->block_first].bytes, 16);
    }
    const struct k3_expert_layout *layout = &pack.tables.layout;
    for (uint64_t n = 0; n < k3_expert_total(layout); n++) {
        ck_assert_ok(k3_file_read(&pack.experts, k3_expert_offset(layout, n), bytes,
                                  (size_t)layout->used_bytes, &err));
        const struct k3_digest digest = k3_digest_of(bytes, (size_t)layout->used_bytes);
        ck_assert_mem_eq(digest.bytes, pack.tables.expert_digests[n].bytes, 16);
    }
    free(bytes);

    struct k3_provenance provenance;
    ck_assert_ok(k3_index_provenance(&pack.sections, &pack.tables, &provenance, &err));
    ck_assert_uint_eq(provenance.shard_count, 2);
    k3_provenance_done(&provenance);
    k3_pack_close(&pack);
}
END_TEST

/* docs/format.md 5: a section that stands in two files has the same stored bytes in both. */
START_TEST(data_files_repeat_the_index)
{
    struct k3_pack pack;
    ck_assert_ok(k3_pack_open(folder, &pack, &err));
    for (unsigned f = K3_FILE_TRUNK; f <= K3_FILE_EXPERTS; f++) {
        struct k3_section_set set;
        ck_assert_ok(k3_section_set_read(f == K3_FILE_TRUNK ? &pack.trunk : &pack.experts,
                                         (enum k3_file_kind)f, &set, &err));
        for (uint32_t i = 0; i < set.count; i++) {
            const struct k3_section *a = &set.sections[i];
            const struct k3_section *b = k3_section_find(&pack.sections, a->kind);
            ck_assert_ptr_nonnull(b);
            ck_assert_uint_eq(a->stored_bytes, b->stored_bytes);
            ck_assert_mem_eq(k3_section_stored(&set, a), k3_section_stored(&pack.sections, b),
                             a->stored_bytes);
        }
        k3_section_set_done(&set);
    }
    k3_pack_close(&pack);
}
END_TEST

/* A zeroed pack owns nothing: closing it must not close file 0, twice neither. */
START_TEST(closing_nothing)
{
    struct k3_pack pack;
    memset(&pack, 0, sizeof pack);
    const int zero = fcntl(0, F_GETFD);
    k3_pack_close(&pack);
    ck_assert_int_eq(fcntl(0, F_GETFD), zero);
    ck_assert_ok(k3_pack_open(folder, &pack, &err));
    k3_pack_close(&pack);
    k3_pack_close(&pack);
    ck_assert_int_eq(fcntl(0, F_GETFD), zero);
}
END_TEST

static const char *const names[] = {"k3.index", "k3.trunk", "k3.experts"};

START_TEST(missing_file)
{
    char *path = path_of(names[_i]);
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_code(try_open(), K3_ERR_NO_INPUT);
    ck_assert_ptr_nonnull(strstr(err.message, names[_i]));
    free(path);
}
END_TEST

START_TEST(no_folder)
{
    struct k3_pack pack;
    char *path = path_of("nowhere");
    ck_assert_code(k3_pack_open(path, &pack, &err), K3_ERR_NO_INPUT);
    ck_assert_ptr_nonnull(strstr(err.message, "no such folder"));
    free(path);
}
END_TEST

START_TEST(folder_is_a_file)
{
    struct k3_pack pack;
    char *path = path_of("k3.trunk");
    ck_assert_code(k3_pack_open(path, &pack, &err), K3_ERR_NO_INPUT);
    free(path);
}
END_TEST

/* An unfinished pack is called that, and not "no pack". */
START_TEST(journal_without_index)
{
    char *path = path_of("k3.index");
    ck_assert_int_eq(unlink(path), 0);
    k3_temp_file_write(folder, "k3.journal", "j", 1);
    ck_assert_code(try_open(), K3_ERR_NO_INPUT);
    ck_assert_ptr_nonnull(strstr(err.message, "not finished"));
    free(path);
}
END_TEST

/* docs/format.md 11: with an index, temporary files do not matter. */
START_TEST(leftovers_are_ignored)
{
    k3_temp_file_write(folder, "k3.journal", "j", 1);
    k3_temp_file_write(folder, "k3.index.partial", "junk", 4);
    k3_temp_file_write(folder, "k3.trunk.partial", "junk", 4);
    ck_assert_ok(try_open());
}
END_TEST

START_TEST(index_is_a_folder)
{
    char *path = path_of("k3.index");
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_int_eq(mkdir(path, 0777), 0);
    const enum k3_code code = try_open();
    ck_assert(code != K3_OK);
    free(path);
}
END_TEST

/* Each file in turn comes from another pack of the same model. */
START_TEST(foreign_file)
{
    char other[600];
    snprintf(other, sizeof other, "%s/other", folder);
    ck_assert_int_eq(mkdir(other, 0777), 0);
    k3_toy_pack_make(other, 22);
    char *mine = path_of(names[_i]);
    char *theirs = k3_path_join(other, names[_i]);
    ck_assert_int_eq(rename(theirs, mine), 0);
    ck_assert_code(try_open(), K3_ERR_MALFORMED);
    ck_assert_uint_eq(err.file_offset, 24);
    free(mine);
    free(theirs);
}
END_TEST

/* The other file of this very pack. */
START_TEST(files_exchanged)
{
    char *trunk = path_of("k3.trunk");
    char *experts = path_of("k3.experts");
    char *between = path_of("between");
    ck_assert_int_eq(rename(trunk, between), 0);
    ck_assert_int_eq(rename(experts, trunk), 0);
    ck_assert_int_eq(rename(between, experts), 0);
    ck_assert_code(try_open(), K3_ERR_MALFORMED);
    ck_assert_uint_eq(err.file_offset, 20);
    free(trunk);
    free(experts);
    free(between);
}
END_TEST

static void flip(const char *name, uint64_t at)
{
    char *path = path_of(name);
    struct k3_file file = K3_FILE_CLOSED;
    ck_assert_ok(k3_file_open_write(path, &file, &err));
    uint8_t byte;
    ck_assert_ok(k3_file_read(&file, at, &byte, 1, &err));
    byte ^= 0x20;
    ck_assert_ok(k3_file_write(&file, at, &byte, 1, &err));
    k3_file_close(&file);
    free(path);
}

START_TEST(flipped_index)
{
    for (uint64_t at = 0; at < 8192; at += 61) {
        flip("k3.index", at);
        const enum k3_code code = try_open();
        ck_assert_msg(code != K3_OK, "byte %llu of the index", (unsigned long long)at);
        flip("k3.index", at);
    }
    ck_assert_ok(try_open());
}
END_TEST

START_TEST(flipped_superblock)
{
    for (uint64_t at = 0; at < 4096; at += 17) {
        flip(names[_i], at);
        const enum k3_code code = try_open();
        ck_assert_msg(code != K3_OK, "byte %llu of %s", (unsigned long long)at, names[_i]);
        flip(names[_i], at);
    }
    ck_assert_ok(try_open());
}
END_TEST

static const int64_t changes[] = {-1, -64, 1, 4096};
enum { CHANGES = sizeof changes / sizeof changes[0] };

START_TEST(cut_or_extended)
{
    char *path = path_of(names[_i / CHANGES]);
    struct stat st;
    ck_assert_int_eq(stat(path, &st), 0);
    ck_assert_int_eq(truncate(path, st.st_size + changes[_i % CHANGES]), 0);
    ck_assert_code(try_open(), K3_ERR_DAMAGED);
    free(path);
}
END_TEST

START_TEST(emptied)
{
    char *path = path_of(names[_i]);
    ck_assert_int_eq(truncate(path, 0), 0);
    ck_assert_code(try_open(), K3_ERR_DAMAGED);
    ck_assert_int_eq(truncate(path, 4095), 0);
    ck_assert_code(try_open(), K3_ERR_DAMAGED);
    /* zeros up to the right length are no pack file either */
    ck_assert_int_eq(truncate(path, 1 << 20), 0);
    ck_assert_code(try_open(), K3_ERR_MALFORMED);
    free(path);
}
END_TEST

/* A data file whose superblock is right in itself and tells another end of the data. */
START_TEST(other_data_end)
{
    char *path = path_of("k3.experts");
    struct k3_file file = K3_FILE_CLOSED;
    uint8_t bytes[K3_SUPERBLOCK_BYTES];
    ck_assert_ok(k3_file_open_write(path, &file, &err));
    ck_assert_ok(k3_file_read(&file, 0, bytes, sizeof bytes, &err));
    k3_le64_put(bytes + 88, k3_le64_get(bytes + 88) - 4096);
    k3_superblock_redigest(bytes);
    ck_assert_ok(k3_file_write(&file, 0, bytes, sizeof bytes, &err));
    k3_file_close(&file);
    ck_assert_code(try_open(), K3_ERR_MALFORMED);
    ck_assert_uint_eq(err.file_offset, 88);
    free(path);
}
END_TEST

Suite *k3_suite(void)
{
    Suite *suite = suite_create("pack_reader");
    TCase *contract = tcase_create("contract");
    tcase_add_checked_fixture(contract, setup, teardown);
    tcase_add_test(contract, opens_what_was_sealed);
    tcase_add_test(contract, data_files_repeat_the_index);
    tcase_add_test(contract, closing_nothing);
    tcase_add_test(contract, leftovers_are_ignored);
    suite_add_tcase(suite, contract);
    TCase *absent = tcase_create("missing and foreign files");
    tcase_add_checked_fixture(absent, setup, teardown);
    tcase_add_loop_test(absent, missing_file, 0, 3);
    tcase_add_test(absent, no_folder);
    tcase_add_test(absent, folder_is_a_file);
    tcase_add_test(absent, journal_without_index);
    tcase_add_test(absent, index_is_a_folder);
    tcase_add_loop_test(absent, foreign_file, 1, 3);
    tcase_add_test(absent, files_exchanged);
    suite_add_tcase(suite, absent);
    TCase *damage = tcase_create("damage");
    tcase_add_checked_fixture(damage, setup, teardown);
    tcase_add_test(damage, flipped_index);
    tcase_add_loop_test(damage, flipped_superblock, 0, 3);
    tcase_add_loop_test(damage, cut_or_extended, 0, 3 * CHANGES);
    tcase_add_loop_test(damage, emptied, 0, 3);
    tcase_add_test(damage, other_data_end);
    suite_add_tcase(suite, damage);
    return suite;
}
