/* SPDX-License-Identifier: Apache-2.0 */
#include "format/tool/args.h"
#include "tests/support/suite_main.h"

#include <stdbool.h>
#include <string.h>

START_TEST(test_u64)
{
    static const struct {
        const char *text;
        bool is_good;
    } rows[] = {{"1", true},
                {"100", true},
                {"0", false},
                {"101", false},
                {"", false},
                {"+1", false},
                {"-1", false},
                {" 1", false},
                {"1 ", false},
                {"1e1", false},
                {"0x1", false},
                {"1.0", false},
                {"18446744073709551617", false}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct k3_error err;
        uint64_t value = 55;
        const enum k3_code code = k3_arg_u64("--threads", rows[i].text, 1, 100, &value, &err);
        ck_assert_msg((code == K3_OK) == rows[i].is_good, "'%s'", rows[i].text);
        if (code != K3_OK) {
            ck_assert_int_eq(code, K3_ERR_USAGE);
            ck_assert_uint_eq(value, 55);
            ck_assert_ptr_nonnull(strstr(err.message, "--threads"));
        }
    }
}
END_TEST

START_TEST(test_f64)
{
    static const struct {
        const char *text;
        bool is_good;
    } rows[] = {{"0.7", true},  {"-1", true},   {"1e-5", true}, {"2", true},      {".5", true},
                {"nan", false}, {"inf", false}, {"0x1", false}, {"1e999", false}, {"", false},
                {" 1", false},  {"1 ", false},  {"2.1", false}, {"-1.5", false},  {"--1", false},
                {"1e", false},  {".", false}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct k3_error err;
        double value = 0;
        const enum k3_code code = k3_arg_f64("--temperature", rows[i].text, -1, 2, &value, &err);
        ck_assert_msg((code == K3_OK) == rows[i].is_good, "'%s'", rows[i].text);
    }
}
END_TEST

START_TEST(test_range)
{
    struct k3_error err;
    uint64_t first = 0, last = 0;
    ck_assert_ok(k3_arg_range("--layers", "3-9", 0, 92, &first, &last, &err));
    ck_assert_uint_eq(first, 3);
    ck_assert_uint_eq(last, 9);
    ck_assert_ok(k3_arg_range("--layers", "92", 0, 92, &first, &last, &err));
    ck_assert_uint_eq(first, 92);
    ck_assert_uint_eq(last, 92);
    static const char *const bad[] = {"", "-", "3-", "-9", "9-3", "3-93", "a-b", "3-9-12", "3 - 9"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        ck_assert_msg(k3_arg_range("--layers", bad[i], 0, 92, &first, &last, &err) == K3_ERR_USAGE,
                      "'%s'", bad[i]);
    }
}
END_TEST

START_TEST(test_size)
{
    struct k3_error err;
    uint64_t bytes = 0;
    ck_assert_ok(k3_arg_size("--ram", "2GiB", 1, UINT64_MAX, &bytes, &err));
    ck_assert_uint_eq(bytes, UINT64_C(2) << 30);
    ck_assert_int_eq(k3_arg_size("--ram", "1MiB", 1 << 21, 1 << 30, &bytes, &err), K3_ERR_USAGE);
    ck_assert_ptr_nonnull(strstr(err.message, "--ram"));
    ck_assert_int_eq(k3_arg_size("--ram", "lots", 0, 1, &bytes, &err), K3_ERR_USAGE);
    ck_assert_ptr_nonnull(strstr(err.message, "--ram"));
}
END_TEST

static const struct option options[] = {
    {"json", no_argument, NULL, 'j'}, {"size", required_argument, NULL, 's'}, {NULL, 0, NULL, 0}};

static int first_option(char *word, char *value, struct k3_error *err)
{
    char name[] = "k3test";
    char *argv[] = {name, word, value, NULL};
    const struct k3_args args = {value ? 3 : 2, argv, "js:", options};
    k3_args_begin();
    return k3_args_next(&args, err);
}

START_TEST(test_options)
{
    struct k3_error err;
    char json[] = "--json", size[] = "--size", value[] = "5", j[] = "-j", s[] = "-s";
    ck_assert_int_eq(first_option(json, NULL, &err), 'j');
    ck_assert_int_eq(first_option(j, NULL, &err), 'j');
    ck_assert_int_eq(first_option(size, value, &err), 's');
    ck_assert_str_eq(optarg, "5");
    ck_assert_int_eq(first_option(s, value, &err), 's');
    ck_assert_int_eq(first_option(value, NULL, &err), K3_ARGS_END);
}
END_TEST

START_TEST(test_bad_options)
{
    static const struct {
        const char *word, *says;
    } rows[] = {{"--bogus", "unknown or ambiguous option '--bogus'"},
                {"--json=yes", "takes no value"},
                {"--size", "option '--size' needs a value"},
                {"-x", "unknown option '-x'"},
                {"-s", "option '-s' needs a value"}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct k3_error err = {0};
        char word[32];
        strcpy(word, rows[i].word);
        ck_assert_int_eq(first_option(word, NULL, &err), K3_ARGS_BAD);
        ck_assert_int_eq(err.code, K3_ERR_USAGE);
        ck_assert_msg(strstr(err.message, rows[i].says) != NULL, "%s: %s", word, err.message);
    }
}
END_TEST

Suite *k3_suite(void)
{
    Suite *suite = suite_create("args");
    TCase *values = tcase_create("values");
    tcase_add_test(values, test_u64);
    tcase_add_test(values, test_f64);
    tcase_add_test(values, test_range);
    tcase_add_test(values, test_size);
    suite_add_tcase(suite, values);
    TCase *words = tcase_create("options");
    tcase_add_test(words, test_options);
    tcase_add_test(words, test_bad_options);
    suite_add_tcase(suite, words);
    return suite;
}
