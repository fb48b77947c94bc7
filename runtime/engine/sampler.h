/* SPDX-License-Identifier: Apache-2.0 */
#ifndef K3_RUNTIME_ENGINE_SAMPLER_H
#define K3_RUNTIME_ENGINE_SAMPLER_H

#include <stddef.h>
#include <stdint.h>

#include "format/base/error.h"

/* From logits to the next id, the same on every machine: docs/arithmetic.md 11. */
struct k3_sampling {
    double temperature; /* 0: greedy, and the rest is ignored */
    uint32_t top_k;     /* 0: off                             */
    double top_p;       /* 1: off; in (0, 1]                  */
    double min_p;       /* 0: off; in [0, 1]                  */
    uint64_t seed;
};

struct k3_candidate {
    float logit;
    uint32_t id;
};

struct k3_sampler {
    struct k3_sampling sampling;
    size_t vocab;
    uint64_t drawn;                  /* numbers taken so far */
    struct k3_candidate *candidates; /* owned: [vocab] */
    double *weights;                 /* owned: [vocab] */
};

K3_MUST_CHECK enum k3_code k3_sampler_init(const struct k3_sampling *sampling, size_t vocab,
                                           struct k3_sampler *out_sampler, struct k3_error *err);
void k3_sampler_done(struct k3_sampler *sampler);

/* Logits are finite (the model checks). */
uint32_t k3_sampler_next(struct k3_sampler *sampler, const float *logits);

/* Largest logit, ties to the lower id. */
uint32_t k3_argmax(const float *logits, size_t vocab);

#endif
