/* SPDX-License-Identifier: Apache-2.0 */
#include "format/tool/progress.h"
#include "tests/support/suite_main.h"

#include <string.h>

static const struct {
    uint64_t seconds;
    const char *text;
} durations[] = {
    {0, "0 s"},           {59, "59 s"},          {60, "1 min 00 s"},      {700, "11 min 40 s"},
    {3600, "1 h 00 min"}, {11100, "3 h 05 min"}, {172799, "47 h 59 min"}, {187200, "2 d 4 h"},
};

START_TEST(test_duration)
{
    char text[K3_DURATION_TEXT_BYTES];
    k3_duration_format(durations[_i].seconds, text);
    ck_assert_str_eq(text, durations[_i].text);
}
END_TEST

/* Draws to a file; what a test sees is what a log would hold. */
static size_t draw(enum k3_level level, uint64_t shift_ns, char *out_text, size_t len)
{
    FILE *stream = tmpfile();
    struct k3_messages m = {.program = "k3test", .stream = stream, .level = level};
    struct k3_progress_view view;
    k3_progress_view_init(&view, &m);
    ck_assert(!view.is_terminal);
    for (uint64_t done = 0; done <= 1000; done += 10) {
        const struct k3_progress p = {"pack", "shard", done, 1000};
        k3_progress_view_draw(&view, &p);
        view.older.ns -= shift_ns; /* as if time had passed */
        view.drawn_ns -= view.drawn_ns ? shift_ns : 0;
    }
    k3_progress_view_done(&view);
    rewind(stream);
    const size_t got = fread(out_text, 1, len - 1, stream);
    out_text[got] = '\0';
    fclose(stream);
    size_t lines = 0;
    for (const char *p = out_text; *p; p++) {
        lines += *p == '\n';
    }
    return lines;
}

START_TEST(test_a_line_per_five_percent)
{
    char text[8192];
    const size_t lines = draw(K3_LEVEL_NORMAL, UINT64_C(2000000000), text, sizeof text);
    ck_assert_uint_eq(lines, 20);
    ck_assert_ptr_nonnull(strstr(text, "k3test: pack  50.0 %"));
    ck_assert_ptr_nonnull(strstr(text, "k3test: pack 100.0 %"));
    ck_assert_ptr_null(strchr(text, '\r'));
}
END_TEST

START_TEST(test_short_work_is_quiet)
{
    char text[8192];
    ck_assert_uint_eq(draw(K3_LEVEL_NORMAL, 0, text, sizeof text), 0);
}
END_TEST

START_TEST(test_quiet)
{
    char text[8192];
    ck_assert_uint_eq(draw(K3_LEVEL_QUIET, UINT64_C(2000000000), text, sizeof text), 0);
}
END_TEST

START_TEST(test_totals_that_make_no_sense)
{
    FILE *stream = tmpfile();
    struct k3_messages m = {.program = "k3test", .stream = stream, .level = K3_LEVEL_NORMAL};
    struct k3_progress_view view;
    k3_progress_view_init(&view, &m);
    view.is_terminal = true;
    const struct k3_progress rows[] = {
        {"a", NULL, 0, 0}, {"b", NULL, 10, 5}, {"c", "x", UINT64_MAX, UINT64_MAX}};
    for (size_t i = 0; i < 3; i++) {
        k3_progress_view_draw(&view, &rows[i]);
    }
    k3_progress_view_done(&view);
    ck_assert(!m.line_is_open);
    fclose(stream);
}
END_TEST

Suite *k3_suite(void)
{
    Suite *suite = suite_create("progress");
    TCase *texts = tcase_create("texts");
    tcase_add_loop_test(texts, test_duration, 0, (int)(sizeof durations / sizeof durations[0]));
    suite_add_tcase(suite, texts);
    TCase *lines = tcase_create("lines");
    tcase_add_test(lines, test_a_line_per_five_percent);
    tcase_add_test(lines, test_short_work_is_quiet);
    tcase_add_test(lines, test_quiet);
    tcase_add_test(lines, test_totals_that_make_no_sense);
    suite_add_tcase(suite, lines);
    return suite;
}
