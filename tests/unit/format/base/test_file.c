/* SPDX-License-Identifier: Apache-2.0 */
#include "format/base/file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/failing.h"
#include "tests/support/suite_main.h"
#include "tests/support/temp_folder.h"

#define CONTENT_BYTES 1000

static const char *folder;
static char *path;
static uint8_t content[CONTENT_BYTES];
static struct k3_error err;

static void set_up(void)
{
    folder = k3_temp_folder_make();
    path = k3_path_join(folder, "file");
    for (size_t i = 0; i < sizeof content; i++) {
        content[i] = (uint8_t)(i * i + i / 7);
    }
}

static void tear_down(void)
{
    free(path);
    k3_temp_folder_remove(folder);
}

static struct k3_file open_content(void)
{
    struct k3_file file = K3_FILE_CLOSED;
    k3_temp_file_write(folder, "file", content, sizeof content);
    ck_assert_ok(k3_file_open_read(path, &file, &err));
    return file;
}

START_TEST(round_trip)
{
    struct k3_file file = K3_FILE_CLOSED;
    ck_assert_ok(k3_file_open_write(path, &file, &err));
    ck_assert_uint_eq(file.file_bytes, 0);
    ck_assert_ok(k3_file_write(&file, 10, content, sizeof content, &err));
    ck_assert_ok(k3_file_sync(&file, &err));
    uint64_t bytes = 0;
    ck_assert_ok(k3_file_size(&file, &bytes, &err));
    ck_assert_uint_eq(bytes, sizeof content + 10);
    uint8_t back[CONTENT_BYTES];
    ck_assert_ok(k3_file_read(&file, 10, back, sizeof back, &err));
    ck_assert_mem_eq(back, content, sizeof back);
    ck_assert_ok(k3_file_truncate(&file, 20, &err));
    ck_assert_ok(k3_file_size(&file, &bytes, &err));
    ck_assert_uint_eq(bytes, 20);
    k3_file_close(&file);
    ck_assert_int_lt(file.fd, 0);
    k3_file_close(&file);
    /* Opening for writing keeps what is there. */
    ck_assert_ok(k3_file_open_write(path, &file, &err));
    ck_assert_uint_eq(file.file_bytes, 20);
    k3_file_close(&file);
}
END_TEST

START_TEST(reading_past_the_end)
{
    struct k3_file file = open_content();
    ck_assert_uint_eq(file.file_bytes, sizeof content);
    uint8_t back[CONTENT_BYTES + 1];
    ck_assert_ok(k3_file_read(&file, sizeof content, back, 0, &err));
    ck_assert_code(k3_file_read(&file, 0, back, sizeof back, &err), K3_ERR_IO);
    ck_assert_uint_eq(err.file_offset, sizeof content);
    ck_assert_ptr_nonnull(strstr(err.message, path));
    ck_assert_code(k3_file_read(&file, 5000, back, 1, &err), K3_ERR_IO);
    ck_assert_uint_eq(err.file_offset, 5000);
    k3_file_close(&file);
}
END_TEST

START_TEST(only_regular_files)
{
    struct k3_file file = K3_FILE_CLOSED;
    ck_assert_code(k3_file_open_read(path, &file, &err), K3_ERR_NO_INPUT);
    ck_assert_int_eq(err.os_errno, ENOENT);
    ck_assert_code(k3_file_open_read(folder, &file, &err), K3_ERR_NO_INPUT);
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    ck_assert_code(k3_file_open_read(path, &file, &err), K3_ERR_NO_INPUT);
    ck_assert_int_lt(file.fd, 0);
    char *nowhere = k3_path_join(folder, "none/file");
    ck_assert_code(k3_file_open_write(nowhere, &file, &err), K3_ERR_CANT_CREATE);
    free(nowhere);
}
END_TEST

START_TEST(zeros)
{
    struct k3_file file = K3_FILE_CLOSED;
    k3_temp_file_write(folder, "file", content, sizeof content);
    ck_assert_ok(k3_file_open_write(path, &file, &err));
    /* With holes, and where the file system refuses to make them. */
    k3_failing_arm(K3_FAILING_WRITE, K3_FAILING_ONCE, _i == 0 ? UINT64_MAX : 1);
    const enum k3_code code = k3_file_zero_range(&file, 100, 300, &err);
    k3_failing_disarm();
    ck_assert_int_eq(code, K3_OK);
    uint8_t back[CONTENT_BYTES];
    ck_assert_ok(k3_file_read(&file, 0, back, sizeof back, &err));
    memset(content + 100, 0, 300);
    ck_assert_mem_eq(back, content, sizeof back);
    ck_assert_ok(k3_file_zero_range(&file, 0, 0, &err));
    k3_file_close(&file);
}
END_TEST

