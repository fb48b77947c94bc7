/* SPDX-License-Identifier: Apache-2.0 */
/* A common factor on all routing weights vanishes in the norm that follows, so no end-to-end test
 * can see a missing renormalisation or scaling: they are tested here. */
#include "runtime/model/router.h"

#include <math.h>

#include "tests/support/suite_main.h"

#define EXPERTS 6

static double sigmoid(double x)
{
    return 1.0 / (1.0 + exp(-x));
}

START_TEST(weights_are_renormalised)
{
    const double logits[EXPERTS] = {0.5, -1.0, 2.0, 0.0, 1.0, -3.0};
    const float bias[EXPERTS] = {0};
    struct k3_pick picks[3];
    k3_router_pick(logits, bias, EXPERTS, 3, 1.0, picks);
    const uint32_t expected[3] = {0, 2, 4};
    const double total = sigmoid(0.5) + sigmoid(2.0) + sigmoid(1.0);
    for (int i = 0; i < 3; i++) {
        ck_assert_uint_eq(picks[i].expert, expected[i]);
        ck_assert_double_eq_tol((double)picks[i].weight, sigmoid(logits[expected[i]]) / total,
                                1e-7);
    }
}
END_TEST

START_TEST(weights_are_scaled)
{
    const double logits[EXPERTS] = {0.5, -1.0, 2.0, 0.0, 1.0, -3.0};
    const float bias[EXPERTS] = {0};
    struct k3_pick one[3], scaled[3];
    k3_router_pick(logits, bias, EXPERTS, 3, 1.0, one);
    k3_router_pick(logits, bias, EXPERTS, 3, 2.5, scaled);
    for (int i = 0; i < 3; i++) {
        ck_assert_double_eq_tol((double)scaled[i].weight, 2.5 * (double)one[i].weight, 1e-6);
    }
}
END_TEST

START_TEST(bias_selects_and_does_not_weigh)
{
    const double logits[EXPERTS] = {0.5, -1.0, 2.0, 0.0, 1.0, -3.0};
    const float bias[EXPERTS] = {0, 0, -5, 0, 0, 9};
    struct k3_pick picks[2];
    k3_router_pick(logits, bias, EXPERTS, 2, 1.0, picks);
    ck_assert_uint_eq(picks[0].expert, 4);
    ck_assert_uint_eq(picks[1].expert, 5);
    const double total = sigmoid(1.0) + sigmoid(-3.0);
    ck_assert_double_eq_tol((double)picks[0].weight, sigmoid(1.0) / total, 1e-7);
    ck_assert_double_eq_tol((double)picks[1].weight, sigmoid(-3.0) / total, 1e-7);
}
END_TEST

START_TEST(ties_go_to_the_lower_index)
{
    const double logits[EXPERTS] = {1, 2, 1, 1, 2, 1};
    const float bias[EXPERTS] = {0};
    struct k3_pick picks[4];
    k3_router_pick(logits, bias, EXPERTS, 4, 1.0, picks);
    const uint32_t expected[4] = {0, 1, 2, 4};
    for (int i = 0; i < 4; i++) {
        ck_assert_uint_eq(picks[i].expert, expected[i]);
    }
}
END_TEST

/* A difference that float32 cannot hold still decides. */
START_TEST(near_ties_are_decided_in_double)
{
    const double logits[2] = {1.0, 1.0 + 1e-9};
    const float bias[2] = {0};
    struct k3_pick pick;
    k3_router_pick(logits, bias, 2, 1, 1.0, &pick);
    ck_assert_uint_eq(pick.expert, 1);
    ck_assert(pick.weight == 1.0F);
}
END_TEST

START_TEST(all_experts_can_be_picked)
{
    const double logits[EXPERTS] = {-900, 900, 0, 5, -5, 1};
    const float bias[EXPERTS] = {0};
    struct k3_pick picks[EXPERTS];
    k3_router_pick(logits, bias, EXPERTS, EXPERTS, 1.0, picks);
    double total = 0;
    for (uint32_t i = 0; i < EXPERTS; i++) {
        ck_assert_uint_eq(picks[i].expert, i);
        total += (double)picks[i].weight;
    }
    ck_assert_double_eq_tol(total, 1.0, 1e-6);
}
END_TEST

Suite *k3_suite(void)
{
    Suite *suite = suite_create("router");
    TCase *contract = tcase_create("contract");
    tcase_add_test(contract, weights_are_renormalised);
    tcase_add_test(contract, weights_are_scaled);
    tcase_add_test(contract, bias_selects_and_does_not_weigh);
    tcase_add_test(contract, ties_go_to_the_lower_index);
    tcase_add_test(contract, near_ties_are_decided_in_double);
    tcase_add_test(contract, all_experts_can_be_picked);
    suite_add_tcase(suite, contract);
    return suite;
}
