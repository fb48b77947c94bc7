/* SPDX-License-Identifier: Apache-2.0 */
#include "format/vocab/added_tokens.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/suite_main.h"

#define FIRST_ID 1000

static struct k3_added_token slots[K3_VOCAB_ADDED_COUNT];

static enum k3_code parse(const char *config, struct k3_error *err)
{
    return k3_added_tokens_parse((const uint8_t *)config, strlen(config), FIRST_ID, slots, err);
}

START_TEST(names_and_flags)
{
    struct k3_error err = {0};
    ck_assert_ok(parse("{\"bos_token\":\"[BOS]\",\"model_max_length\":"
                       "1000000000000000019884624838656,\"added_tokens_decoder\":{"
                       "\"1255\":{\"content\":\"[PAD]\",\"special\":true,\"lstrip\":false},"
                       "\"1000\":{\"content\":\"[BOS]\",\"special\":true},"
                       "\"1003\":{\"special\":false,\"content\":\"<|open|>\"},"
                       "\"1004\":{\"special\":false,\"content\":\"\\u5f00\\\"\"}}}",
                       &err));
    ck_assert_str_eq(slots[0].spelling, "[BOS]");
    ck_assert(slots[0].is_special);
    ck_assert_str_eq(slots[1].spelling, "<|reserved_token_1001|>");
    ck_assert(slots[1].is_special);
    ck_assert_str_eq(slots[3].spelling, "<|open|>");
    ck_assert(!slots[3].is_special);
    ck_assert_str_eq(slots[4].spelling, "\xe5\xbc\x80\"");
    ck_assert_str_eq(slots[254].spelling, "<|reserved_token_1254|>");
    ck_assert_str_eq(slots[255].spelling, "[PAD]");
}
END_TEST

START_TEST(no_entries)
{
    struct k3_error err = {0};
    ck_assert_ok(parse("{\"added_tokens_decoder\":{}}", &err));
    for (uint32_t i = 0; i < K3_VOCAB_ADDED_COUNT; i++) {
        char spelling[64];
        snprintf(spelling, sizeof spelling, "<|reserved_token_%u|>", FIRST_ID + i);
        ck_assert_str_eq(slots[i].spelling, spelling);
    }
}
END_TEST

#define ENTRY(id, content) "{\"added_tokens_decoder\":{\"" id "\":" content "}}"
#define NAMED(content)     "{\"content\":" content ",\"special\":true}"

static const struct {
    const char *config;
    const char *why;
} bad[] = {
    {"{}", "no added_tokens_decoder"},
    {"[]", "not an object"},
    {"{\"added_tokens_decoder\":[]}", "entries are a list"},
    {"{\"added_tokens_decoder\":null}", "entries are null"},
    {ENTRY("999", NAMED("\"a\"")), "id below the slots"},
    {ENTRY("1256", NAMED("\"a\"")), "id above the slots"},
    {ENTRY("4294968296", NAMED("\"a\"")), "id that wraps at 32 bits"},
    {ENTRY("18446744073709552616", NAMED("\"a\"")), "id that wraps at 64 bits"},
    {ENTRY("01000", NAMED("\"a\"")), "leading zero"},
    {ENTRY("", NAMED("\"a\"")), "empty id"},
    {ENTRY("-1", NAMED("\"a\"")), "negative id"},
    {ENTRY("1000 ", NAMED("\"a\"")), "space in the id"},
    {ENTRY("1e3", NAMED("\"a\"")), "exponent"},
    {ENTRY("1000", "\"a\""), "entry is a string"},
    {ENTRY("1000", "{\"special\":true}"), "no content"},
    {ENTRY("1000", NAMED("\"\"")), "empty content"},
    {ENTRY("1000", NAMED("7")), "content is a number"},
    {ENTRY("1000", "{\"content\":\"a\"}"), "no special"},
    {ENTRY("1000", "{\"content\":\"a\",\"special\":1}"), "special is a number"},
    {"{\"added_tokens_decoder\":{\"1000\":" NAMED("\"a\"") ",\"1001\":" NAMED("\"a\"") "}}",
     "one spelling twice"},
    {ENTRY("1000", NAMED("\"<|reserved_token_1001|>\"")), "the spelling of a slot without a name"},
    {"{\"added_tokens_decoder\":{\"1000\":" NAMED("\"a\"") ",\"1000\":" NAMED("\"b\"") "}}",
     "one id twice"},
    {ENTRY("1000", NAMED("\"\\u0000\"")), "NUL"},
    {ENTRY("1000", NAMED("\"\xff\"")), "not UTF-8"},
    {"", "empty file"},
    {"{\"added_tokens_decoder\":{}} x", "trailing garbage"},
    {"{\"added_tokens_decoder\":{}", "cut"},
};

START_TEST(refuses)
{
    struct k3_error err = {0};
    const enum k3_code code = parse(bad[_i].config, &err);
    ck_assert_msg(code == K3_ERR_MALFORMED, "%s: %s", bad[_i].why, k3_code_name(code));
    ck_assert_ptr_nonnull(strstr(err.message, "tokenizer_config.json"));
    ck_assert_int_eq(parse(bad[_i].config, NULL), code);
}
END_TEST

START_TEST(length_of_a_spelling)
{
    char config[1024];
    char spelling[K3_VOCAB_SPELLING_BYTES_MAX + 2] = {0};
    memset(spelling, 'x', K3_VOCAB_SPELLING_BYTES_MAX + (size_t)_i);
    snprintf(config, sizeof config, ENTRY("1000", NAMED("\"%s\"")), spelling);
    struct k3_error err = {0};
    ck_assert_int_eq(parse(config, &err), _i ? K3_ERR_MALFORMED : K3_OK);
}
END_TEST

Suite *k3_suite(void)
{
    Suite *suite = suite_create("added_tokens");
    TCase *parsing = tcase_create("parse");
    tcase_add_test(parsing, names_and_flags);
    tcase_add_test(parsing, no_entries);
    suite_add_tcase(suite, parsing);
    TCase *damage = tcase_create("damage");
    tcase_add_loop_test(damage, refuses, 0, sizeof bad / sizeof bad[0]);
    tcase_add_loop_test(damage, length_of_a_spelling, 0, 2);
    suite_add_tcase(suite, damage);
    return suite;
}