START_TEST(holes_are_not_counted)
{
    struct k3_file file = K3_FILE_CLOSED;
    ck_assert_ok(k3_file_open_write(path, &file, &err));
    ck_assert_ok(k3_file_truncate(&file, 64U << 20, &err));
    uint64_t bytes = 0;
    ck_assert_ok(k3_file_allocated(&file, &bytes, &err));
    ck_assert_uint_lt(bytes, 1U << 20);
    k3_file_close(&file);
}
END_TEST

START_TEST(whole_files)
{
    k3_temp_file_write(folder, "file", content, sizeof content);
    uint8_t *bytes = NULL;
    size_t len = 0;
    ck_assert_ok(k3_file_read_all(path, sizeof content, &bytes, &len, &err));
    ck_assert_uint_eq(len, sizeof content);
    ck_assert_mem_eq(bytes, content, len);
    ck_assert_uint_eq(bytes[len], 0);
    free(bytes);
    bytes = NULL;
    ck_assert_code(k3_file_read_all(path, sizeof content - 1, &bytes, &len, &err),
                   K3_ERR_MALFORMED);
    ck_assert_ptr_null(bytes);
    k3_temp_file_write(folder, "file", "", 0);
    ck_assert_ok(k3_file_read_all(path, 0, &bytes, &len, &err));
    ck_assert_uint_eq(len, 0);
    free(bytes);
}
END_TEST

START_TEST(publishing)
{
    char *final = k3_path_join(folder, "final");
    k3_temp_file_write(folder, "file", "new", 3);
    k3_temp_file_write(folder, "final", "old", 3);
    ck_assert_ok(k3_file_publish(folder, path, final, &err));
    ck_assert(!k3_path_exists(path));
    uint8_t *bytes = NULL;
    size_t len = 0;
    ck_assert_ok(k3_file_read_all(final, 10, &bytes, &len, &err));
    ck_assert_str_eq((const char *)bytes, "new");
    free(bytes);
    ck_assert_code(k3_file_publish(folder, path, final, &err), K3_ERR_CANT_CREATE);
    k3_temp_file_write(folder, "file", "x", 1);
    k3_failing_arm(K3_FAILING_RENAME, K3_FAILING_ONCE, 1);
    const enum k3_code code = k3_file_publish(folder, path, final, &err);
    ck_assert(k3_failing_disarm());
    ck_assert_int_eq(code, K3_ERR_CANT_CREATE);
    k3_failing_arm(K3_FAILING_SYNC, K3_FAILING_ONCE, 1);
    const enum k3_code unsynced = k3_file_publish(folder, path, final, &err);
    ck_assert(k3_failing_disarm());
    ck_assert_int_eq(unsynced, K3_ERR_IO);
    free(final);
}
END_TEST

START_TEST(folders)
{
    char *inner = k3_path_join(folder, "inner");
    ck_assert(!k3_path_exists(inner));
    ck_assert_ok(k3_folder_make(inner, &err));
    ck_assert_ok(k3_folder_make(inner, &err));
    ck_assert(k3_path_exists(inner));
    ck_assert_ok(k3_folder_sync(inner, &err));
    k3_temp_file_write(folder, "file", "x", 1);
    ck_assert_code(k3_folder_make(path, &err), K3_ERR_CANT_CREATE);
    ck_assert_code(k3_folder_sync(path, &err), K3_ERR_IO);
    free(inner);
}
END_TEST

START_TEST(joining)
{
    char *plain = k3_path_join("a/b", "c");
    char *slash = k3_path_join("a/b/", "c");
    char *empty = k3_path_join("", "c");
    ck_assert_str_eq(plain, "a/b/c");
    ck_assert_str_eq(slash, "a/b/c");
    ck_assert_str_eq(empty, "/c");
    free(plain);
    free(slash);
    free(empty);
}
END_TEST

static const enum k3_failing_mode disturbances[] = {K3_FAILING_SHORT, K3_FAILING_EINTR};

START_TEST(short_and_interrupted_reads)
{
    struct k3_file file = open_content();
    uint8_t back[CONTENT_BYTES] = {0};
    k3_failing_arm(K3_FAILING_READ, disturbances[_i], 1);
    const enum k3_code code = k3_file_read(&file, 0, back, sizeof back, &err);
    ck_assert(k3_failing_disarm());
    ck_assert_int_eq(code, K3_OK);
    ck_assert_mem_eq(back, content, sizeof back);
    ck_assert_uint_gt(k3_failing_calls(K3_FAILING_READ), 1);
    k3_file_close(&file);
}
END_TEST

START_TEST(short_and_interrupted_writes)
{
    struct k3_file file = K3_FILE_CLOSED;
    ck_assert_ok(k3_file_open_write(path, &file, &err));
    k3_failing_arm(K3_FAILING_WRITE, disturbances[_i], 1);
    const enum k3_code code = k3_file_write(&file, 0, content, sizeof content, &err);
    ck_assert(k3_failing_disarm());
    ck_assert_int_eq(code, K3_OK);
    ck_assert_uint_gt(k3_failing_calls(K3_FAILING_WRITE), 1);
    uint8_t back[CONTENT_BYTES];
    ck_assert_ok(k3_file_read(&file, 0, back, sizeof back, &err));
    ck_assert_mem_eq(back, content, sizeof back);
    k3_file_close(&file);
}
END_TEST

