/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/cli/npy_writer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/suite_main.h"
#include "tests/support/temp_folder.h"

static struct k3_error err;

START_TEST(header_and_rows)
{
    char folder[512];
    snprintf(folder, sizeof folder, "%s", k3_temp_folder_make());
    char *path = k3_path_join(folder, "rows.npy");
    k3_temp_file_write(folder, "rows.npy", "an older and much longer file", 29);
    struct k3_npy_writer writer;
    ck_assert_ok(k3_npy_open(path, 3, &writer, &err));
    const float rows[2][3] = {{1, 2, 3}, {4, 5, -6}};
    ck_assert_ok(k3_npy_append(&writer, rows[0], &err));
    ck_assert_ok(k3_npy_append(&writer, rows[1], &err));
    ck_assert_ok(k3_npy_close(&writer, &err));
    uint8_t *bytes = NULL;
    size_t len = 0;
    ck_assert_ok(k3_file_read_all(path, 4096, &bytes, &len, &err));
    ck_assert_uint_eq(len, 128 + sizeof rows);
    ck_assert_mem_eq(bytes,
                     "\x93NUMPY\x01\x00\x76\x00{'descr': '<f4', 'fortran_order': False, "
                     "'shape': (2, 3), }",
                     69);
    ck_assert_int_eq(bytes[127], '\n');
    ck_assert_mem_eq(bytes + 128, rows, sizeof rows);
    free(bytes);
    free(path);
    k3_temp_folder_remove(folder);
}
END_TEST

Suite *k3_suite(void)
{
    Suite *suite = suite_create("npy writer");
    TCase *contract = tcase_create("contract");
    tcase_add_test(contract, header_and_rows);
    suite_add_tcase(suite, contract);
    return suite;
}
