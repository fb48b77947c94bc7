/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/tokenizer/text_chunk.h"

#include <string.h>

#include "tests/support/suite_main.h"

#define CHARS_MAX 16

static struct k3_text_chunk chunk;
static struct k3_error err;

static void setup(void)
{
    ck_assert_ok(k3_text_chunk_init(&chunk, CHARS_MAX, &err));
}

static void teardown(void)
{
    k3_text_chunk_done(&chunk);
    k3_text_chunk_done(&chunk);
}

static const struct {
    const char *text;
    const char *bytes;
    size_t count;
    const char *why;
} cases[] = {
    {"abc", "abc", 3, "ASCII"},
    {"h\xc3\xa9\xe4\xb8\xad\xf0\x9f\x98\x80", "h\xc3\xa9\xe4\xb8\xad\xf0\x9f\x98\x80", 4,
     "one of each length"},
    {"a\x80z", "a\xef\xbf\xbdz", 3, "a continuation alone"},
    {"\xf0\x9f\x98", "\xef\xbf\xbd", 1, "cut at the end: one replacement"},
    {"\xf0\x9f\x98\xf0\x9f\x98\x80", "\xef\xbf\xbd\xf0\x9f\x98\x80", 2, "cut before a character"},
    {"\xed\xa0\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd", 3, "a surrogate: three"},
    {"\xff\xfe", "\xef\xbf\xbd\xef\xbf\xbd", 2, "never in UTF-8"},
};

START_TEST(makes_utf8)
{
    const size_t len = strlen(cases[_i].text);
    ck_assert_uint_eq(k3_text_chunk_fill(&chunk, (const uint8_t *)cases[_i].text, len), len);
    ck_assert_msg(chunk.count == cases[_i].count, "%s: %zu", cases[_i].why, chunk.count);
    ck_assert_uint_eq(chunk.starts[chunk.count], strlen(cases[_i].bytes));
    ck_assert_mem_eq(chunk.bytes, cases[_i].bytes, chunk.starts[chunk.count]);
}
END_TEST

START_TEST(stops_when_full)
{
    uint8_t text[4 * CHARS_MAX + 2];
    for (size_t i = 0; i < sizeof text; i++) {
        text[i] = (uint8_t) "\xf0\x9f\x98\x80"[i % 4];
    }
    ck_assert_uint_eq(k3_text_chunk_fill(&chunk, text, sizeof text), 4 * CHARS_MAX);
    ck_assert_uint_eq(chunk.count, CHARS_MAX);
    ck_assert_uint_eq(k3_text_chunk_fill(&chunk, text + 4 * CHARS_MAX, 2), 2);
    ck_assert_uint_eq(chunk.count, 1);
    ck_assert_uint_eq(k3_text_chunk_fill(&chunk, text, 0), 0);
    ck_assert_uint_eq(chunk.count, 0);
}
END_TEST

static const struct {
    const char *text;
    size_t run_chars;
    size_t ends[8]; /* 0 ends the list */
    const char *why;
} runs[] = {
    {"abcdefgh", 8, {8}, "exactly the cap"},
    {"abcdefghi", 8, {8, 9}, "one more"},
    {"abcdefgh", 4, {4, 8}, "twice the cap"},
    {"abcdefghij", 4, {4, 8, 10}, "the count starts anew at a cut"},
    {"abc defg h", 4, {10}, "other classes end a run"},
    {"     ", 2, {2, 4, 5}, "white space runs too"},
    {"ab    c", 2, {4, 7}, "a cut inside white space"},
    {"a b c d", 1, {7}, "cap 1 without runs"},
    {"aab", 1, {1, 2, 3}, "cap 1"},
    {"\x1c\x1d  ab", 3, {3, 6}, "U+001C to U+001F are white space for Python"},
    {"\xe4\xb8\xad\xe4\xb8\xad\xe4\xb8\xad", 2, {2, 3}, "characters, not bytes"},
    {"\xe3\x80\x80\xc2\x85\xe2\x80\xa9", 2, {2, 3}, "wide, NEL, paragraph separator"},
    {"a\xe2\x80\x8b"
     "b",
     2,
     {2, 3},
     "zero width space is no white space"},
};

START_TEST(caps_runs)
{
    const char *text = runs[_i].text;
    (void)k3_text_chunk_fill(&chunk, (const uint8_t *)text, strlen(text));
    size_t from = 0;
    for (const size_t *end = runs[_i].ends; *end; end++) {
        const size_t found = k3_text_chunk_run_end(&chunk, from, runs[_i].run_chars);
        ck_assert_msg(found == *end, "%s: from %zu to %zu, not %zu", runs[_i].why, from, found,
                      *end);
        from = found;
    }
    ck_assert_uint_eq(from, chunk.count);
}
END_TEST

Suite *k3_suite(void)
{
    Suite *suite = suite_create("text_chunk");
    TCase *filling = tcase_create("fill");
    tcase_add_checked_fixture(filling, setup, teardown);
    tcase_add_loop_test(filling, makes_utf8, 0, sizeof cases / sizeof cases[0]);
    tcase_add_test(filling, stops_when_full);
    suite_add_tcase(suite, filling);
    TCase *cap = tcase_create("run cap");
    tcase_add_checked_fixture(cap, setup, teardown);
    tcase_add_loop_test(cap, caps_runs, 0, sizeof runs / sizeof runs[0]);
    suite_add_tcase(suite, cap);
    return suite;
}