START_TEST(interrupted_syncs)
{
    struct k3_file file = K3_FILE_CLOSED;
    ck_assert_ok(k3_file_open_write(path, &file, &err));
    k3_failing_arm(K3_FAILING_SYNC, K3_FAILING_EINTR, 1);
    const enum k3_code synced = k3_file_sync(&file, &err);
    k3_failing_arm(K3_FAILING_TRUNCATE, K3_FAILING_EINTR, 1);
    const enum k3_code truncated = k3_file_truncate(&file, 5, &err);
    k3_failing_disarm();
    ck_assert_int_eq(synced, K3_OK);
    ck_assert_int_eq(truncated, K3_OK);
    k3_file_close(&file);
}
END_TEST

START_TEST(every_call_fails_once)
{
    struct k3_file file = K3_FILE_CLOSED;
    k3_temp_file_write(folder, "file", content, sizeof content);
    ck_assert_ok(k3_file_open_write(path, &file, &err));
    uint8_t back[1];
    k3_failing_arm(K3_FAILING_READ, K3_FAILING_ONCE, 1);
    const enum k3_code read = k3_file_read(&file, 7, back, 1, &err);
    const struct k3_error read_err = err;
    k3_failing_arm(K3_FAILING_WRITE, K3_FAILING_ONCE, 1);
    const enum k3_code written = k3_file_write(&file, 8, back, 1, &err);
    const struct k3_error write_err = err;
    k3_failing_arm(K3_FAILING_WRITE, K3_FAILING_FROM, 1);
    const enum k3_code zeroed = k3_file_zero_range(&file, 0, 1, &err);
    k3_failing_arm(K3_FAILING_SYNC, K3_FAILING_ONCE, 1);
    const enum k3_code synced = k3_file_sync(&file, &err);
    k3_failing_arm(K3_FAILING_TRUNCATE, K3_FAILING_ONCE, 1);
    const enum k3_code truncated = k3_file_truncate(&file, 5, &err);
    k3_failing_disarm();
    ck_assert_int_eq(read, K3_ERR_IO);
    ck_assert_int_eq(read_err.os_errno, EIO);
    ck_assert_uint_eq(read_err.file_offset, 7);
    ck_assert_int_eq(written, K3_ERR_IO);
    ck_assert_int_eq(write_err.os_errno, ENOSPC);
    ck_assert_uint_eq(write_err.file_offset, 8);
    ck_assert_int_eq(zeroed, K3_ERR_IO);
    ck_assert_int_eq(synced, K3_ERR_IO);
    ck_assert_int_eq(truncated, K3_ERR_IO);
    k3_file_close(&file);
}
END_TEST

START_TEST(opening_fails_once)
{
    static const enum k3_failing_kind kinds[] = {K3_FAILING_OPEN, K3_FAILING_ALLOC,
                                                 K3_FAILING_READ};
    k3_temp_file_write(folder, "file", content, sizeof content);
    uint64_t hits = 0;
    for (uint64_t nth = 1;; nth++) {
        uint8_t *bytes = NULL;
        size_t len = 0;
        k3_failing_arm(kinds[_i], K3_FAILING_ONCE, nth);
        const enum k3_code code = k3_file_read_all(path, 5000, &bytes, &len, &err);
        const bool hit = k3_failing_disarm();
        free(bytes);
        ck_assert_int_eq(code != K3_OK, hit);
        if (!hit) {
            break;
        }
        hits++;
    }
    ck_assert_uint_gt(hits, 0);
}
END_TEST

Suite *k3_suite(void)
{
    Suite *suite = suite_create("file");
    TCase *contract = tcase_create("contract");
    tcase_add_checked_fixture(contract, set_up, tear_down);
    tcase_add_test(contract, round_trip);
    tcase_add_test(contract, reading_past_the_end);
    tcase_add_test(contract, only_regular_files);
    tcase_add_loop_test(contract, zeros, 0, 2);
    tcase_add_test(contract, holes_are_not_counted);
    tcase_add_test(contract, whole_files);
    tcase_add_test(contract, publishing);
    tcase_add_test(contract, folders);
    tcase_add_test(contract, joining);
    suite_add_tcase(suite, contract);
    TCase *failing = tcase_create("fail everything once");
    tcase_add_checked_fixture(failing, set_up, tear_down);
    tcase_add_loop_test(failing, short_and_interrupted_reads, 0, 2);
    tcase_add_loop_test(failing, short_and_interrupted_writes, 0, 2);
    tcase_add_test(failing, interrupted_syncs);
    tcase_add_test(failing, every_call_fails_once);
    tcase_add_loop_test(failing, opening_fails_once, 0, 3);
    suite_add_tcase(suite, failing);
    return suite;
}
