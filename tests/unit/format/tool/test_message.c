/* SPDX-License-Identifier: Apache-2.0 */
#include "format/tool/message.h"
#include "tests/support/suite_main.h"

#include <stdlib.h>
#include <string.h>

/* Every kind of line once, at a level. */
static char *say_all(enum k3_level level)
{
    char *text = NULL;
    size_t len = 0;
    struct k3_messages m = {
        .program = "k3test", .stream = open_memstream(&text, &len), .level = level};
    k3_message_error(&m, "bad '%s'", "a\x1b[2J\nb");
    k3_message_warning(&m, "odd");
    k3_message_info(&m, K3_LEVEL_NORMAL, "news");
    k3_message_info(&m, K3_LEVEL_VERBOSE, "detail");
    fclose(m.stream);
    return text;
}

START_TEST(test_levels)
{
    static const char *const expected[] = {
        "k3test: bad 'a?[2J?b'\n",
        "k3test: bad 'a?[2J?b'\nk3test: warning: odd\nk3test: news\n",
        "k3test: bad 'a?[2J?b'\nk3test: warning: odd\nk3test: news\nk3test: detail\n",
    };
    for (unsigned level = 0; level < 3; level++) {
        char *text = say_all((enum k3_level)level);
        ck_assert_str_eq(text, expected[level]);
        free(text);
    }
}
END_TEST

START_TEST(test_problems)
{
    char *text = NULL;
    size_t len = 0;
    struct k3_messages m = {.program = "k3test", .stream = open_memstream(&text, &len)};
    struct k3_problems problems = {0};
    for (unsigned i = 0; i < K3_PROBLEMS_LINES_MAX + 7; i++) {
        k3_problems_add(&problems, K3_ERR_MALFORMED, "problem %u", i);
    }
    k3_message_problems(&m, &problems);
    fclose(m.stream);
    ck_assert_ptr_nonnull(strstr(text, "k3test: problem 999\n"));
    ck_assert_ptr_nonnull(strstr(text, "k3test: and 7 more problems\n"));
    k3_problems_done(&problems);
    free(text);
}
END_TEST

START_TEST(test_wipes_the_progress_line)
{
    char *text = NULL;
    size_t len = 0;
    struct k3_messages m = {
        .program = "k3test", .stream = open_memstream(&text, &len), .line_is_open = true};
    k3_message_error(&m, "x");
    k3_message_error(&m, "y");
    fclose(m.stream);
    ck_assert_str_eq(text, "\r\033[Kk3test: x\nk3test: y\n");
    free(text);
}
END_TEST

Suite *k3_suite(void)
{
    Suite *suite = suite_create("message");
    TCase *lines = tcase_create("lines");
    tcase_add_test(lines, test_levels);
    tcase_add_test(lines, test_problems);
    tcase_add_test(lines, test_wipes_the_progress_line);
    suite_add_tcase(suite, lines);
    return suite;
}
