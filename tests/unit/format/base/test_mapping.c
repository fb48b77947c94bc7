/* SPDX-License-Identifier: Apache-2.0 */
#include "format/base/mapping.h"

#include <stdlib.h>
#include <string.h>

#include "tests/support/failing.h"
#include "tests/support/suite_main.h"
#include "tests/support/temp_folder.h"

static const char *folder;
static char *path;

static void set_up(void)
{
    folder = k3_temp_folder_make();
    path = k3_path_join(folder, "file");
}

static void tear_down(void)
{
    free(path);
    k3_temp_folder_remove(folder);
}

START_TEST(bytes_outlive_the_file)
{
    struct k3_error err = {0};
    struct k3_file file = K3_FILE_CLOSED;
    struct k3_mapping mapping = {0};
    k3_temp_file_write(folder, "file", "hello", 5);
    ck_assert_ok(k3_file_open_read(path, &file, &err));
    ck_assert_ok(k3_mapping_map(&file, &mapping, &err));
    k3_file_close(&file);
    ck_assert_uint_eq(mapping.len, 5);
    ck_assert_mem_eq(mapping.bytes, "hello", 5);
    k3_mapping_unmap(&mapping);
    ck_assert_ptr_null(mapping.bytes);
    k3_mapping_unmap(&mapping);
}
END_TEST

START_TEST(empty_is_refused)
{
    struct k3_error err = {0};
    struct k3_file file = K3_FILE_CLOSED;
    struct k3_mapping mapping = {0};
    k3_temp_file_write(folder, "file", "", 0);
    ck_assert_ok(k3_file_open_read(path, &file, &err));
    ck_assert_code(k3_mapping_map(&file, &mapping, &err), K3_ERR_MALFORMED);
    ck_assert_ptr_null(mapping.bytes);
    k3_file_close(&file);
}
END_TEST

START_TEST(no_address_space)
{
    struct k3_error err = {0};
    struct k3_file file = K3_FILE_CLOSED;
    struct k3_mapping mapping = {0};
    k3_temp_file_write(folder, "file", "hello", 5);
    ck_assert_ok(k3_file_open_read(path, &file, &err));
    k3_failing_arm(K3_FAILING_MAP, K3_FAILING_ONCE, 1);
    const enum k3_code code = k3_mapping_map(&file, &mapping, &err);
    ck_assert(k3_failing_disarm());
    ck_assert_int_eq(code, K3_ERR_NO_MEMORY);
    ck_assert_ptr_null(mapping.bytes);
    k3_file_close(&file);
}
END_TEST

Suite *k3_suite(void)
{
    Suite *suite = suite_create("mapping");
    TCase *contract = tcase_create("contract");
    tcase_add_checked_fixture(contract, set_up, tear_down);
    tcase_add_test(contract, bytes_outlive_the_file);
    tcase_add_test(contract, empty_is_refused);
    tcase_add_test(contract, no_address_space);
    suite_add_tcase(suite, contract);
    return suite;
}
