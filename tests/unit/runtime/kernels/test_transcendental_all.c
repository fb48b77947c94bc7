/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <pthread.h>
#include <stdio.h>

#include "format/base/bytes.h"
#include "tests/support/suite_main.h"
#include "tests/unit/runtime/kernels/fixture.h"
#include "tests/unit/runtime/kernels/ulp.h"

/* All 2^32 inputs: the error against long double, and every tier's vector form against the scalar
 * one. Minutes on two threads: label slow. */

/* The promise is 2 ulp. Found: exp 0.499999998, sigmoid 0.500000002, tanh 0.500000058: the double
 * is so near that only its last rounding counts. */
#define ULP_MAX 0.5001

#define THREADS 2U

struct share {
    enum kt_function function;
    uint32_t index;
    struct kt_ulp ulp;
};

static void *sweep(void *user)
{
    struct share *share = user;
    share->ulp =
        kt_ulp_sweep(share->function, share->index, THREADS, (UINT64_C(1) << 32) / THREADS);
    return NULL;
}

START_TEST(test_every_float)
{
    const enum kt_function function = (enum kt_function)_i;
    pthread_t threads[THREADS];
    struct share shares[THREADS];
    for (uint32_t i = 0; i < THREADS; i++) {
        shares[i] = (struct share){.function = function, .index = i};
        ck_assert_int_eq(pthread_create(&threads[i], NULL, sweep, &shares[i]), 0);
    }
    for (uint32_t i = 0; i < THREADS; i++) {
        ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
        const struct kt_ulp *ulp = &shares[i].ulp;
        const double x = (double)k3_f32_from_bits(ulp->bits);
        printf("%s: worst %.9f ulp at %a\n", kt_function_name(function), ulp->worst, x);
        ck_assert_msg(ulp->worst <= ULP_MAX, "%s(%a): %.9f ulp", kt_function_name(function), x,
                      ulp->worst);
    }
}
END_TEST

#define BLOCK 4096U

/* sigmoid through `gate` with x = 1, tanh through `situ_glu` with a gate of 100. */
static void check_block(const struct k3_kernels *tier, const float *x, const float *sigmoid,
                        const float *tanh_x)
{
    float one[BLOCK];
    float hundred[BLOCK];
    float got[BLOCK];
    for (size_t i = 0; i < BLOCK; i++) {
        one[i] = 1.0F;
        hundred[i] = 100.0F;
    }
    tier->gate(got, one, x, BLOCK);
    size_t at = kt_differs_at(got, sigmoid, BLOCK);
    ck_assert_msg(at == BLOCK, "%s sigmoid(%a)", tier->name, (double)x[at % BLOCK]);
    tier->situ_glu(got, hundred, x, BLOCK, 1.0F, 1.0F);
    at = kt_differs_at(got, tanh_x, BLOCK);
    ck_assert_msg(at == BLOCK, "%s tanh(%a)", tier->name, (double)x[at % BLOCK]);
}

START_TEST(test_every_tier)
{
    const struct k3_kernels *tiers[KT_TIERS_MAX];
    kt_tiers(tiers);
    float x[BLOCK];
    float sigmoid[BLOCK];
    float tanh_x[BLOCK];
    for (uint64_t block = 0; block < (UINT64_C(1) << 32); block += BLOCK) {
        for (uint32_t i = 0; i < BLOCK; i++) {
            x[i] = k3_f32_from_bits((uint32_t)block + i);
            sigmoid[i] = k3_sigmoid_f(x[i]);
            tanh_x[i] = k3_tanh_f(x[i]);
        }
        for (size_t t = 1; tiers[t]; t++) { /* the scalar tier calls the same function */
            check_block(tiers[t], x, sigmoid, tanh_x);
        }
    }
}
END_TEST

Suite *k3_suite(void)
{
    Suite *suite = suite_create("kernels: transcendentals of every float");
    TCase *all = tcase_create("every float");
    tcase_set_timeout(all, 3600);
    tcase_add_loop_test(all, test_every_float, 0, KT_FUNCTIONS);
    suite_add_tcase(suite, all);
    TCase *tiers = tcase_create("every tier");
    tcase_set_timeout(tiers, 3600);
    tcase_add_test(tiers, test_every_tier);
    suite_add_tcase(suite, tiers);
    return suite;
}
