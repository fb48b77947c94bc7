/* SPDX-License-Identifier: Apache-2.0 */
#ifndef K3_RUNTIME_ENGINE_MEMORY_PLAN_H
#define K3_RUNTIME_ENGINE_MEMORY_PLAN_H

#include "runtime/engine/engine.h"
#include "runtime/residency/budget.h"

/* The plan of one run on an opened engine, before its weights and its session are made. */
struct k3_memory_wish {
    struct k3_ram_request ram;
    uint64_t context; /* positions, >= 1                                   */
    size_t chunk;     /* tokens of a prefill pass; 0: planned, up to chunk_max */
    size_t chunk_max;
    bool wants_all_logits;
};

struct k3_memory_plan {
    struct k3_memory_limits limits;
    struct k3_budget budget;
    bool was_clipped; /* a preset is larger than this machine */
};

/* Errors: BUDGET, with the number that works. */
K3_MUST_CHECK enum k3_code k3_memory_plan_make(const struct k3_engine *engine,
                                               const struct k3_memory_wish *wish,
                                               struct k3_memory_plan *out_plan,
                                               struct k3_error *err);

#endif
