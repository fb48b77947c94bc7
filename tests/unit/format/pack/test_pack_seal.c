/* SPDX-License-Identifier: Apache-2.0 */
#include "format/pack/pack_seal.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "format/pack/pack_reader.h"
#include "tests/support/failing.h"
#include "tests/support/suite_main.h"
#include "tests/support/temp_folder.h"
#include "tests/unit/format/pack/pack_fixture.h"

static struct k3_error err;
static char folder[512];
static struct k3_pack_parts parts;
static struct k3_file trunk, experts;

static void setup(void)
{
    snprintf(folder, sizeof folder, "%s", k3_temp_folder_make());
    const struct k3_model_spec spec = k3_toy_spec();
    k3_pack_parts_init(&parts, &spec, spec.kda_heads, 2, 31);
    trunk = K3_FILE_CLOSED;
    experts = K3_FILE_CLOSED;
    k3_pack_parts_write(&parts, folder, 31, &trunk, &experts);
}

static void teardown(void)
{
    k3_file_close(&trunk);
    k3_file_close(&experts);
    k3_pack_parts_done(&parts);
    k3_temp_folder_remove(folder);
}

static enum k3_code seal(void)
{
    struct k3_digest id;
    return k3_pack_seal(folder, &trunk, &experts, &parts.tables, &parts.files, &parts.provenance,
                        &id, &err);
}

static enum k3_code try_open(void)
{
    struct k3_pack pack;
    struct k3_error open_err;
    const enum k3_code code = k3_pack_open(folder, &pack, &open_err);
    if (code == K3_OK) {
        k3_pack_close(&pack);
    }
    return code;
}

static bool exists(const char *name)
{
    char *path = k3_path_join(folder, name);
    const bool is_there = k3_path_exists(path);
    free(path);
    return is_there;
}

/* What a new process does: finds each data file under one of its two names. */
static void reopen(struct k3_file *file, enum k3_file_kind kind)
{
    k3_file_close(file);
    char *path = k3_partial_path(folder, kind);
    if (!k3_path_exists(path)) {
        free(path);
        path = k3_path_join(folder, k3_file_kind_name(kind));
    }
    ck_assert(k3_path_exists(path));
    ck_assert_ok(k3_file_open_write(path, file, &err));
    free(path);
}

static void check_whole_pack(void)
{
    static const char *const expected[] = {"k3.index", "k3.trunk", "k3.experts"};
    DIR *dir = opendir(folder);
    ck_assert_ptr_nonnull(dir);
    size_t count = 0;
    for (const struct dirent *entry = readdir(dir); entry; entry = readdir(dir)) {
        count += entry->d_name[0] != '.';
    }
    closedir(dir);
    ck_assert_uint_eq(count, 3);
    for (size_t i = 0; i < 3; i++) {
        ck_assert_msg(exists(expected[i]), "%s", expected[i]);
    }
    ck_assert_int_eq((int)try_open(), K3_OK);
}

START_TEST(publishes_a_whole_pack)
{
    ck_assert_int_eq((int)try_open(), K3_ERR_NO_INPUT);
    ck_assert_ok(seal());
    check_whole_pack();
}
END_TEST

/* Three files, then the folder after each of their renames. */
START_TEST(syncs_everything)
{
    k3_failing_arm(K3_FAILING_SYNC, K3_FAILING_ONCE, UINT64_MAX);
    const enum k3_code code = seal();
    k3_failing_disarm();
    ck_assert_ok(code);
    ck_assert_uint_eq(k3_failing_calls(K3_FAILING_SYNC), 6);
}
END_TEST

/* The files are durable before any of them has its name. */
START_TEST(syncs_before_names)
{
    for (uint64_t nth = 1; nth <= 3; nth++) {
        k3_failing_arm(K3_FAILING_SYNC, K3_FAILING_ONCE, nth);
        const enum k3_code code = seal();
        k3_failing_disarm();
        ck_assert_int_eq((int)code, K3_ERR_IO);
        ck_assert(!exists("k3.trunk") && !exists("k3.experts") && !exists("k3.index"));
    }
}
END_TEST

/* The id is that of the content: shards do not enter it, digests do. */
START_TEST(pack_id)
{
    struct k3_digest first;
    struct k3_digest second;
    ck_assert_ok(k3_pack_seal(folder, &trunk, &experts, &parts.tables, &parts.files,
                              &parts.provenance, &first, &err));
    parts.provenance.shards[0].digest.bytes[0] ^= 1;
    ck_assert_ok(k3_pack_seal(folder, &trunk, &experts, &parts.tables, &parts.files,
                              &parts.provenance, &second, &err));
    ck_assert_mem_eq(first.bytes, second.bytes, 16);
    parts.tables.expert_digests[3].bytes[0] ^= 1;
    ck_assert_ok(k3_pack_seal(folder, &trunk, &experts, &parts.tables, &parts.files,
                              &parts.provenance, &second, &err));
    ck_assert_mem_ne(first.bytes, second.bytes, 16);
}
END_TEST

