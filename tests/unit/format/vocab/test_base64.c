/* SPDX-License-Identifier: Apache-2.0 */
#include "format/vocab/base64.h"

#include <stdlib.h>
#include <string.h>

#include "tests/support/suite_main.h"

static const struct {
    const char *text;
    const char *bytes;
    size_t len;
    const char *why;
} good[] = {
    {"", "", 0, "nothing"},
    {"IQ==", "!", 1, "one byte"},
    {"ICA=", "  ", 2, "two bytes"},
    {"YWJj", "abc", 3, "three bytes"},
    {"YWJjZA==", "abcd", 4, "four bytes"},
    {"AAAA", "\0\0\0", 3, "zeros"},
    {"+/+/", "\xfb\xff\xbf", 3, "the last two digits"},
    {"////", "\xff\xff\xff", 3, "all bits"},
};

START_TEST(decodes)
{
    uint8_t bytes[64];
    size_t len = 99;
    size_t bad_at = 99;
    const size_t text_len = strlen(good[_i].text);
    ck_assert_msg(k3_base64_decode((const uint8_t *)good[_i].text, text_len, bytes, &len, &bad_at),
                  "%s", good[_i].why);
    ck_assert_uint_eq(len, good[_i].len);
    ck_assert_uint_le(len, k3_base64_decoded_max(text_len));
    ck_assert_msg(memcmp(bytes, good[_i].bytes, len) == 0, "%s", good[_i].why);
}
END_TEST

static const struct {
    const char *text;
    size_t bad_at;
    const char *why;
} bad[] = {
    {"A", 1, "one digit"},
    {"AA", 2, "padding missing"},
    {"AAA", 3, "padding missing"},
    {"AAAAA", 5, "one digit too many"},
    {"IQ=", 3, "padding short"},
    {"I===", 1, "three pads"},
    {"====", 0, "nothing but padding"},
    {"=", 1, "a lone pad"},
    {"IR==", 1, "unused bits set, one byte"},
    {"ICB=", 2, "unused bits set, two bytes"},
    {"IQ==IQ==", 2, "padding inside"},
    {"I Q=", 1, "white space"},
    {"IQ-_", 2, "the URL alphabet"},
    {"IQ\xc3\xa9", 2, "bytes above 127"},
};

START_TEST(refuses)
{
    const size_t text_len = strlen(bad[_i].text);
    /* Exact sizes, so that a sanitizer sees a byte too far. */
    uint8_t *text = malloc(text_len);
    uint8_t *bytes = malloc(k3_base64_decoded_max(text_len));
    memcpy(text, bad[_i].text, text_len);
    size_t len = 0;
    size_t bad_at = 99;
    ck_assert_msg(!k3_base64_decode(text, text_len, bytes, &len, &bad_at), "%s", bad[_i].why);
    ck_assert_msg(bad_at == bad[_i].bad_at, "%s: at %zu", bad[_i].why, bad_at);
    free(text);
    free(bytes);
}
END_TEST

Suite *k3_suite(void)
{
    Suite *suite = suite_create("base64");
    TCase *round = tcase_create("decode");
    tcase_add_loop_test(round, decodes, 0, sizeof good / sizeof good[0]);
    suite_add_tcase(suite, round);
    TCase *damage = tcase_create("damage");
    tcase_add_loop_test(damage, refuses, 0, sizeof bad / sizeof bad[0]);
    suite_add_tcase(suite, damage);
    return suite;
}
