/* SPDX-License-Identifier: Apache-2.0 */
#include "format/tool/json_out.h"
#include "tests/support/suite_main.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static json_t *parse_and_free(char *text)
{
    json_error_t why;
    json_t *root = json_loads(text, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &why);
    ck_assert_msg(root != NULL, "%s in %s", why.text, text);
    free(text);
    return root;
}

START_TEST(test_everything)
{
    char *text = NULL;
    size_t len = 0;
    struct k3_json_out out = {.stream = open_memstream(&text, &len)};
    struct k3_error err;
    const struct k3_digest digest = k3_digest_of("", 0);
    k3_json_object_begin(&out, NULL);
    k3_json_string(&out, "string", "a\"b\\c\n\x7f\xc3\xa4");
    k3_json_u64(&out, "u64", INT64_MAX);
    k3_json_i64(&out, "i64", -5);
    k3_json_bool(&out, "yes", true);
    k3_json_null(&out, "nothing");
    k3_json_digest(&out, "digest", &digest);
    k3_json_array_begin(&out, "empty");
    k3_json_array_end(&out);
    k3_json_array_begin(&out, "list");
    for (unsigned i = 0; i < 3; i++) {
        k3_json_object_begin(&out, NULL);
        k3_json_u64(&out, "i", i);
        k3_json_object_begin(&out, "deep");
        k3_json_object_end(&out);
        k3_json_object_end(&out);
    }
    k3_json_array_end(&out);
    k3_json_object_end(&out);
    ck_assert_ok(k3_json_out_finish(&out, &err));
    fclose(out.stream);
    json_t *root = parse_and_free(text);
    ck_assert_str_eq(json_string_value(json_object_get(root, "string")), "a\"b\\c\n\x7f\xc3\xa4");
    ck_assert_int_eq(json_integer_value(json_object_get(root, "u64")), INT64_MAX);
    ck_assert_int_eq(json_integer_value(json_object_get(root, "i64")), -5);
    ck_assert(json_is_true(json_object_get(root, "yes")));
    ck_assert(json_is_null(json_object_get(root, "nothing")));
    ck_assert_str_eq(json_string_value(json_object_get(root, "digest")),
                     "99aa06d3014798d86001c324468d497f");
    ck_assert_uint_eq(json_array_size(json_object_get(root, "empty")), 0);
    ck_assert_uint_eq(json_array_size(json_object_get(root, "list")), 3);
    json_decref(root);
}
END_TEST

static const double reals[] = {
    0.0,  -0.0, 1.0,        -5.0, 1e-05, 0.1, 1.0 / 3, 1e22, 1e23, 5e-324, 1.7976931348623157e308,
    25.0, 2.5,  123456789.0};

START_TEST(test_reals)
{
    char *text = NULL;
    size_t len = 0;
    struct k3_json_out out = {.stream = open_memstream(&text, &len)};
    struct k3_error err;
    k3_json_f64(&out, NULL, reals[_i]);
    ck_assert_ok(k3_json_out_finish(&out, &err));
    fclose(out.stream);
    json_t *root = parse_and_free(text);
    ck_assert(json_is_real(root));
    const double back = json_real_value(root);
    ck_assert_int_eq(memcmp(&back, &reals[_i], sizeof back), 0);
    json_decref(root);
}
END_TEST

static const struct {
    const char *bytes, *expected;
} names[] = {
    {"\xff", "\\ufffd"},
    {"a\x80z", "a\\ufffdz"},
    {"\xc0\xaf", "\\ufffd\\ufffd"},            /* overlong */
    {"\xed\xa0\x80", "\\ufffd\\ufffd\\ufffd"}, /* surrogate */
    {"\xf4\x90\x80\x80", "\\ufffd\\ufffd\\ufffd\\ufffd"},
    {"\xf0\x9f\x98\x80", "\xf0\x9f\x98\x80"},
    {"\xe4\xb8", "\\ufffd\\ufffd"}, /* cut */
    {"\x1b[2J", "\\u001b[2J"},
};

START_TEST(test_any_bytes)
{
    char *text = NULL;
    size_t len = 0;
    struct k3_json_out out = {.stream = open_memstream(&text, &len)};
    struct k3_error err;
    k3_json_string(&out, NULL, names[_i].bytes);
    ck_assert_ok(k3_json_out_finish(&out, &err));
    fclose(out.stream);
    char expected[64];
    snprintf(expected, sizeof expected, "\"%s\"\n", names[_i].expected);
    ck_assert_str_eq(text, expected);
    json_decref(parse_and_free(text));
}
END_TEST

START_TEST(test_full_disk)
{
    FILE *full = fopen("/dev/full", "w");
    if (!full) {
        return;
    }
    struct k3_json_out out = {.stream = full};
    struct k3_error err;
    k3_json_u64(&out, NULL, 1);
    ck_assert_code(k3_json_out_finish(&out, &err), K3_ERR_IO);
    fclose(full);
}
END_TEST

Suite *k3_suite(void)
{
    Suite *suite = suite_create("json_out");
    TCase *values = tcase_create("values");
    tcase_add_test(values, test_everything);
    tcase_add_loop_test(values, test_reals, 0, (int)(sizeof reals / sizeof reals[0]));
    tcase_add_loop_test(values, test_any_bytes, 0, (int)(sizeof names / sizeof names[0]));
    tcase_add_test(values, test_full_disk);
    suite_add_tcase(suite, values);
    return suite;
}
