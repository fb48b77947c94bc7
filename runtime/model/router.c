/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/model/router.h"

#include <string.h>

#include "format/base/assert.h"
#include "format/pack/model_spec.h"
#include "runtime/kernels/kernels.h"

struct candidate {
    double key, score;
    uint32_t expert;
};

/* Keeps the k best in descending key; experts come in ascending index, so a tie stays behind. */
static size_t insert(struct candidate *best, size_t count, size_t k, struct candidate c)
{
    size_t at = count;
    while (at > 0 && best[at - 1].key < c.key) {
        at--;
    }
    if (at == k) {
        return count;
    }
    const size_t kept = count < k ? count : k - 1;
    memmove(best + at + 1, best + at, (kept - at) * sizeof *best);
    best[at] = c;
    return kept + 1;
}

static void sort_by_expert(struct candidate *best, size_t k)
{
    for (size_t i = 1; i < k; i++) {
        const struct candidate c = best[i];
        size_t at = i;
        for (; at > 0 && best[at - 1].expert > c.expert; at--) {
            best[at] = best[at - 1];
        }
        best[at] = c;
    }
}

void k3_router_pick(const double *logits, const float *bias, size_t experts, size_t k,
                    double scaling, struct k3_pick *out_picks)
{
    struct candidate best[K3_TOP_K_MAX];
    k3_assert(k >= 1 && k <= K3_TOP_K_MAX && k <= experts);
    size_t count = 0;
    for (size_t e = 0; e < experts; e++) {
        const double score = k3_sigmoid_d(logits[e]);
        const struct candidate c = {score + (double)bias[e], score, (uint32_t)e};
        count = insert(best, count, k, c);
    }
    sort_by_expert(best, k);
    double total = 0.0;
    for (size_t i = 0; i < k; i++) {
        total += best[i].score;
    }
    for (size_t i = 0; i < k; i++) {
        out_picks[i].expert = best[i].expert;
        out_picks[i].weight = (float)(best[i].score / (total + 1e-20) * scaling);
    }
}
