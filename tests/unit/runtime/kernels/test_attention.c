/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "tests/support/suite_main.h"
#include "tests/unit/runtime/kernels/fixture.h"
#include "tests/unit/runtime/kernels/plain.h"

/* KDA and MLA kernels of every tier against the plain ones, bit for bit. */

static const struct k3_kernels *tiers[KT_TIERS_MAX];

static void setup(void)
{
    kt_tiers(tiers);
}

static void expect_equal(const struct k3_kernels *tier, const char *what, const float *got,
                         const float *expected, size_t n)
{
    const size_t at = kt_differs_at(got, expected, n);
    ck_assert_msg(at == n, "%s %s: element %zu of %zu: %a, not %a", tier->name, what, at, n,
                  (double)got[at], (double)expected[at]);
}

static const size_t widths[] = {1, 4, 12, 16, 20, 24, 32, 33, 64, 72, 100, 128, 130, 192};
#define WIDTHS    (int)(sizeof widths / sizeof widths[0])
#define WIDTH_MAX 192U

START_TEST(test_kda)
{
    const size_t n = widths[_i];
    for (int kind = 0; kind < KT_KINDS; kind++) {
        for (size_t t = 0; tiers[t]; t++) {
            struct kt_random random = {n};
            float *state = kt_floats(n * n, 1);
            float *expected_state = kt_floats(n * n, 1);
            kt_fill(state, n * n, &random, (enum kt_kind)kind);
            memcpy(expected_state, state, n * n * sizeof *state);
            for (int token = 0; token < 3; token++) {
                float v[6][WIDTH_MAX]; /* q k v z dt_bias o */
                float w[6][WIDTH_MAX];
                float alpha[2][WIDTH_MAX];
                for (size_t i = 0; i < 6; i++) {
                    kt_fill(v[i], n, &random, (enum kt_kind)kind);
                }
                memcpy(w, v, sizeof w);
                plain_kda_normalise(w[0], w[1], n);
                tiers[t]->kda_normalise(v[0], v[1], n);
                expect_equal(tiers[t], "kda_normalise q", v[0], w[0], n);
                expect_equal(tiers[t], "kda_normalise k", v[1], w[1], n);
                plain_kda_decay(alpha[0], w[3], w[4], n, 1.75F, -5.0F);
                tiers[t]->kda_decay(alpha[1], v[3], v[4], n, 1.75F, -5.0F);
                expect_equal(tiers[t], "kda_decay", alpha[1], alpha[0], n);
                plain_kda_step(w[5], expected_state, w[0], w[1], w[2], alpha[0], 0.625F, n);
                tiers[t]->kda_step(v[5], state, v[0], v[1], v[2], alpha[1], 0.625F, n);
                expect_equal(tiers[t], "kda_step o", v[5], w[5], n);
                expect_equal(tiers[t], "kda_step state", state, expected_state, n * n);
            }
            kt_floats_free(state, 1);
            kt_floats_free(expected_state, 1);
        }
    }
}
END_TEST

static const struct mla {
    size_t heads, latent, row_len, positions;
} mla_cases[] = {
    {1, 16, 17, 1},    {2, 32, 36, 5},     {3, 33, 40, 31},   {5, 128, 160, 33},
    {16, 64, 96, 127}, {17, 40, 129, 129}, {31, 20, 128, 64}, {33, 512, 576, 40},
    {8, 24, 25, 300},  {48, 100, 257, 9},  {7, 56, 58, 257},  {16, 72, 73, 6},
};
#define MLA_CASES (int)(sizeof mla_cases / sizeof mla_cases[0])

START_TEST(test_mla)
{
    const struct mla *c = &mla_cases[_i];
    const size_t row_stride = c->row_len + 3;
    const size_t query_stride = c->row_len + 1;
    const size_t score_stride = c->positions + 2;
    const size_t mix_stride = c->latent + 1;
    for (int kind = 0; kind < KT_KINDS; kind++) {
        struct kt_random random = {c->heads};
        float *rows = kt_floats(c->positions * row_stride, 1);
        float *query = kt_floats(c->heads * query_stride, 1);
        float *scores = kt_floats(c->heads * score_stride, 0);
        float *mix = kt_floats(c->heads * mix_stride, 0);
        kt_fill(rows, c->positions * row_stride, &random, (enum kt_kind)kind);
        kt_fill(query, c->heads * query_stride, &random, (enum kt_kind)kind);
        for (size_t t = 0; tiers[t]; t++) {
            scores[c->positions] = 99.0F;
            tiers[t]->mla_scores(scores, score_stride, query, query_stride, c->heads, rows,
                                 row_stride, c->row_len, c->positions, 0.0721688F);
            ck_assert(scores[c->positions] == 99.0F);
            for (size_t h = 0; h < c->heads; h++) {
                for (size_t s = 0; s < c->positions; s++) {
                    const float expected = plain_d128(query + h * query_stride, 1,
                                                      rows + s * row_stride, 1, NULL, c->row_len) *
                                           0.0721688F;
                    const float got = scores[h * score_stride + s];
                    if (!kt_same(got, expected)) {
                        ck_abort_msg("%s score %zu %zu: %a, not %a", tiers[t]->name, h, s,
                                     (double)got, (double)expected);
                    }
                }
            }
            mix[c->latent] = 99.0F;
            tiers[t]->mla_mix(mix, mix_stride, scores, score_stride, c->heads, rows, row_stride,
                              c->latent, c->positions);
            ck_assert(mix[c->latent] == 99.0F);
            for (size_t h = 0; h < c->heads; h++) {
                for (size_t j = 0; j < c->latent; j++) {
                    const float expected = plain_d128(scores + h * score_stride, 1, rows + j,
                                                      row_stride, NULL, c->positions);
                    const float got = mix[h * mix_stride + j];
                    if (!kt_same(got, expected)) {
                        ck_abort_msg("%s mix %zu %zu: %a, not %a", tiers[t]->name, h, j,
                                     (double)got, (double)expected);
                    }
                }
            }
        }
        kt_floats_free(rows, 1);
        kt_floats_free(query, 1);
        kt_floats_free(scores, 0);
        kt_floats_free(mix, 0);
    }
}
END_TEST

Suite *k3_suite(void)
{
    Suite *suite = suite_create("kernels: attention");
    TCase *kda = tcase_create("kda");
    tcase_add_checked_fixture(kda, setup, NULL);
    tcase_add_loop_test(kda, test_kda, 0, WIDTHS);
    suite_add_tcase(suite, kda);
    TCase *mla = tcase_create("mla");
    tcase_add_checked_fixture(mla, setup, NULL);
    tcase_add_loop_test(mla, test_mla, 0, MLA_CASES);
    suite_add_tcase(suite, mla);
    return suite;
}
