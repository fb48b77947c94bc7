/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/engine/memory_plan.h"

#include "format/base/ckd.h"
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