START_TEST(again)
{
    ck_assert_ok(seal());
    ck_assert_ok(seal());
    check_whole_pack();
    reopen(&trunk, K3_FILE_TRUNK);
    reopen(&experts, K3_FILE_EXPERTS);
    ck_assert_ok(seal());
    check_whole_pack();
}
END_TEST

/* A new pack over an old one. */
START_TEST(over_an_old_pack)
{
    k3_toy_pack_make(folder, 99);
    /* the fixture renamed the partial files of setup(): write them anew */
    k3_file_close(&trunk);
    k3_file_close(&experts);
    k3_pack_parts_write(&parts, folder, 31, &trunk, &experts);
    ck_assert_int_eq((int)try_open(), K3_OK);
    ck_assert_ok(seal());
    check_whole_pack();
}
END_TEST

/* Interrupted before and after each rename: no pack, then a whole one when sealed again. */
START_TEST(interrupted_renames)
{
    const bool over_old = _i >= 3;
    const uint64_t nth = (uint64_t)(_i % 3) + 1;
    if (over_old) {
        k3_toy_pack_make(folder, 99);
        k3_file_close(&trunk);
        k3_file_close(&experts);
        k3_pack_parts_write(&parts, folder, 31, &trunk, &experts);
    }
    k3_failing_arm(K3_FAILING_RENAME, K3_FAILING_FROM, nth);
    const enum k3_code code = seal();
    ck_assert(k3_failing_disarm());
    ck_assert_int_eq((int)code, K3_ERR_CANT_CREATE);
    ck_assert(!exists("k3.index"));
    ck_assert_int_eq((int)try_open(), K3_ERR_NO_INPUT);
    reopen(&trunk, K3_FILE_TRUNK);
    reopen(&experts, K3_FILE_EXPERTS);
    ck_assert_ok(seal());
    check_whole_pack();
}
END_TEST

static const struct {
    enum k3_failing_kind kind;
    enum k3_failing_mode mode;
    int code;       /* that a failure gives; -1: must succeed all the same */
    int other_code; /* or this one */
    const char *why;
} injections[] = {
    {K3_FAILING_ALLOC, K3_FAILING_ONCE, K3_ERR_NO_MEMORY, K3_ERR_NO_MEMORY, "allocations"},
    {K3_FAILING_WRITE, K3_FAILING_ONCE, K3_ERR_IO, K3_ERR_IO, "writes"},
    {K3_FAILING_WRITE, K3_FAILING_FROM, K3_ERR_IO, K3_ERR_IO, "a full disk"},
    {K3_FAILING_WRITE, K3_FAILING_SHORT, -1, -1, "short writes"},
    {K3_FAILING_WRITE, K3_FAILING_EINTR, -1, -1, "interrupted writes"},
    {K3_FAILING_SYNC, K3_FAILING_ONCE, K3_ERR_IO, K3_ERR_IO, "syncs"},
    {K3_FAILING_SYNC, K3_FAILING_FROM, K3_ERR_IO, K3_ERR_IO, "syncs from then on"},
    {K3_FAILING_TRUNCATE, K3_FAILING_ONCE, K3_ERR_IO, K3_ERR_IO, "sizing"},
    {K3_FAILING_RENAME, K3_FAILING_ONCE, K3_ERR_CANT_CREATE, K3_ERR_CANT_CREATE, "renames"},
    {K3_FAILING_OPEN, K3_FAILING_ONCE, K3_ERR_CANT_CREATE, K3_ERR_IO, "opens"},
};

/* The n-th call of a seal fails: a code, no readable half pack, and sealing again makes it whole.
 */
START_TEST(everything_fails_once)
{
    uint64_t nth = 1;
    for (;; nth++) {
        k3_failing_arm(injections[_i].kind, injections[_i].mode, nth);
        const enum k3_code code = seal();
        if (!k3_failing_disarm()) {
            ck_assert_ok(code);
            break;
        }
        const char *why = injections[_i].why;
        const bool is_expected =
            injections[_i].code < 0
                ? code == K3_OK
                : (int)code == injections[_i].code || (int)code == injections[_i].other_code;
        ck_assert_msg(is_expected, "%s: call %llu gives %s", why, (unsigned long long)nth,
                      k3_code_name(code));
        if (code != K3_OK && exists("k3.index")) {
            /* Only the sync after the last rename fails behind the index: the pack is whole. */
            ck_assert_msg(injections[_i].kind == K3_FAILING_SYNC ||
                              injections[_i].kind == K3_FAILING_OPEN,
                          "%s: call %llu left an index", why, (unsigned long long)nth);
        } else if (code != K3_OK) {
            ck_assert_int_eq((int)try_open(), K3_ERR_NO_INPUT);
            reopen(&trunk, K3_FILE_TRUNK);
            reopen(&experts, K3_FILE_EXPERTS);
            ck_assert_ok(seal());
        }
        check_whole_pack();
        /* Afresh, so that each failure meets the state of a first seal. */
        k3_file_close(&trunk);
        k3_file_close(&experts);
        k3_temp_folder_remove(folder);
        snprintf(folder, sizeof folder, "%s", k3_temp_folder_make());
        k3_pack_parts_write(&parts, folder, 31, &trunk, &experts);
    }
    check_whole_pack();
    ck_assert_msg(nth > 1, "%s: nothing was disturbed", injections[_i].why);
}
END_TEST

