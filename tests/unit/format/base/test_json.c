/* SPDX-License-Identifier: Apache-2.0 */
#include "format/base/json.h"

#include <stdbool.h>
#include <string.h>

#include "tests/support/suite_main.h"

#define TEXT(literal) (literal), sizeof(literal) - 1

static const struct {
    const char *text;
    size_t len;
    bool is_good;
    const char *why;
} texts[] = {
    {TEXT("{\"a\":1,\"b\":[true,null,\"x\"]}"), true, "an ordinary object"},
    {TEXT(" [1] \n\t\r"), true, "white space around"},
    {TEXT("7"), true, "any value may be the root"},
    {TEXT("{\"a\":\"\\u00e9\\\\\\\"\\/\"}"), true, "escapes"},
    {TEXT("-9223372036854775808"), true, "the least integer"},
    {TEXT("9223372036854775807"), true, "the largest integer"},
    {TEXT("{\"[[[[\":\"\\\"{{{{\"}"), true, "brackets in strings are no nesting"},
    {TEXT(""), false, "nothing"},
    {TEXT("{"), false, "cut"},
    {TEXT("{\"a\":1}x"), false, "bytes after the value"},
    {TEXT("{\"a\":1}{}"), false, "two values"},
    {TEXT("{\"a\":1,\"a\":2}"), false, "a key twice"},
    {TEXT("{\"a\":1,\"\\u0061\":2}"), false, "a key twice, once escaped"},
    {TEXT("[{\"b\":{\"a\":1,\"a\":1}}]"), false, "a key twice, deep"},
    {TEXT("9223372036854775808"), false, "an integer beyond 64 bits"},
    {TEXT("1e999"), false, "a real beyond a double"},
    {TEXT("NaN"), false, "NaN"},
    {TEXT("[Infinity]"), false, "infinity"},
    {TEXT("-Infinity"), false, "minus infinity"},
    {TEXT("[1,]"), false, "a comma too many"},
    {TEXT("{\"a\":01}"), false, "a leading zero"},
    {TEXT("{'a':1}"), false, "other quotes"},
    {TEXT("[1] // x"), false, "a comment"},
    {TEXT("\"\xff\""), false, "bytes that are not UTF-8"},
    {TEXT("\"\xc0\xaf\""), false, "UTF-8 longer than it need be"},
    {TEXT("\"\\ud800\""), false, "half a surrogate pair"},
    {TEXT("\"a\\u0000b\""), false, "a NUL in a string"},
    {TEXT("[1]\0"), false, "a NUL after the value"},
    {TEXT("\xef\xbb\xbf[1]"), false, "a byte order mark"},
};

START_TEST(accepts_and_refuses)
{
    struct k3_error err = {0};
    json_t *root = NULL;
    const enum k3_code code =
        k3_json_parse((const uint8_t *)texts[_i].text, texts[_i].len, 1000, &root, &err);
    ck_assert_msg(code == (texts[_i].is_good ? K3_OK : K3_ERR_MALFORMED), "%s: %s", texts[_i].why,
                  err.message);
    ck_assert_msg((root != NULL) == texts[_i].is_good, "%s", texts[_i].why);
    json_decref(root);
}
END_TEST

START_TEST(depth_is_bounded)
{
    static const char *const openings[] = {"[", "{\"a\":"};
    static const char *const closings[] = {"]", "}"};
    for (size_t depth = K3_JSON_DEPTH_MAX - 1; depth <= K3_JSON_DEPTH_MAX + 1; depth++) {
        char text[8 * K3_JSON_DEPTH_MAX + 16] = "";
        for (size_t i = 0; i < depth; i++) {
            strcat(text, openings[_i]);
        }
        strcat(text, "1");
        for (size_t i = 0; i < depth; i++) {
            strcat(text, closings[_i]);
        }
        json_t *root = NULL;
        const enum k3_code code =
            k3_json_parse((const uint8_t *)text, strlen(text), sizeof text, &root, NULL);
        ck_assert_int_eq(code, depth <= K3_JSON_DEPTH_MAX ? K3_OK : K3_ERR_MALFORMED);
        json_decref(root);
    }
}
END_TEST

START_TEST(length_is_bounded)
{
    struct k3_error err = {0};
    json_t *root = NULL;
    ck_assert_ok(k3_json_parse((const uint8_t *)"[1]", 3, 3, &root, &err));
    json_decref(root);
    ck_assert_code(k3_json_parse((const uint8_t *)"[1]", 3, 2, &root, &err), K3_ERR_MALFORMED);
}
END_TEST

START_TEST(integers_stay_integers)
{
    struct k3_error err = {0};
    json_t *root = NULL;
    const char text[] = "[3,3.0,3.5,3e0,-5]";
    ck_assert_ok(k3_json_parse((const uint8_t *)text, sizeof text - 1, 100, &root, &err));
    static const bool expected[] = {true, false, false, false, true};
    for (size_t i = 0; i < 5; i++) {
        ck_assert_int_eq(json_is_integer(json_array_get(root, i)), expected[i]);
    }
    json_decref(root);
}
END_TEST

START_TEST(errors_have_a_place)
{
    struct k3_error err = {0};
    json_t *root = NULL;
    const char text[] = "{\"a\": 1, \"b\": x}";
    ck_assert_code(k3_json_parse((const uint8_t *)text, sizeof text - 1, 100, &root, &err),
                   K3_ERR_MALFORMED);
    ck_assert_uint_ge(err.file_offset, 14);
    ck_assert_uint_le(err.file_offset, 16);
}
END_TEST

Suite *k3_suite(void)
{
    Suite *suite = suite_create("json");
    TCase *contract = tcase_create("contract");
    tcase_add_loop_test(contract, accepts_and_refuses, 0, sizeof texts / sizeof texts[0]);
    tcase_add_test(contract, integers_stay_integers);
    tcase_add_test(contract, errors_have_a_place);
    suite_add_tcase(suite, contract);
    TCase *bounds = tcase_create("bounds");
    tcase_add_loop_test(bounds, depth_is_bounded, 0, 2);
    tcase_add_test(bounds, length_is_bounded);
    suite_add_tcase(suite, bounds);
    return suite;
}
