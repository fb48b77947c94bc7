/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/engine/sampler.h"

#include <stdbool.h>
#include <stdlib.h>

#include "format/base/assert.h"
#include "runtime/engine/philox.h"
#include "runtime/kernels/kernels.h"

enum k3_code k3_sampler_init(const struct k3_sampling *sampling, size_t vocab,
                             struct k3_sampler *out_sampler, struct k3_error *err)
{
    k3_assert(vocab > 0);
    struct k3_sampler sampler = {.sampling = *sampling, .vocab = vocab};
    sampler.candidates = calloc(vocab, sizeof *sampler.candidates);
    sampler.weights = calloc(vocab, sizeof *sampler.weights);
    if (!sampler.candidates || !sampler.weights) {
        k3_sampler_done(&sampler);
        return k3_fail_no_memory(err, "sampler");
    }
    *out_sampler = sampler;
    return K3_OK;
}

void k3_sampler_done(struct k3_sampler *sampler)
{
    free(sampler->candidates);
    free(sampler->weights);
    *sampler = (struct k3_sampler){0};
}

uint32_t k3_argmax(const float *logits, size_t vocab)
{
    size_t best = 0;
    for (size_t i = 1; i < vocab; i++) {
        if (logits[i] > logits[best]) {
            best = i;
        }
    }
    return (uint32_t)best;
}

/* Does a come before b: larger logit, then lower id? A total order. */
static bool comes_before(struct k3_candidate a, struct k3_candidate b)
{
    return a.logit > b.logit || (a.logit == b.logit && a.id < b.id);
}

/* Heap with the last of the kept candidates on top. */
static void sift_down(struct k3_candidate *heap, size_t count, size_t at)
{
    for (;;) {
        size_t last = at;
        for (size_t child = 2 * at + 1; child <= 2 * at + 2 && child < count; child++) {
            if (comes_before(heap[last], heap[child])) {
                last = child;
            }
        }
        if (last == at) {
            return;
        }
        const struct k3_candidate c = heap[at];
        heap[at] = heap[last];
        heap[last] = c;
        at = last;
    }
}

/* The first `keep` candidates in order; no sort of the whole vocabulary. */
static void select_best(struct k3_sampler *sampler, const float *logits, size_t keep)
{
    struct k3_candidate *heap = sampler->candidates;
    for (size_t i = 0; i < keep; i++) {
        heap[i] = (struct k3_candidate){logits[i], (uint32_t)i};
    }
    for (size_t i = keep / 2; i-- > 0;) {
        sift_down(heap, keep, i);
    }
    for (size_t i = keep; i < sampler->vocab; i++) {
        const struct k3_candidate c = {logits[i], (uint32_t)i};
        if (comes_before(c, heap[0])) {
            heap[0] = c;
            sift_down(heap, keep, 0);
        }
    }
    /* Heap sort: the last goes to the end. */
    for (size_t count = keep; count > 1; count--) {
        const struct k3_candidate c = heap[0];
        heap[0] = heap[count - 1];
        heap[count - 1] = c;
        sift_down(heap, count - 1, 0);
    }
}

/* Weights relative to the best; min-p ends the list, for they descend. */
static size_t weigh(struct k3_sampler *sampler, size_t count)
{
    const struct k3_candidate *c = sampler->candidates;
    size_t kept = 0;
    while (kept < count) {
        const double w =
            k3_exp_d(((double)c[kept].logit - (double)c[0].logit) / sampler->sampling.temperature);
        if (kept > 0 && w < sampler->sampling.min_p) {
            break;
        }
        sampler->weights[kept++] = w;
    }
    return kept;
}

static double sum_of(const double *weights, size_t count)
{
    double sum = 0.0;
    for (size_t i = 0; i < count; i++) {
        sum += weights[i];
    }
    return sum;
}

/* Shortest prefix that holds top_p of the weight. */
static size_t cut_at_top_p(const struct k3_sampler *sampler, size_t count)
{
    if (sampler->sampling.top_p >= 1.0) {
        return count;
    }
    const double target = sampler->sampling.top_p * sum_of(sampler->weights, count);
    double sum = 0.0;
    for (size_t i = 0; i < count; i++) {
        sum += sampler->weights[i];
        if (sum >= target) {
            return i + 1;
        }
    }
    return count;
}

uint32_t k3_sampler_next(struct k3_sampler *sampler, const float *logits)
{
    const struct k3_sampling *s = &sampler->sampling;
    if (s->temperature == 0.0) {
        return k3_argmax(logits, sampler->vocab);
    }
    const size_t keep = s->top_k > 0 && s->top_k < sampler->vocab ? s->top_k : sampler->vocab;
    select_best(sampler, logits, keep);
    const size_t count = cut_at_top_p(sampler, weigh(sampler, keep));
    const double total = sum_of(sampler->weights, count);
    const double target = k3_philox_uniform(s->seed, sampler->drawn++) * total;
    double sum = 0.0;
    for (size_t i = 0; i < count; i++) {
        sum += sampler->weights[i];
        if (target < sum) {
            return sampler->candidates[i].id;
        }
    }
    return sampler->candidates[count - 1].id;
}
