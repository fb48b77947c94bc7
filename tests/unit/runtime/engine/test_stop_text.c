/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/engine/stop_text.h"

#include <string.h>

#include "tests/support/suite_main.h"

static struct k3_error err;

static const struct {
    const char *why;
    const char *stops[3];
    const char *text;
    const char *shown;
    bool stopped;
} cases[] = {
    {"no stop strings", {NULL}, "hello world", "hello world", false},
    {"none occurs", {"xyz"}, "hello world", "hello world", false},
    {"in the middle", {"lo w"}, "hello world", "hel", true},
    {"at the start", {"he"}, "hello", "", true},
    {"at the end", {"ld"}, "hello world", "hello wor", true},
    {"a prefix at the end is shown after all", {"ldx"}, "hello world", "hello world", false},
    {"overlapping beginnings", {"aab"}, "aaaab!", "aa", true},
    {"earliest start wins", {"cd", "bcde"}, "abcdef", "a", true},
    {"a longer candidate fails, a shorter one inside holds", {"abcx", "bc"}, "abcd", "a", true},
    {"both start together: the shorter is complete first", {"abc", "ab"}, "xxabc", "xx", true},
    {"bytes beyond ASCII", {"\xc3\xa9"}, "caf\xc3\xa9s", "caf", true},
    {"the text ends before the longer one is decided", {"abcX", "bc"}, "abc", "a", true},
    {"same string twice", {"x", "x"}, "axb", "a", true},
};

/* The result must not depend on how the text arrives. */
START_TEST(shown_up_to_the_stop)
{
    size_t count = 0;
    while (count < 3 && cases[_i].stops[count]) {
        count++;
    }
    for (size_t piece = 1; piece <= strlen(cases[_i].text); piece++) {
        struct k3_stop_text stop;
        ck_assert_ok(k3_stop_text_init(cases[_i].stops, count, &stop, &err));
        char shown[64] = "";
        bool stopped = false;
        const uint8_t *bytes = NULL;
        size_t len = 0;
        const char *text = cases[_i].text;
        for (size_t at = 0; at < strlen(text) && !stopped; at += piece) {
            const size_t n = strlen(text) - at < piece ? strlen(text) - at : piece;
            ck_assert_ok(k3_stop_text_feed(&stop, (const uint8_t *)text + at, n, &bytes, &len,
                                           &stopped, &err));
            strncat(shown, (const char *)bytes, len);
        }
        if (!stopped) {
            k3_stop_text_finish(&stop, &bytes, &len, &stopped);
            strncat(shown, (const char *)bytes, len);
        }
        ck_assert_msg(stopped == cases[_i].stopped && strcmp(shown, cases[_i].shown) == 0,
                      "%s, pieces of %zu: shown '%s', stopped %d", cases[_i].why, piece, shown,
                      stopped);
        k3_stop_text_done(&stop);
    }
}
END_TEST

Suite *k3_suite(void)
{
    Suite *suite = suite_create("stop text");
    TCase *contract = tcase_create("contract");
    tcase_add_loop_test(contract, shown_up_to_the_stop, 0, (int)(sizeof cases / sizeof cases[0]));
    suite_add_tcase(suite, contract);
    return suite;
}
