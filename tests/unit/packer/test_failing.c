/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/failing.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/pack/pack_reader.h"
#include "packer/export.h"
#include "packer/list.h"
#include "packer/pack.h"
#include "packer/verify.h"
#include "tests/support/suite_main.h"
#include "tests/support/temp_folder.h"

/* Everything that packing, verifying and exporting asks of the system fails once. Whatever it was:
 * a code comes back, nothing leaks (the sanitizer build says so), nothing half done looks finished,
 * and a rerun gives the bytes of an undisturbed run. */

static const char *checkpoint;
static char root[400];
static struct k3_digest expected[3]; /* of the three files */

static void path_of(const char *name, char out[512])
{
    snprintf(out, 512, "%s/%s", root, name);
}

static enum k3_code pack_to(const char *folder)
{
    struct k3_problems problems = {0};
    struct k3_pack_report report;
    struct k3_error err = {0};
    const struct k3_pack_request request = {.checkpoint = checkpoint, .folder = folder, .jobs = 2};
    const enum k3_code code = k3_pack_make(&request, NULL, &problems, &report, &err);
    k3_problems_done(&problems);
    return code;
}

static void digest_files(const char *folder, struct k3_digest out[3])
{
    static const char *const names[] = {K3_INDEX_NAME, K3_TRUNK_NAME, K3_EXPERTS_NAME};
    for (unsigned i = 0; i < 3; i++) {
        struct k3_error err;
        uint8_t *bytes = NULL;
        size_t len = 0;
        char *path = k3_path_join(folder, names[i]);
        ck_assert_ok(k3_file_read_all(path, (size_t)1 << 30, &bytes, &len, &err));
        out[i] = k3_digest_of(bytes, len);
        free(bytes);
        free(path);
    }
}

static void setup(void)
{
    checkpoint = getenv("K3_CHECKPOINT");
    if (!checkpoint) {
        return;
    }
    json_set_alloc_funcs(malloc, free); /* ours are wrapped, jansson's own calls are not */
    snprintf(root, sizeof root, "%s", k3_temp_folder_make());
    char folder[512];
    path_of("good", folder);
    ck_assert_int_eq(pack_to(folder), K3_OK);
    digest_files(folder, expected);
}

static void teardown(void)
{
    if (checkpoint) {
        k3_temp_folder_remove(root);
    }
}

/* After a disturbed run: no index, or a whole pack. Then once more, undisturbed. */
static void check_afterwards(const char *folder)
{
    char *index = k3_path_join(folder, K3_INDEX_NAME);
    if (k3_path_exists(index)) {
        struct k3_pack pack;
        struct k3_error err;
        ck_assert_ok(k3_pack_open(folder, &pack, &err));
        k3_pack_close(&pack);
    }
    free(index);
    ck_assert_int_eq(pack_to(folder), K3_OK);
    struct k3_digest found[3];
    digest_files(folder, found);
    ck_assert_int_eq(memcmp(found, expected, sizeof found), 0);
}

static const struct {
    enum k3_failing_kind kind;
    enum k3_failing_mode mode;
    bool must_succeed; /* short and interrupted calls are nobody's business */
    const char *why;
} rows[] = {
    {K3_FAILING_ALLOC, K3_FAILING_ONCE, false, "no memory"},
    {K3_FAILING_READ, K3_FAILING_ONCE, false, "a bad sector"},
    {K3_FAILING_WRITE, K3_FAILING_ONCE, false, "a full disk, for a moment"},
    {K3_FAILING_WRITE, K3_FAILING_FROM, false, "a full disk"},
    {K3_FAILING_SYNC, K3_FAILING_ONCE, false, "data that never reached the disk"},
    {K3_FAILING_TRUNCATE, K3_FAILING_ONCE, false, "no room for the size"},
    {K3_FAILING_RENAME, K3_FAILING_ONCE, false, "no rename"},
    {K3_FAILING_OPEN, K3_FAILING_ONCE, false, "too many open files"},
    {K3_FAILING_LIST, K3_FAILING_ONCE, false, "a folder that cannot be listed"},
    {K3_FAILING_READ, K3_FAILING_SHORT, true, "short reads"},
    {K3_FAILING_WRITE, K3_FAILING_SHORT, true, "short writes"},
    {K3_FAILING_READ, K3_FAILING_EINTR, true, "interrupted reads"},
    {K3_FAILING_WRITE, K3_FAILING_EINTR, true, "interrupted writes"},
    {K3_FAILING_SYNC, K3_FAILING_EINTR, true, "interrupted syncs"},
    {K3_FAILING_TRUNCATE, K3_FAILING_EINTR, true, "interrupted truncation"},
};

/* Allocations come in thousands: every one of the first, then ever fewer. */
static uint64_t next_nth(uint64_t nth)
{
    return nth + 1 + nth / 16;
}

static enum k3_code expected_code(enum k3_failing_kind kind)
{
    return kind == K3_FAILING_ALLOC ? K3_ERR_NO_MEMORY : K3_ERR_IO;
}

