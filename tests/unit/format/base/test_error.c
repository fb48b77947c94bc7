/* SPDX-License-Identifier: Apache-2.0 */
#include "format/base/error.h"

#include <errno.h>
#include <string.h>

#include "tests/support/suite_main.h"

START_TEST(fail_fills_everything)
{
    struct k3_error err = {.os_errno = 77};
    ck_assert_code(k3_fail(&err, K3_ERR_DAMAGED, 42, "layer %d", 7), K3_ERR_DAMAGED);
    ck_assert_int_eq(err.code, K3_ERR_DAMAGED);
    ck_assert_int_eq(err.os_errno, 0);
    ck_assert_uint_eq(err.file_offset, 42);
    ck_assert_str_eq(err.message, "layer 7");
}
END_TEST

START_TEST(null_is_fine)
{
    ck_assert_code(k3_fail(NULL, K3_ERR_IO, 0, "%s", "x"), K3_ERR_IO);
    ck_assert_code(k3_fail_errno(NULL, K3_ERR_IO, EIO, 0, "x"), K3_ERR_IO);
    ck_assert_code(k3_fail_errno(NULL, K3_ERR_IO, ENOMEM, 0, "x"), K3_ERR_NO_MEMORY);
    ck_assert_code(k3_fail_no_memory(NULL, "x"), K3_ERR_NO_MEMORY);
    ck_assert_code(k3_error_context(NULL, K3_ERR_IO, "x"), K3_ERR_IO);
}
END_TEST

START_TEST(reason_of_the_system)
{
    struct k3_error err = {0};
    ck_assert_code(k3_fail_errno(&err, K3_ERR_NO_INPUT, ENOENT, 3, "cannot open '%s'", "a"),
                   K3_ERR_NO_INPUT);
    ck_assert_int_eq(err.os_errno, ENOENT);
    ck_assert_uint_eq(err.file_offset, 3);
    ck_assert_ptr_nonnull(strstr(err.message, "cannot open 'a': "));
    ck_assert_ptr_nonnull(strstr(err.message, strerror(ENOENT)));
    ck_assert_code(k3_fail_errno(&err, K3_ERR_IO, ENOMEM, 3, "x"), K3_ERR_NO_MEMORY);
    ck_assert_int_eq(err.code, K3_ERR_NO_MEMORY);
}
END_TEST

START_TEST(context_goes_in_front)
{
    struct k3_error err = {0};
    (void)k3_fail(&err, K3_ERR_MALFORMED, 9, "bad magic");
    ck_assert_code(k3_error_context(&err, err.code, "'%s'", "k3.index"), K3_ERR_MALFORMED);
    ck_assert_str_eq(err.message, "'k3.index': bad magic");
    ck_assert_uint_eq(err.file_offset, 9);
}
END_TEST

START_TEST(long_messages_are_cut)
{
    struct k3_error err = {0};
    char text[2 * sizeof err.message];
    memset(text, 'x', sizeof text);
    text[sizeof text - 1] = 0;
    (void)k3_fail(&err, K3_ERR_IO, 0, "%s", text);
    ck_assert_uint_eq(strlen(err.message), sizeof err.message - 1);
    (void)k3_fail_errno(&err, K3_ERR_IO, EIO, 0, "%s", text);
    ck_assert_uint_eq(strlen(err.message), sizeof err.message - 1);
    (void)k3_error_context(&err, K3_ERR_IO, "%s", text);
    ck_assert_uint_eq(strlen(err.message), sizeof err.message - 1);
}
END_TEST

START_TEST(codes_have_names)
{
    for (int code = K3_OK; code <= K3_ERR_INTERRUPTED; code++) {
        ck_assert_str_ne(k3_code_name((enum k3_code)code), "unknown");
        for (int other = K3_OK; other < code; other++) {
            ck_assert_str_ne(k3_code_name((enum k3_code)code), k3_code_name((enum k3_code)other));
        }
    }
}
END_TEST

Suite *k3_suite(void)
{
    Suite *suite = suite_create("error");
    TCase *contract = tcase_create("contract");
    tcase_add_test(contract, fail_fills_everything);
    tcase_add_test(contract, null_is_fine);
    tcase_add_test(contract, reason_of_the_system);
    tcase_add_test(contract, context_goes_in_front);
    tcase_add_test(contract, long_messages_are_cut);
    tcase_add_test(contract, codes_have_names);
    suite_add_tcase(suite, contract);
    return suite;
}
