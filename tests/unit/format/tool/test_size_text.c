/* SPDX-License-Identifier: Apache-2.0 */
#include "format/tool/size_text.h"
#include "tests/support/suite_main.h"

static const struct {
    const char *text;
    uint64_t bytes;
} good[] = {
    {"0", 0},
    {"4096", 4096},
    {"17B", 17},
    {"17 B", 17},
    {"12GiB", UINT64_C(12) << 30},
    {"12 GiB", UINT64_C(12) << 30},
    {"512M", UINT64_C(512) << 20},
    {"3K", 3072},
    {"2T", UINT64_C(2) << 40},
    {"8GB", UINT64_C(8000000000)},
    {"8kB", 8000},
    {"8KB", 8000},
    {"1TB", UINT64_C(1000000000000)},
    {"1.5GiB", UINT64_C(3) << 29},
    {"0.25 KiB", 256},
    {"0.000001B", 0},
    {"18446744073709551615", UINT64_MAX},
    {"16777215TiB", UINT64_C(16777215) << 40},
};

START_TEST(test_parse)
{
    struct k3_error err;
    uint64_t bytes = 1;
    ck_assert_ok(k3_size_parse(good[_i].text, &bytes, &err));
    ck_assert_msg(bytes == good[_i].bytes, "%s", good[_i].text);
}
END_TEST

static const char *const bad[] = {"",
                                  " ",
                                  "GiB",
                                  "-1",
                                  "+1",
                                  "1e3",
                                  "1,5GiB",
                                  "1.",
                                  ".5GiB",
                                  "12gib",
                                  "12 ",
                                  "12  K",
                                  "12Gi",
                                  "12Gb",
                                  "12GIB",
                                  "0x10",
                                  "1 2",
                                  "12K ",
                                  " 12",
                                  "1.1.1",
                                  "nan",
                                  "12KiBB",
                                  "1.0000001G",
                                  "1PiB",
                                  "1\t",
                                  "12\n",
                                  "18446744073709551616",
                                  "16777216TiB",
                                  "99999999999999999999999",
                                  "1.K"};

START_TEST(test_refuse)
{
    struct k3_error err;
    uint64_t bytes = 77;
    ck_assert_msg(k3_size_parse(bad[_i], &bytes, &err) == K3_ERR_USAGE, "'%s'", bad[_i]);
    ck_assert_uint_eq(bytes, 77);
}
END_TEST

static const struct {
    uint64_t bytes;
    const char *text;
} formats[] = {
    {0, "0 B"},
    {1023, "1023 B"},
    {1024, "1.00 KiB"},
    {1536, "1.50 KiB"},
    {10240, "10.0 KiB"},
    {UINT64_C(1023) << 10, "1.00 MiB"}, /* 1023 KiB would be four digits */
    {UINT64_C(100) << 20, "100 MiB"},
    {UINT64_C(1560936091448), "1.42 TiB"},
    {UINT64_MAX, "16.0 EiB"},
};

START_TEST(test_format)
{
    char text[K3_SIZE_TEXT_BYTES];
    k3_size_format(formats[_i].bytes, text);
    ck_assert_str_eq(text, formats[_i].text);
}
END_TEST

Suite *k3_suite(void)
{
    Suite *suite = suite_create("size_text");
    TCase *values = tcase_create("values");
    tcase_add_loop_test(values, test_parse, 0, (int)(sizeof good / sizeof good[0]));
    tcase_add_loop_test(values, test_refuse, 0, (int)(sizeof bad / sizeof bad[0]));
    tcase_add_loop_test(values, test_format, 0, (int)(sizeof formats / sizeof formats[0]));
    suite_add_tcase(suite, values);
    return suite;
}
