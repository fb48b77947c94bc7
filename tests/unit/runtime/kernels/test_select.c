/* SPDX-License-Identifier: Apache-2.0 */
#include <fenv.h>
#include <string.h>

#include "tests/support/suite_main.h"
#include "tests/unit/runtime/kernels/fixture.h"

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

START_TEST(test_names)
{
    ck_assert_ptr_nonnull(k3_kernels_by_name("scalar"));
    ck_assert_str_eq(k3_kernels_by_name("scalar")->name, "scalar");
    ck_assert_ptr_null(k3_kernels_by_name("sve"));
    ck_assert_ptr_null(k3_kernels_by_name(""));
}
END_TEST

START_TEST(test_best)
{
    const struct k3_kernels *best = k3_kernels_best();
    ck_assert_ptr_nonnull(best);
    ck_assert_ptr_eq(best, k3_kernels_by_name(best->name));
    /* Names in order of speed: the best is the last of those that are there. */
    const struct k3_kernels *tiers[KT_TIERS_MAX];
    kt_tiers(tiers);
    size_t count = 0;
    while (tiers[count]) {
        count++;
    }
    ck_assert_ptr_eq(best, tiers[count - 1]);
}
END_TEST

/* A tier with a hole would crash far away from here. */
START_TEST(test_tables_are_full)
{
    const struct k3_kernels *tiers[KT_TIERS_MAX];
    kt_tiers(tiers);
    for (size_t t = 0; tiers[t]; t++) {
        void *members[sizeof(struct k3_kernels) / sizeof(void *)];
        memcpy(members, tiers[t], sizeof members);
        for (size_t i = 0; i < sizeof members / sizeof members[0]; i++) {
            ck_assert_msg(members[i] != NULL, "%s: member %zu", tiers[t]->name, i);
        }
    }
}
END_TEST

START_TEST(test_environment_good)
{
    struct k3_error err;
    ck_assert_ok(k3_float_environment_check(&err));
}
END_TEST

START_TEST(test_environment_rounding)
{
    static const int modes[] = {FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO};
    struct k3_error err;
    ck_assert_int_eq(fesetround(modes[_i]), 0);
    const enum k3_code code = k3_float_environment_check(&err);
    ck_assert_int_eq(fesetround(FE_TONEAREST), 0);
    ck_assert_int_eq(code, K3_ERR_UNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(err.message, "rounding"));
}
END_TEST

#if defined(__x86_64__)
START_TEST(test_environment_denormals)
{
    static const unsigned bits[] = {0x8000, 0x0040};
    struct k3_error err;
    const unsigned kept = _mm_getcsr();
    _mm_setcsr(kept | bits[_i]);
    const enum k3_code code = k3_float_environment_check(&err);
    _mm_setcsr(kept);
    ck_assert_int_eq(code, K3_ERR_UNSUPPORTED);
    ck_assert_int_eq(k3_float_environment_check(NULL), K3_OK);
}
END_TEST
#endif

Suite *k3_suite(void)
{
    Suite *suite = suite_create("kernels: selection");
    TCase *tiers = tcase_create("tiers");
    tcase_add_test(tiers, test_names);
    tcase_add_test(tiers, test_best);
    tcase_add_test(tiers, test_tables_are_full);
    suite_add_tcase(suite, tiers);
    TCase *environment = tcase_create("float environment");
    tcase_add_test(environment, test_environment_good);
    tcase_add_loop_test(environment, test_environment_rounding, 0, 3);
#if defined(__x86_64__)
    tcase_add_loop_test(environment, test_environment_denormals, 0, 2);
#endif
    suite_add_tcase(suite, environment);
    return suite;
}
