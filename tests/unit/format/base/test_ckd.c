/* SPDX-License-Identifier: Apache-2.0 */
#include "format/base/ckd.h"

#include "tests/support/suite_main.h"

static const struct {
    uint64_t offset, bytes, total;
    bool fits;
    const char *why;
} ranges[] = {
    {0, 0, 0, true, "nothing in nothing"},
    {0, 10, 10, true, "all of it"},
    {3, 7, 10, true, "up to the end"},
    {10, 0, 10, true, "nothing at the end"},
    {3, 8, 10, false, "one past the end"},
    {11, 0, 10, false, "nothing beyond the end"},
    {UINT64_MAX, 2, UINT64_MAX, false, "a sum that would wrap"},
    {2, UINT64_MAX, 10, false, "a length that would wrap"},
    {UINT64_MAX, 0, UINT64_MAX, true, "the largest offset"},
};

START_TEST(range_fits)
{
    ck_assert_msg(k3_range_fits(ranges[_i].offset, ranges[_i].bytes, ranges[_i].total) ==
                      ranges[_i].fits,
                  "%s", ranges[_i].why);
}
END_TEST

START_TEST(overflow_is_true)
{
    uint64_t out = 0;
    ck_assert(!ckd_add(&out, UINT64_MAX - 1, (uint64_t)1));
    ck_assert_uint_eq(out, UINT64_MAX);
    ck_assert(ckd_add(&out, UINT64_MAX, (uint64_t)1));
    ck_assert(!ckd_sub(&out, (uint64_t)5, (uint64_t)5));
    ck_assert_uint_eq(out, 0);
    ck_assert(ckd_sub(&out, (uint64_t)5, (uint64_t)6));
    ck_assert(!ckd_mul(&out, UINT64_C(1) << 32, UINT64_C(0xffffffff)));
    ck_assert_uint_eq(out, UINT64_C(0xffffffff00000000));
    ck_assert(ckd_mul(&out, UINT64_C(1) << 32, UINT64_C(1) << 32));
    uint32_t narrow = 0;
    ck_assert(ckd_add(&narrow, UINT64_C(0xffffffff), UINT64_C(1)));
}
END_TEST

START_TEST(rounding_and_extremes)
{
    ck_assert_uint_eq(k3_round_up(0, 4096), 0);
    ck_assert_uint_eq(k3_round_up(1, 4096), 4096);
    ck_assert_uint_eq(k3_round_up(4096, 4096), 4096);
    ck_assert_uint_eq(k3_round_up(10, 3), 12);
    ck_assert_uint_eq(k3_round_up(UINT64_MAX, 1), UINT64_MAX);
    ck_assert_uint_eq(k3_min_u64(3, UINT64_MAX), 3);
    ck_assert_uint_eq(k3_max_u64(3, UINT64_MAX), UINT64_MAX);
}
END_TEST

Suite *k3_suite(void)
{
    Suite *suite = suite_create("ckd");
    TCase *bounds = tcase_create("bounds");
    tcase_add_loop_test(bounds, range_fits, 0, sizeof ranges / sizeof ranges[0]);
    tcase_add_test(bounds, overflow_is_true);
    tcase_add_test(bounds, rounding_and_extremes);
    suite_add_tcase(suite, bounds);
    return suite;
}
