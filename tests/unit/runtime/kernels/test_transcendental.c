/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "format/base/bytes.h"
#include "tests/support/suite_main.h"
#include "tests/unit/runtime/kernels/fixture.h"
#include "tests/unit/runtime/kernels/plain.h"
#include "tests/unit/runtime/kernels/ulp.h"

/* Our exp, sigmoid and tanh: accuracy, special values, and the document's definition to the bit.
 * test_transcendental_all.c does the first over all 2^32 inputs. */

#define STRIDE 16381U /* prime, so that every exponent and many mantissas are met */
#define COUNT  (UINT64_C(1) << 32) / STRIDE

START_TEST(test_accuracy)
{
    const enum kt_function function = (enum kt_function)_i;
    const struct kt_ulp ulp = kt_ulp_sweep(function, 0, STRIDE, COUNT);
    ck_assert_msg(ulp.worst <= 0.51, "%s(%a): %.4f ulp", kt_function_name(function),
                  (double)k3_f32_from_bits(ulp.bits), ulp.worst);
}
END_TEST

START_TEST(test_definition)
{
    static float (*const plain[KT_FUNCTIONS])(float) = {plain_exp, plain_sigmoid, plain_tanh};
    const enum kt_function function = (enum kt_function)_i;
    uint32_t bits = 12345;
    for (uint64_t i = 0; i < COUNT; i++, bits += STRIDE) {
        const float x = k3_f32_from_bits(bits);
        const float got = kt_function_call(function, x);
        if (!kt_same(got, plain[function](x))) {
            ck_abort_msg("%s(%a) is %a, not %a", kt_function_name(function), (double)x, (double)got,
                         (double)plain[function](x));
        }
    }
}
END_TEST

START_TEST(test_exp_d)
{
    struct kt_random random = {1};
    double worst = 0.0;
    for (int i = 0; i < 1000000; i++) {
        const double unit = (double)(kt_random_next(&random) >> 11) * 0x1p-53;
        const double x = i % 2 ? -708.0 + unit * 1417.0 : (unit - 0.5) * 4.0;
        const double got = k3_exp_d(x);
        const long double expected = expl((long double)x);
        worst = fmax(worst, (double)fabsl(((long double)got - expected) / expected));
        if (!kt_same_d(got, plain_exp_d(x)) || !kt_same_d(k3_sigmoid_d(x), plain_sigmoid_d(x))) {
            ck_abort_msg("k3_exp_d or k3_sigmoid_d(%a) is not what the document says", x);
        }
    }
    ck_assert_msg(worst < 0x1p-50, "k3_exp_d: relative error %a", worst);
}
END_TEST

static const struct special {
    float x, exp, sigmoid, tanh;
} specials[] = {
    {0.0F, 1.0F, 0.5F, 0.0F},
    {-0.0F, 1.0F, 0.5F, -0.0F},
    {INFINITY, INFINITY, 1.0F, 1.0F},
    {-INFINITY, 0.0F, 0.0F, -1.0F},
    {NAN, NAN, NAN, NAN},
    {-NAN, NAN, NAN, NAN},
    {3.4e38F, INFINITY, 1.0F, 1.0F},
    {-3.4e38F, 0.0F, 0.0F, -1.0F},
    {0x1p-149F, 1.0F, 0.5F, 0x1p-149F},
    {-0x1p-149F, 1.0F, 0.5F, -0x1p-149F},
    {88.8F, INFINITY, 1.0F, 1.0F},
    {-104.0F, 0.0F, 0.0F, -1.0F},
    {-103.9F, 0x1p-149F, 0x1p-149F, -1.0F}, /* the last subnormal that is left */
};

START_TEST(test_specials)
{
    const struct special *s = &specials[_i];
    ck_assert_msg(kt_same(k3_exp_f(s->x), s->exp), "exp(%a)", (double)s->x);
    ck_assert_msg(kt_same(k3_sigmoid_f(s->x), s->sigmoid), "sigmoid(%a)", (double)s->x);
    ck_assert_msg(kt_same(k3_tanh_f(s->x), s->tanh), "tanh(%a)", (double)s->x);
}
END_TEST

START_TEST(test_double_limits)
{
    const double infinite = HUGE_VAL;
    const double nan_d = nan("");
    ck_assert(k3_exp_d(-1e300) == k3_exp_d(-708.0) && k3_exp_d(-infinite) > 0.0);
    ck_assert(k3_exp_d(1e300) == k3_exp_d(709.0) && k3_exp_d(infinite) < infinite);
    ck_assert(isnan(k3_exp_d(nan_d)) && isnan(k3_sigmoid_d(nan_d)));
    ck_assert(k3_exp_d(0.0) == 1.0 && k3_sigmoid_d(0.0) == 0.5);
}
END_TEST

Suite *k3_suite(void)
{
    Suite *suite = suite_create("kernels: transcendentals");
    TCase *accuracy = tcase_create("accuracy");
    tcase_add_loop_test(accuracy, test_accuracy, 0, KT_FUNCTIONS);
    tcase_add_test(accuracy, test_exp_d);
    suite_add_tcase(suite, accuracy);
    TCase *definition = tcase_create("definition");
    tcase_add_loop_test(definition, test_definition, 0, KT_FUNCTIONS);
    suite_add_tcase(suite, definition);
    TCase *special = tcase_create("special values");
    tcase_add_loop_test(special, test_specials, 0, (int)(sizeof specials / sizeof specials[0]));
    tcase_add_test(special, test_double_limits);
    suite_add_tcase(suite, special);
    return suite;
}
