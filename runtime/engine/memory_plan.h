/* SPDX-License-Identifier: Apache-2.0 */
#ifndef K3_RUNTIME_ENGINE_MEMORY_PLAN_H
#define K3_RUNTIME_ENGINE_MEMORY_PLAN_H

#include "runtime/engine/engine.h"
#include "runtime/residency/budget.h"
#include "runtime/residency/io_probe.h"

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
    bool was_clipped;               /* a preset is larger than this machine */
    struct k3_io_finding io;        /* the way that is used, and why */
    double memory_bytes_per_second; /* 0: not measured */
};

/* Errors: BUDGET, with the number that works. */
K3_MUST_CHECK enum k3_code k3_memory_plan_make(const struct k3_engine *engine,
                                               const struct k3_memory_wish *wish,
                                               struct k3_memory_plan *out_plan,
                                               struct k3_error *err);

/* The way of reading: as asked, or for AUTO what a probe finds. */
void k3_memory_plan_choose_io(const struct k3_engine *engine, enum k3_io_kind asked,
                              struct k3_memory_plan *plan);

/* How fast all compute threads together read memory: a fraction of a second, 64 MiB. */
void k3_memory_plan_probe_memory(const struct k3_engine *engine, struct k3_memory_plan *plan);

/* Seconds per token of decode that the probes promise; 0 when they could not measure. */
double k3_memory_plan_seconds(const struct k3_memory_plan *plan);

#endif
