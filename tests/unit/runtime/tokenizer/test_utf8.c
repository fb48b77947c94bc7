/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/tokenizer/utf8.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/suite_main.h"

static bool is_step(struct k3_utf8_step step, enum k3_utf8_kind kind, size_t len,
                    uint32_t code_point)
{
    return step.kind == kind && step.len == len && step.code_point == code_point;
}

/* Asserting each step would take minutes under a sanitizer. */
START_TEST(every_code_point)
{
    for (uint32_t c = 0; c <= 0x10FFFF; c++) {
        if (c >= 0xD800 && c <= 0xDFFF) {
            continue;
        }
        uint8_t bytes[K3_UTF8_CHAR_BYTES_MAX];
        const size_t len = k3_utf8_encode(c, bytes);
        bool is_right = is_step(k3_utf8_decode(bytes, len), K3_UTF8_VALID, len, c);
        for (size_t cut = 1; cut < len; cut++) {
            is_right = is_right && is_step(k3_utf8_decode(bytes, cut), K3_UTF8_INCOMPLETE, cut,
                                           K3_UTF8_REPLACEMENT);
        }
        if (!is_right) {
            ck_abort_msg("U+%04X", c);
        }
    }
}
END_TEST

static const struct {
    const char *bytes;
    enum k3_utf8_kind kind;
    size_t len;
    const char *why;
} cases[] = {
    {"A\x80", K3_UTF8_VALID, 1, "ASCII"},
    {"\x80", K3_UTF8_INVALID, 1, "continuation alone"},
    {"\xBF\xBF", K3_UTF8_INVALID, 1, "one continuation at a time"},
    {"\xC0\x80", K3_UTF8_INVALID, 1, "overlong NUL"},
    {"\xC1\xBF", K3_UTF8_INVALID, 1, "overlong DEL"},
    {"\xC2", K3_UTF8_INCOMPLETE, 1, "two-byte lead at the end"},
    {"\xC2"
     "A",
     K3_UTF8_INVALID, 1, "two-byte lead, then ASCII"},
    {"\xE0\x9F\xBF", K3_UTF8_INVALID, 1, "overlong, three bytes"},
    {"\xE0\xA0", K3_UTF8_INCOMPLETE, 2, "three-byte sequence lacks one"},
    {"\xE2\x82\xC2", K3_UTF8_INVALID, 2, "three-byte sequence broken by a lead"},
    {"\xED\xA0\x80", K3_UTF8_INVALID, 1, "surrogate"},
    {"\xED\x9F\xBF", K3_UTF8_VALID, 3, "last before the surrogates"},
    {"\xEE\x80\x80", K3_UTF8_VALID, 3, "first after the surrogates"},
    {"\xEF\xBF\xBF", K3_UTF8_VALID, 3, "U+FFFF, a noncharacter"},
    {"\xF0\x8F\xBF\xBF", K3_UTF8_INVALID, 1, "overlong, four bytes"},
    {"\xF0\x9F\x98", K3_UTF8_INCOMPLETE, 3, "emoji lacks one"},
    {"\xF0\x9F\x98"
     "A",
     K3_UTF8_INVALID, 3, "emoji broken by ASCII"},
    {"\xF0\x9F\x41", K3_UTF8_INVALID, 2, "emoji broken earlier"},
    {"\xF4\x8F\xBF\xBF", K3_UTF8_VALID, 4, "U+10FFFF"},
    {"\xF4\x90\x80\x80", K3_UTF8_INVALID, 1, "above U+10FFFF"},
    {"\xF5\x80\x80\x80", K3_UTF8_INVALID, 1, "no lead"},
    {"\xFF", K3_UTF8_INVALID, 1, "never in UTF-8"},
};

START_TEST(kinds)
{
    const size_t len = strlen(cases[_i].bytes);
    uint8_t *copy = malloc(len);
    memcpy(copy, cases[_i].bytes, len);
    const struct k3_utf8_step step = k3_utf8_decode(copy, len);
    ck_assert_msg(step.kind == cases[_i].kind && step.len == cases[_i].len, "%s: kind %d, %zu",
                  cases[_i].why, (int)step.kind, step.len);
    if (step.kind != K3_UTF8_VALID) {
        ck_assert_uint_eq(step.code_point, K3_UTF8_REPLACEMENT);
    }
    free(copy);
}
END_TEST

Suite *k3_suite(void)
{
    Suite *suite = suite_create("utf8");
    TCase *decode = tcase_create("decode");
    tcase_add_test(decode, every_code_point);
    tcase_add_loop_test(decode, kinds, 0, sizeof cases / sizeof cases[0]);
    suite_add_tcase(suite, decode);
    return suite;
}
