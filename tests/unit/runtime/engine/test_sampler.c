/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/engine/sampler.h"

#include <math.h>
#include <stdlib.h>

#include "runtime/engine/philox.h"
#include "tests/support/suite_main.h"

#define VOCAB 8
#define DRAWS 20000

static struct k3_error err;
static const float logits[VOCAB] = {0.5F, 2.0F, -1.0F, 2.0F, 1.0F, -8.0F, 1.5F, 0.0F};

static struct k3_sampler make(struct k3_sampling sampling, size_t vocab)
{
    struct k3_sampler sampler;
    ck_assert_ok(k3_sampler_init(&sampling, vocab, &sampler, &err));
    return sampler;
}

/* How often each id comes. */
static void draw(struct k3_sampling sampling, unsigned counts[VOCAB])
{
    struct k3_sampler sampler = make(sampling, VOCAB);
    for (int i = 0; i < VOCAB; i++) {
        counts[i] = 0;
    }
    for (int i = 0; i < DRAWS; i++) {
        counts[k3_sampler_next(&sampler, logits)]++;
    }
    k3_sampler_done(&sampler);
}

START_TEST(greedy_takes_the_lower_id_of_a_tie)
{
    struct k3_sampler sampler = make((struct k3_sampling){.top_p = 1}, VOCAB);
    ck_assert_uint_eq(k3_sampler_next(&sampler, logits), 1);
    ck_assert_uint_eq(sampler.drawn, 0);
    k3_sampler_done(&sampler);
}
END_TEST

START_TEST(frequencies_are_softmax)
{
    unsigned counts[VOCAB];
    draw((struct k3_sampling){.temperature = 2, .top_p = 1, .seed = 9}, counts);
    double total = 0;
    for (int i = 0; i < VOCAB; i++) {
        total += exp((double)logits[i] / 2);
    }
    for (int i = 0; i < VOCAB; i++) {
        const double p = exp((double)logits[i] / 2) / total;
        /* Five standard deviations. */
        ck_assert_double_eq_tol((double)counts[i] / DRAWS, p, 5 * sqrt(p * (1 - p) / DRAWS));
    }
}
END_TEST

static const struct {
    const char *why;
    struct k3_sampling sampling;
    unsigned allowed; /* bit per id */
} filters[] = {
    {"top-k 1 is greedy", {.temperature = 1, .top_k = 1, .top_p = 1}, 1U << 1},
    {"top-k 2: a tie at the edge goes to the lower id",
     {.temperature = 1, .top_k = 2, .top_p = 1},
     1U << 1 | 1U << 3},
    {"top-k 3", {.temperature = 1, .top_k = 3, .top_p = 1}, 1U << 1 | 1U << 3 | 1U << 6},
    {"tiny top-p keeps one", {.temperature = 1, .top_p = 0.01}, 1U << 1},
    /* weights 1, 1, .607, .368, .223, .135, .05, 0: half of 3.38 is reached by the second */
    {"top-p 0.5", {.temperature = 1, .top_p = 0.5}, 1U << 1 | 1U << 3},
    {"min-p 0.5", {.temperature = 1, .top_p = 1, .min_p = 0.5}, 1U << 1 | 1U << 3 | 1U << 6},
    {"min-p before top-p: half of 2.607 is reached by the second",
     {.temperature = 1, .top_p = 0.5, .min_p = 0.5},
     1U << 1 | 1U << 3},
    {"low temperature leaves the tied best", {.temperature = 0.01, .top_p = 1}, 1U << 1 | 1U << 3},
};

START_TEST(filters_keep_exactly_these)
{
    unsigned counts[VOCAB];
    draw(filters[_i].sampling, counts);
    for (unsigned i = 0; i < VOCAB; i++) {
        ck_assert_msg((counts[i] > 0) == ((filters[_i].allowed >> i & 1) != 0),
                      "%s: id %u came %u times", filters[_i].why, i, counts[i]);
    }
}
END_TEST