START_TEST(test_pack)
{
    if (!checkpoint) {
        return;
    }
    uint64_t hits = 0;
    for (uint64_t nth = 1;; nth = next_nth(nth)) {
        char folder[512];
        path_of("pack", folder);
        k3_failing_arm(rows[_i].kind, rows[_i].mode, nth);
        const enum k3_code code = pack_to(folder);
        if (!k3_failing_disarm()) {
            ck_assert_int_eq(code, K3_OK);
            k3_temp_folder_remove(folder);
            break;
        }
        hits++;
        ck_assert_msg(!rows[_i].must_succeed || code == K3_OK, "%s %d: %s", rows[_i].why, (int)nth,
                      k3_code_name(code));
        ck_assert_msg(code == K3_OK || code == expected_code(rows[_i].kind) ||
                          rows[_i].kind == K3_FAILING_OPEN || rows[_i].kind == K3_FAILING_RENAME,
                      "%s %d: %s", rows[_i].why, (int)nth, k3_code_name(code));
        check_afterwards(folder);
        k3_temp_folder_remove(folder);
    }
    ck_assert_msg(hits > 0, "%s: nothing was disturbed", rows[_i].why);
}
END_TEST

static enum k3_code verify(const char *folder)
{
    static const struct k3_verify_scope everything;
    struct k3_verify v = {0};
    struct k3_error err = {0};
    enum k3_code code = k3_verify_structure(folder, NULL, &v, &err);
    if (code == K3_OK) {
        code = k3_verify_data(&v, &everything, 2, &err);
        if (code == K3_OK) {
            code = k3_damage_result(&v.damage, folder, &err);
        }
        k3_verify_done(&v);
    }
    return code;
}

static enum k3_code list(const char *folder)
{
    struct k3_listing listing;
    struct k3_error err = {0};
    enum k3_code code = k3_listing_open(folder, &listing, &err);
    if (code == K3_OK) {
        FILE *sink = fopen("/dev/null", "w");
        code = sink ? k3_list_json(&listing, sink, &err) : K3_ERR_IO;
        if (sink) {
            fclose(sink);
        }
        k3_listing_close(&listing);
    }
    return code;
}

static enum k3_code export_pack(const char *folder)
{
    char out[512];
    struct k3_export_report report;
    struct k3_error err = {0};
    path_of("out", out);
    return k3_export(folder, out, NULL, &report, &err);
}

typedef enum k3_code (*reader)(const char *folder);
static const reader readers[] = {verify, list, export_pack};
static const enum k3_failing_kind reader_kinds[] = {K3_FAILING_ALLOC, K3_FAILING_READ,
                                                    K3_FAILING_OPEN,  K3_FAILING_WRITE,
                                                    K3_FAILING_SYNC,  K3_FAILING_RENAME};
#define READERS (sizeof readers / sizeof readers[0])
#define KINDS   (sizeof reader_kinds / sizeof reader_kinds[0])

/* A pack that is good: whatever fails, it is not called damaged for want of memory. */
START_TEST(test_readers)
{
    if (!checkpoint) {
        return;
    }
    const reader run = readers[(size_t)_i / KINDS];
    const enum k3_failing_kind kind = reader_kinds[(size_t)_i % KINDS];
    char folder[512], out[512];
    path_of("good", folder);
    path_of("out", out);
    for (uint64_t nth = 1;; nth = next_nth(nth)) {
        /* A read that fails once may be tried another way, and is then compared with its digest. */
        const bool may_retry = kind == K3_FAILING_READ || kind == K3_FAILING_OPEN;
        k3_failing_arm(kind, may_retry ? K3_FAILING_FROM : K3_FAILING_ONCE, nth);
        const enum k3_code code = run(folder);
        const bool was_hit = k3_failing_disarm();
        k3_temp_folder_remove(out);
        if (!was_hit) {
            ck_assert_int_eq(code, K3_OK);
            break;
        }
        ck_assert_msg(kind != K3_FAILING_ALLOC || code == K3_ERR_NO_MEMORY || code == K3_OK,
                      "allocation %d: %s", (int)nth, k3_code_name(code));
        /* Verify opens data files once more to read past the page cache, and can do without. */
        const bool is_optional =
            kind == K3_FAILING_ALLOC || (kind == K3_FAILING_OPEN && run == verify && nth > 3);
        ck_assert_msg(is_optional || code != K3_OK, "call %d went unnoticed", (int)nth);
    }
}
END_TEST

Suite *k3_suite(void)
{
    Suite *suite = suite_create("failing");
    TCase *packing = tcase_create("pack");
    tcase_add_checked_fixture(packing, setup, teardown);
    tcase_add_loop_test(packing, test_pack, 0, (int)(sizeof rows / sizeof rows[0]));
    suite_add_tcase(suite, packing);
    TCase *reading = tcase_create("verify, list, export");
    tcase_add_checked_fixture(reading, setup, teardown);
    tcase_add_loop_test(reading, test_readers, 0, (int)(READERS * KINDS));
    suite_add_tcase(suite, reading);
    return suite;
}
