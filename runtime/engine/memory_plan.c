/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/engine/memory_plan.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "format/base/ckd.h"
#include "format/base/clock.h"
#include "runtime/engine/sampler.h"

/* What is held before the first weight. An estimate from above that depends on the pack alone, so
 * that the same command has the same floor every time: program, libraries and their heap; the index
 * (its bytes, its tables, and the page cache that holds it); about 64 bytes a token of vocabulary;
 * stacks that are in use. */
#define PROGRAM_BYTES          (UINT64_C(8) << 20)
#define VOCABULARY_TOKEN_BYTES 64U
#define THREAD_BYTES           (UINT64_C(256) << 10)

static uint64_t base_bytes(const struct k3_engine *engine)
{
    return PROGRAM_BYTES + 3 * engine->pack.index.file_bytes +
           engine->pack.tables.spec.vocab * (uint64_t)VOCABULARY_TOKEN_BYTES +
           k3_pool_thread_count(engine->pool) * THREAD_BYTES;
}

struct sizing {
    const struct k3_engine *engine;
    const struct k3_memory_wish *wish;
};

static bool session_sizes(const void *context, size_t chunk, struct k3_session_sizes *out_sizes)
{
    const struct sizing *s = context;
    const struct k3_model_spec *spec = &s->engine->pack.tables.spec;
    const unsigned threads = k3_pool_thread_count(s->engine->pool);
    const uint64_t rows = s->wish->wants_all_logits ? chunk : 1;
    const uint64_t sampler = spec->vocab * (uint64_t)(sizeof(struct k3_candidate) + sizeof(double));
    const uint64_t state = k3_sequence_bytes(spec, 0);
    const uint64_t with_latents = k3_sequence_bytes(spec, s->wish->context);
    *out_sizes = (struct k3_session_sizes){
        .state_bytes = state,
        .latent_bytes = with_latents - state,
        .scratch_bytes = k3_scratch_bytes(spec, chunk, s->wish->context, threads),
        .logit_bytes = rows * k3_padded(spec->vocab) * sizeof(float) + sampler,
    };
    uint64_t total = 0;
    return with_latents != UINT64_MAX && out_sizes->scratch_bytes != UINT64_MAX &&
           !ckd_add(&total, with_latents, out_sizes->scratch_bytes) &&
           !ckd_add(&total, total, out_sizes->logit_bytes) && total < UINT64_MAX / 4;
}

enum k3_code k3_memory_plan_make(const struct k3_engine *engine, const struct k3_memory_wish *wish,
                                 struct k3_memory_plan *out_plan, struct k3_error *err)
{
    struct k3_memory_plan plan = {.was_clipped = false};
    k3_memory_limits_read("", &plan.limits);
    const struct sizing sizing = {engine, wish};
    struct k3_budget_request request = {
        .tables = &engine->pack.tables,
        .base_bytes = base_bytes(engine),
        .chunk = wish->chunk,
        .chunk_max = wish->chunk_max,
        .session_sizes = session_sizes,
        .context = &sizing,
    };
    enum k3_code code =
        k3_ram_resolve(&wish->ram, &plan.limits, &request.total_bytes, &plan.was_clipped, err);
    if (code == K3_OK) {
        code = k3_budget_plan(&request, &plan.budget, err);
    }
    if (code == K3_OK) {
        *out_plan = plan;
    }
    return code;
}

void k3_memory_plan_choose_io(const struct k3_engine *engine, enum k3_io_kind asked,
                              struct k3_memory_plan *plan)
{
    if (asked == K3_IO_AUTO) {
        k3_io_probe(&engine->pack, &plan->io);
        return;
    }
    plan->io = (struct k3_io_finding){.io = asked, .reason = "as asked for"};
}

#define PROBE_BYTES (UINT64_C(64) << 20)
#define PROBE_PIECE (UINT64_C(1) << 20)
#define PROBE_TURNS 4

struct memory_probe {
    const uint64_t *words;
    _Atomic uint64_t sum; /* so that nobody drops the loop */
};

static void sum_pieces(void *context, size_t first, size_t end, unsigned worker)
{
    (void)worker;
    struct memory_probe *probe = context;
    uint64_t sum = 0;
    const size_t words = PROBE_PIECE / sizeof(uint64_t);
    for (size_t i = first * words; i < end * words; i++) {
        sum += probe->words[i];
    }
    atomic_fetch_add_explicit(&probe->sum, sum, memory_order_relaxed);
}

void k3_memory_plan_probe_memory(const struct k3_engine *engine, struct k3_memory_plan *plan)
{
    uint64_t *words = malloc(PROBE_BYTES);
    if (!words) {
        return;
    }
    memset(words, 1, PROBE_BYTES);
    struct memory_probe probe = {.words = words};
    uint64_t best_ns = UINT64_MAX;
    for (int turn = 0; turn < PROBE_TURNS; turn++) {
        const uint64_t start = k3_clock_ns();
        k3_pool_run(engine->pool, PROBE_BYTES / PROBE_PIECE, 1, sum_pieces, &probe);
        best_ns = k3_min_u64(best_ns, k3_clock_ns() - start);
    }
    free(words);
    plan->memory_bytes_per_second = (double)PROBE_BYTES * 1e9 / (double)best_ns;
}

double k3_memory_plan_seconds(const struct k3_memory_plan *plan)
{
    const struct k3_io_rate *rate = plan->io.io == K3_IO_MMAP ? &plan->io.mmap : &plan->io.direct;
    if (!plan->io.is_measured || plan->memory_bytes_per_second <= 0) {
        return 0;
    }
    const double device = plan->budget.ideal_token_bytes / rate->bytes_per_second;
    const double memory =
        (double)(plan->budget.trunk_pass_bytes + plan->budget.expert_token_bytes) /
        plan->memory_bytes_per_second;
    return device > memory ? device : memory;
}