static const struct {
    enum k3_failing_kind kind;
    enum k3_failing_mode mode;
    int code;
    const char *why;
} open_injections[] = {
    {K3_FAILING_ALLOC, K3_FAILING_ONCE, K3_ERR_NO_MEMORY, "allocations"},
    {K3_FAILING_ALLOC, K3_FAILING_FROM, K3_ERR_NO_MEMORY, "no memory from then on"},
    {K3_FAILING_READ, K3_FAILING_ONCE, K3_ERR_IO, "reads"},
    {K3_FAILING_READ, K3_FAILING_SHORT, -1, "short reads"},
    {K3_FAILING_READ, K3_FAILING_EINTR, -1, "interrupted reads"},
    {K3_FAILING_OPEN, K3_FAILING_ONCE, K3_ERR_IO, "opens"},
};

static enum k3_code open_with_provenance(void)
{
    struct k3_pack pack;
    enum k3_code code = k3_pack_open(folder, &pack, &err);
    if (code == K3_OK) {
        struct k3_provenance provenance;
        code = k3_index_provenance(&pack.sections, &pack.tables, &provenance, &err);
        if (code == K3_OK) {
            k3_provenance_done(&provenance);
        }
        k3_pack_close(&pack);
    }
    return code;
}

static size_t open_files(void)
{
    size_t count = 0;
    DIR *dir = opendir("/proc/self/fd");
    while (dir && readdir(dir)) {
        count++;
    }
    closedir(dir);
    return count;
}

START_TEST(opening_fails_once)
{
    ck_assert_ok(seal());
    const size_t files_before = open_files();
    uint64_t nth = 1;
    for (;; nth++) {
        k3_failing_arm(open_injections[_i].kind, open_injections[_i].mode, nth);
        const enum k3_code code = open_with_provenance();
        if (!k3_failing_disarm()) {
            ck_assert_ok(code);
            break;
        }
        ck_assert_msg((int)code ==
                          (open_injections[_i].code < 0 ? K3_OK : open_injections[_i].code),
                      "%s: call %llu gives %s", open_injections[_i].why, (unsigned long long)nth,
                      k3_code_name(code));
        ck_assert_uint_eq(open_files(), files_before);
    }
    ck_assert_msg(nth > 1, "%s: nothing was disturbed", open_injections[_i].why);
}
END_TEST

START_TEST(refuses_what_no_reader_takes)
{
    free(parts.files.files[K3_BUNDLED_TIKTOKEN].bytes);
    parts.files.files[K3_BUNDLED_TIKTOKEN].bytes = NULL;
    ck_assert_code(seal(), K3_ERR_MALFORMED);
    ck_assert(!exists("k3.index"));
    /* 64 MiB and a few bytes */
    parts.files.files[K3_BUNDLED_TIKTOKEN].len = 64 << 20;
    parts.files.files[K3_BUNDLED_TIKTOKEN].bytes = calloc(1, 64 << 20);
    ck_assert_code(seal(), K3_ERR_MALFORMED);
    ck_assert(!exists("k3.index"));
}
END_TEST

START_TEST(partial_names)
{
    static const char *const expected[] = {"/f/k3.index.partial", "/f/k3.trunk.partial",
                                           "/f/k3.experts.partial"};
    for (int i = 0; i < 3; i++) {
        char *path = k3_partial_path("/f", (enum k3_file_kind)(i + 1));
        ck_assert_str_eq(path, expected[i]);
        free(path);
    }
}
END_TEST

Suite *k3_suite(void)
{
    Suite *suite = suite_create("pack_seal");
    const int kinds = sizeof injections / sizeof injections[0];
    TCase *contract = tcase_create("contract");
    tcase_add_checked_fixture(contract, setup, teardown);
    tcase_add_test(contract, publishes_a_whole_pack);
    tcase_add_test(contract, syncs_everything);
    tcase_add_test(contract, syncs_before_names);
    tcase_add_test(contract, pack_id);
    tcase_add_test(contract, again);
    tcase_add_test(contract, over_an_old_pack);
    tcase_add_test(contract, refuses_what_no_reader_takes);
    tcase_add_test(contract, partial_names);
    suite_add_tcase(suite, contract);
    TCase *failures = tcase_create("fail everything once");
    tcase_add_checked_fixture(failures, setup, teardown);
    tcase_add_loop_test(failures, interrupted_renames, 0, 6);
    tcase_add_loop_test(failures, everything_fails_once, 0, kinds);
    tcase_add_loop_test(failures, opening_fails_once, 0,
                        sizeof open_injections / sizeof open_injections[0]);
    suite_add_tcase(suite, failures);
    return suite;
}