START_TEST(same_seed_same_ids_and_numbers_are_counted)
{
    const struct k3_sampling sampling = {.temperature = 1, .top_p = 0.95, .seed = 77};
    struct k3_sampler a = make(sampling, VOCAB), b = make(sampling, VOCAB);
    struct k3_sampler other =
        make((struct k3_sampling){.temperature = 1, .top_p = 0.95, .seed = 78}, VOCAB);
    unsigned differing = 0;
    for (int i = 0; i < 200; i++) {
        const uint32_t id = k3_sampler_next(&a, logits);
        ck_assert_uint_eq(id, k3_sampler_next(&b, logits));
        differing += id != k3_sampler_next(&other, logits);
    }
    ck_assert_uint_eq(a.drawn, 200);
    ck_assert_uint_gt(differing, 20);
    k3_sampler_done(&a);
    k3_sampler_done(&b);
    k3_sampler_done(&other);
}
END_TEST

/* Straight from docs/arithmetic.md 11, with a full sort. */
static int by_logit(const void *left, const void *right)
{
    const struct k3_candidate *a = left, *b = right;
    if (a->logit != b->logit) {
        return a->logit > b->logit ? -1 : 1;
    }
    return a->id < b->id ? -1 : 1;
}

static uint32_t plain_next(const struct k3_sampling *s, const float *row, size_t vocab, uint64_t n)
{
    struct k3_candidate *c = calloc(vocab, sizeof *c);
    for (size_t i = 0; i < vocab; i++) {
        c[i] = (struct k3_candidate){row[i], (uint32_t)i};
    }
    qsort(c, vocab, sizeof *c, by_logit);
    size_t count = s->top_k && s->top_k < vocab ? s->top_k : vocab;
    double total = 0, sum = 0;
    for (size_t i = 0; i < count; i++) {
        const double w = exp(((double)c[i].logit - (double)c[0].logit) / s->temperature);
        if (w < s->min_p) {
            count = i;
            break;
        }
        total += w;
    }
    size_t kept = 0;
    for (double target = s->top_p * total; kept < count && (kept == 0 || sum < target); kept++) {
        sum += exp(((double)c[kept].logit - (double)c[0].logit) / s->temperature);
    }
    const double u = k3_philox_uniform(s->seed, n) * sum;
    double running = 0;
    uint32_t id = c[kept - 1].id;
    for (size_t i = 0; i < kept; i++) {
        running += exp(((double)c[i].logit - (double)c[0].logit) / s->temperature);
        if (u < running) {
            id = c[i].id;
            break;
        }
    }
    free(c);
    return id;
}

START_TEST(agrees_with_a_full_sort)
{
    enum { WIDE = 1000 };
    float row[WIDE];
    const struct k3_sampling settings[] = {
        {.temperature = 1, .top_p = 1, .seed = 1},
        {.temperature = 0.7, .top_k = 40, .top_p = 0.95, .seed = 2},
        {.temperature = 1.5, .top_p = 0.8, .min_p = 0.02, .seed = 3},
    };
    for (size_t s = 0; s < 3; s++) {
        struct k3_sampler sampler = make(settings[s], WIDE);
        for (uint64_t n = 0; n < 300; n++) {
            for (size_t i = 0; i < WIDE; i++) {
                /* Coarse, so that ties are common. */
                row[i] = (float)floor(k3_philox_uniform(n + 1000, i) * 40) / 8;
            }
            ck_assert_uint_eq(k3_sampler_next(&sampler, row),
                              plain_next(&settings[s], row, WIDE, n));
        }
        k3_sampler_done(&sampler);
    }
}
END_TEST

Suite *k3_suite(void)
{
    Suite *suite = suite_create("sampler");
    TCase *contract = tcase_create("contract");
    tcase_add_test(contract, greedy_takes_the_lower_id_of_a_tie);
    tcase_add_test(contract, frequencies_are_softmax);
    tcase_add_loop_test(contract, filters_keep_exactly_these, 0,
                        (int)(sizeof filters / sizeof filters[0]));
    tcase_add_test(contract, same_seed_same_ids_and_numbers_are_counted);
    tcase_add_test(contract, agrees_with_a_full_sort);
    suite_add_tcase(suite, contract);
    return suite;
}
