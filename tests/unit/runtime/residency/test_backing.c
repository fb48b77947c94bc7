/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/residency/backing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/suite_main.h"
#include "tests/support/temp_folder.h"

#define FILE_BYTES ((size_t)6 << 20)

static struct k3_error err;
static char folder[512], path[600];
static uint8_t *bytes;

static void setup(void)
{
    snprintf(folder, sizeof folder, "%s", k3_temp_folder_make());
    snprintf(path, sizeof path, "%s/file", folder);
    bytes = malloc(FILE_BYTES);
    for (size_t i = 0; i < FILE_BYTES; i++) {
        bytes[i] = (uint8_t)(i * 7 + i / 4096);
    }
    k3_temp_file_write(folder, "file", bytes, FILE_BYTES);
}
static void teardown(void)
{
    free(bytes);
    k3_temp_folder_remove(folder);
}

static const struct {
    enum k3_io_kind kind;
    enum k3_access access;
    uint64_t align;
    bool old_kernel;
} ways[] = {
    {K3_IO_MMAP, K3_ACCESS_SEQUENTIAL, 2 << 20, false},
    {K3_IO_MMAP, K3_ACCESS_RANDOM, 65536, false},
    {K3_IO_MMAP, K3_ACCESS_RANDOM, 2 << 20, true},
    {K3_IO_READ, K3_ACCESS_SEQUENTIAL, 2 << 20, false},
    {K3_IO_DIRECT, K3_ACCESS_RANDOM, 65536, false},
};
#define WAYS ((int)(sizeof ways / sizeof ways[0]))

static struct k3_backing open_way(int i, struct k3_file *file)
{
    struct k3_backing b;
    ck_assert_ok(k3_file_open_read(path, file, &err));
    ck_assert_ok(k3_backing_open(file, ways[i].kind, ways[i].access, ways[i].align, &b, &err));
    atomic_store(&b.cannot_populate, ways[i].old_kernel);
    return b;
}

START_TEST(fetched_bytes_are_the_file_s)
{
    struct k3_file file;
    struct k3_backing b = open_way(_i, &file);
    static const size_t parts[][2] = {
        {0, 4096}, {2 << 20, 2 << 20}, {65536, 1245184}, {4 << 20, 2 << 20}};
    for (int round = 0; round < 3; round++) {
        for (size_t i = 0; i < 4; i++) {
            ck_assert_ok(k3_backing_fetch(&b, parts[i][0], parts[i][1], &err));
            ck_assert(memcmp(b.base + parts[i][0], bytes + parts[i][0], parts[i][1]) == 0);
        }
        k3_backing_drop(&b, 2 << 20, 4 << 20);
        k3_backing_drop(&b, 0, 2 << 20);
    }
    k3_backing_close(&b);
    k3_file_close(&file);
}
END_TEST

START_TEST(file_that_shrank)
{
    struct k3_file file;
    struct k3_backing b = open_way(_i, &file);
    ck_assert_int_eq(truncate(path, 12288), 0);
    ck_assert_code(k3_backing_fetch(&b, 0, 2 << 20, &err), K3_ERR_IO);
    ck_assert_uint_eq(err.file_offset, 12288);
    ck_assert_msg(strstr(err.message, "shrank") != NULL, "%s", err.message);
    ck_assert_ok(k3_backing_fetch(&b, 0, 12288, &err));
    k3_backing_close(&b);
    k3_file_close(&file);
}
END_TEST

Suite *k3_suite(void)
{
    Suite *suite = suite_create("backing");
    TCase *contract = tcase_create("contract");
    tcase_add_checked_fixture(contract, setup, teardown);
    tcase_add_loop_test(contract, fetched_bytes_are_the_file_s, 0, WAYS);
    tcase_add_loop_test(contract, file_that_shrank, 0, WAYS);
    suite_add_tcase(suite, contract);
    return suite;
}
