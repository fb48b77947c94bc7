/* SPDX-License-Identifier: Apache-2.0 */
#ifndef K3_RUNTIME_MODEL_ROUTER_H
#define K3_RUNTIME_MODEL_ROUTER_H

#include <stddef.h>
#include <stdint.h>

struct k3_pick {
    uint32_t expert;
    float weight;
};

/* From router logits to weighted experts (report 4.7; docs/arithmetic.md 8).
 *   logits [experts] double; bias [experts]; 1 <= k <= experts
 *   out_picks [k], ascending expert; weights sum to `scaling`
 * The bias decides who is chosen and never how much they weigh; ties go to the lower index.
 * Errors: none. Allocates: nothing (k <= K3_TOP_K_MAX). */
void k3_router_pick(const double *logits, const float *bias, size_t experts, size_t k,
                    double scaling, struct k3_pick *out_picks);

#endif
