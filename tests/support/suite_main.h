/* SPDX-License-Identifier: Apache-2.0 */
#ifndef K3_TESTS_SUPPORT_SUITE_MAIN_H
#define K3_TESTS_SUPPORT_SUITE_MAIN_H

#include <check.h>

/* Each test program defines this; suite_main.c runs it. */
Suite *k3_suite(void);

/* Fails unless `call` returns K3_OK; prints the error's message. Needs `struct k3_error err`. */
#define ck_assert_ok(call)                                                                         \
    do {                                                                                           \
        const enum k3_code code_ = (call);                                                         \
        ck_assert_msg(code_ == K3_OK, "%s: %s (%s)", #call, k3_code_name(code_), err.message);     \
    } while (0)

/* Fails unless `call` returns `expected`. */
#define ck_assert_code(call, expected)                                                             \
    do {                                                                                           \
        const enum k3_code code_ = (call);                                                         \
        ck_assert_msg(code_ == (expected), "%s: %s, expected %s", #call, k3_code_name(code_),      \
                      k3_code_name(expected));                                                     \
    } while (0)

#endif
