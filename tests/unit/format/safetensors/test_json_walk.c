/* SPDX-License-Identifier: Apache-2.0 */
#include "format/safetensors/json_walk.h"

#include <stdlib.h>
#include <string.h>

#include "tests/support/suite_main.h"

static struct k3_error err;

static struct k3_json_walk over(const char *text)
{
    return (struct k3_json_walk){
        .bytes = (const uint8_t *)text, .len = strlen(text), .text_at = 100};
}

START_TEST(walks_and_enters)
{
    struct k3_json_walk walk =
        over(" { \"a\" : [1, 2] , \"in\": {\"x\":\"y\\n\" , \"z\":\"\"}, \"b\":3}  ");
    char text[K3_JSON_WALK_STRING_BYTES];
    uint64_t at = 0;
    bool is_end = true;
    json_t *value = NULL;
    ck_assert_ok(k3_json_walk_enter(&walk, &err));
    ck_assert_ok(k3_json_walk_key(&walk, text, &at, &is_end, &err));
    ck_assert(!is_end);
    ck_assert_str_eq(text, "a");
    ck_assert_uint_eq(at, 103);
    ck_assert_ok(k3_json_walk_value(&walk, 100, &value, &err));
    ck_assert_uint_eq(json_array_size(value), 2);
    json_decref(value);
    ck_assert_ok(k3_json_walk_key(&walk, text, &at, &is_end, &err));
    ck_assert_str_eq(text, "in");
    ck_assert_ok(k3_json_walk_enter(&walk, &err));
    ck_assert_ok(k3_json_walk_key(&walk, text, &at, &is_end, &err));
    ck_assert_str_eq(text, "x");
    ck_assert_ok(k3_json_walk_string(&walk, text, &err));
    ck_assert_str_eq(text, "y\n");
    ck_assert_ok(k3_json_walk_key(&walk, text, &at, &is_end, &err));
    ck_assert_ok(k3_json_walk_string(&walk, text, &err));
    ck_assert_str_eq(text, "");
    ck_assert_ok(k3_json_walk_key(&walk, text, &at, &is_end, &err));
    ck_assert(is_end);
    ck_assert_ok(k3_json_walk_key(&walk, text, &at, &is_end, &err));
    ck_assert(!is_end);
    ck_assert_str_eq(text, "b");
    ck_assert_ok(k3_json_walk_value(&walk, 100, &value, &err));
    json_decref(value);
    ck_assert_ok(k3_json_walk_key(&walk, text, &at, &is_end, &err));
    ck_assert(is_end);
    ck_assert_ok(k3_json_walk_end(&walk, " ", &err));
    ck_assert_code(k3_json_walk_end(&walk, "\n", &err), K3_ERR_MALFORMED);
}
END_TEST

/* Both readers of strings, ours for plain ones and jansson's, stop at the same length. */
START_TEST(strings_are_bounded)
{
    for (size_t len = K3_JSON_WALK_STRING_BYTES - 4; len <= K3_JSON_WALK_STRING_BYTES; len++) {
        char *json = calloc(1, len + 3);
        ck_assert_ptr_nonnull(json);
        memset(json, 'x', len + 2);
        json[0] = json[len + 1] = '"';
        if (_i == 1) {
            memcpy(json + 1, "\\n", 2);
        }
        struct k3_json_walk walk = over(json);
        char text[K3_JSON_WALK_STRING_BYTES];
        const enum k3_code code = k3_json_walk_string(&walk, text, &err);
        ck_assert_int_eq(code, len + 2 <= K3_JSON_WALK_STRING_BYTES ? K3_OK : K3_ERR_MALFORMED);
        ck_assert(code != K3_OK || strlen(text) == len - (_i == 1));
        free(json);
    }
}
END_TEST

START_TEST(values_are_bounded)
{
    const char json[] = "[1,2,3]";
    json_t *value = NULL;
    struct k3_json_walk walk = over(json);
    ck_assert_ok(k3_json_walk_value(&walk, sizeof json - 1, &value, &err));
    json_decref(value);
    walk = over(json);
    ck_assert_code(k3_json_walk_value(&walk, sizeof json - 2, &value, &err), K3_ERR_MALFORMED);
}
END_TEST

START_TEST(wrong_kinds)
{
    char text[K3_JSON_WALK_STRING_BYTES];
    struct k3_json_walk walk = over(" [");
    ck_assert_code(k3_json_walk_enter(&walk, &err), K3_ERR_MALFORMED);
    ck_assert_uint_eq(err.file_offset, 101);
    walk = over(" 12");
    ck_assert_code(k3_json_walk_string(&walk, text, &err), K3_ERR_MALFORMED);
    walk = over("");
    ck_assert_code(k3_json_walk_enter(&walk, &err), K3_ERR_MALFORMED);
    ck_assert_code(k3_json_walk_string(&walk, text, &err), K3_ERR_MALFORMED);
}
END_TEST

Suite *k3_suite(void)
{
    Suite *suite = suite_create("json_walk");
    TCase *contract = tcase_create("contract");
    tcase_add_test(contract, walks_and_enters);
    tcase_add_test(contract, wrong_kinds);
    suite_add_tcase(suite, contract);
    TCase *bounds = tcase_create("bounds");
    tcase_add_loop_test(bounds, strings_are_bounded, 0, 2);
    tcase_add_test(bounds, values_are_bounded);
    suite_add_tcase(suite, bounds);
    return suite;
}
