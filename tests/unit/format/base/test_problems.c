/* SPDX-License-Identifier: Apache-2.0 */
#include "format/base/problems.h"

#include <string.h>

#include "tests/support/failing.h"
#include "tests/support/suite_main.h"

START_TEST(none_is_ok)
{
    struct k3_error err = {0};
    struct k3_problems problems = {0};
    ck_assert_ok(k3_problems_result(&problems, "thing", &err));
    k3_problems_done(&problems);
}
END_TEST

START_TEST(first_gives_the_code)
{
    struct k3_error err = {0};
    struct k3_problems problems = {0};
    k3_problems_add(&problems, K3_ERR_NO_INPUT, "'%s' is missing", "a");
    ck_assert_code(k3_problems_result(&problems, "thing", &err), K3_ERR_NO_INPUT);
    ck_assert_str_eq(err.message, "thing: 'a' is missing");
    const struct k3_error other = {.code = K3_ERR_MALFORMED, .message = "b is short"};
    k3_problems_add_error(&problems, &other);
    ck_assert_code(k3_problems_result(&problems, "thing", &err), K3_ERR_NO_INPUT);
    ck_assert_uint_eq(problems.total, 2);
    ck_assert_str_eq(problems.lines[1], "b is short");
    ck_assert_ptr_nonnull(strstr(err.message, "2 problems"));
    k3_problems_done(&problems);
    ck_assert_uint_eq(problems.total, 0);
    ck_assert_int_eq(problems.code, K3_OK);
}
END_TEST

START_TEST(lines_are_bounded)
{
    struct k3_problems problems = {0};
    for (int i = 0; i < K3_PROBLEMS_LINES_MAX + 5; i++) {
        k3_problems_add(&problems, K3_ERR_MALFORMED, "line %d", i);
    }
    ck_assert_uint_eq(problems.line_count, K3_PROBLEMS_LINES_MAX);
    ck_assert_uint_eq(problems.total, K3_PROBLEMS_LINES_MAX + 5);
    ck_assert_str_eq(problems.lines[K3_PROBLEMS_LINES_MAX - 1], "line 999");
    k3_problems_done(&problems);
}
END_TEST

START_TEST(control_characters_are_hidden)
{
    struct k3_problems problems = {0};
    k3_problems_add(&problems, K3_ERR_MALFORMED, "'%s'", "a\x1b[31m\n\x7f\xc3\xa9");
    ck_assert_str_eq(problems.lines[0], "'a?[31m??\xc3\xa9'");
    k3_problems_done(&problems);
}
END_TEST

START_TEST(long_lines_are_cut)
{
    static char text[100000];
    memset(text, 'x', sizeof text - 1);
    struct k3_problems problems = {0};
    k3_problems_add(&problems, K3_ERR_MALFORMED, "%s", text);
    ck_assert_uint_lt(strlen(problems.lines[0]), 5000);
    k3_problems_done(&problems);
}
END_TEST

START_TEST(one_kind_is_capped)
{
    struct k3_problems problems = {0};
    struct k3_problem_kind kind = {
        .problems = &problems, .code = K3_ERR_NO_INPUT, .what = "are missing", .lines_max = 3};
    k3_problem_kind_end(&kind);
    ck_assert_uint_eq(problems.total, 0);
    for (int i = 0; i < 3; i++) {
        k3_problem_kind_add(&kind, "%d", i);
    }
    k3_problem_kind_end(&kind);
    ck_assert_uint_eq(problems.total, 3);
    k3_problem_kind_add(&kind, "3");
    k3_problem_kind_add(&kind, "4");
    k3_problem_kind_end(&kind);
    ck_assert_uint_eq(problems.total, 4);
    ck_assert_str_eq(problems.lines[3], "and 2 more are missing");
    ck_assert_int_eq(problems.code, K3_ERR_NO_INPUT);
    k3_problems_done(&problems);
}
END_TEST

START_TEST(lost_lines_show)
{
    for (uint64_t nth = 1;; nth++) {
        struct k3_problems problems = {0};
        k3_failing_arm(K3_FAILING_ALLOC, K3_FAILING_ONCE, nth);
        for (int i = 0; i < 20; i++) {
            k3_problems_add(&problems, K3_ERR_MALFORMED, "line %d", i);
        }
        const bool hit = k3_failing_disarm();
        ck_assert_code(k3_problems_result(&problems, "thing", NULL),
                       hit ? K3_ERR_NO_MEMORY : K3_ERR_MALFORMED);
        ck_assert_uint_eq(problems.total, 20);
        k3_problems_done(&problems);
        if (!hit) {
            ck_assert_uint_gt(nth, 20);
            break;
        }
    }
}
END_TEST

Suite *k3_suite(void)
{
    Suite *suite = suite_create("problems");
    TCase *contract = tcase_create("contract");
    tcase_add_test(contract, none_is_ok);
    tcase_add_test(contract, first_gives_the_code);
    tcase_add_test(contract, control_characters_are_hidden);
    suite_add_tcase(suite, contract);
    TCase *bounds = tcase_create("bounds");
    tcase_add_test(bounds, lines_are_bounded);
    tcase_add_test(bounds, long_lines_are_cut);
    tcase_add_test(bounds, one_kind_is_capped);
    suite_add_tcase(suite, bounds);
    TCase *failing = tcase_create("fail everything once");
    tcase_add_test(failing, lost_lines_show);
    suite_add_tcase(suite, failing);
    return suite;
}
