/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/model/scratch.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "format/base/assert.h"
#include "format/base/ckd.h"
#include "runtime/model/compute.h"

/* One walk over all buffers serves both questions: how much, and give it to me. */
struct taker {
    struct k3_scratch *scratch; /* NULL: only count */
    uint64_t bytes;
    bool failed;
};

static void *take(struct taker *t, uint64_t count, size_t size)
{
    uint64_t bytes = 0;
    if (ckd_mul(&bytes, count ? count : 1, (uint64_t)size) || ckd_add(&t->bytes, t->bytes, bytes) ||
        bytes > SIZE_MAX / 2) {
        t->failed = true;
        return NULL;
    }
    if (!t->scratch || t->failed) {
        return NULL;
    }
    struct k3_scratch *s = t->scratch;
    k3_assert(s->memory_count < sizeof s->memory / sizeof s->memory[0]);
    /* 64-byte lines, zeroed: padding must be finite from the start. */
    void *memory = aligned_alloc(64, (size_t)k3_round_up(bytes, 64));
    if (!memory) {
        t->failed = true;
        return NULL;
    }
    memset(memory, 0, (size_t)k3_round_up(bytes, 64));
    s->memory[s->memory_count++] = memory;
    return memory;
}

static float *rows(struct taker *t, uint64_t count, uint64_t width)
{
    return take(t, count * k3_padded((size_t)width), sizeof(float));
}

static float *dense(struct taker *t, uint64_t count, uint64_t width)
{
    return take(t, count * width, sizeof(float));
}

static void take_kda(struct taker *t, struct k3_scratch *s, const struct k3_model_spec *spec)
{
    const uint64_t T = s->tokens, width = k3_spec_kda_width(spec);
    for (int i = 0; i < 3; i++) {
        s->projected[i] = rows(t, T, width);
        s->conv_in[i] = dense(t, T + spec->conv_taps - 1, width);
        s->conv_out[i] = dense(t, T, width);
    }
    s->f_a = rows(t, T, spec->kda_head_dim);
    s->z = rows(t, T, width);
    s->beta = rows(t, T, spec->kda_heads);
    s->alpha = rows(t, T, width);
}

static void take_mla(struct taker *t, struct k3_scratch *s, const struct k3_model_spec *spec,
                     uint64_t context, unsigned threads)
{
    const uint64_t T = s->tokens, heads = spec->mla_heads;
    s->q_a = rows(t, T, spec->q_lora_rank);
    s->q = rows(t, T, (uint64_t)heads * k3_spec_qk_head_dim(spec));
    s->kv = rows(t, T, k3_spec_latent_row(spec));
    s->nope = rows(t, T * heads, spec->qk_nope_head_dim);
    s->query = rows(t, T * heads, k3_spec_latent_row(spec));
    s->mix = rows(t, T * heads, spec->kv_lora_rank);
    s->value = rows(t, T * heads, spec->v_head_dim);
    s->score_stride = (size_t)k3_round_up(context, 16);
    s->scores = dense(t, (uint64_t)threads * K3_MLA_HEAD_BLOCK, s->score_stride);
}

static void take_mlp(struct taker *t, struct k3_scratch *s, const struct k3_model_spec *spec)
{
    const uint64_t T = s->tokens, k = spec->experts_per_token;
    const uint64_t wide = k3_max_u64(spec->dense_intermediate, k3_spec_shared_intermediate(spec));
    s->mlp_stride = k3_padded((size_t)wide);
    s->mlp_gate = rows(t, T, wide);
    s->mlp_up = rows(t, T, wide);
    s->mlp_out = rows(t, T, spec->hidden);
    s->latent = rows(t, T, spec->latent);
    s->latent_sum = rows(t, T, spec->latent);
    s->router_logits = take(t, T * k3_padded(spec->experts), sizeof(double));
    s->picks = take(t, T * k, sizeof *s->picks);
    s->expert_out = rows(t, T * k, spec->latent);
    s->wave_in = rows(t, s->pairs, spec->latent);
    s->wave_gate = rows(t, s->pairs, spec->expert_intermediate);
    s->wave_up = rows(t, s->pairs, spec->expert_intermediate);
    s->wave_out = rows(t, s->pairs, spec->latent);
    s->expert_first = take(t, (uint64_t)spec->experts + 1, sizeof *s->expert_first);
    s->pair_of = take(t, T * k, sizeof *s->pair_of);
    s->announced = take(t, spec->experts, sizeof *s->announced);
    s->wave.experts = take(t, s->pairs, sizeof *s->wave.experts);
    s->wave.first_pair = take(t, s->pairs, sizeof *s->wave.first_pair);
    s->wave.weights = take(t, s->pairs, sizeof *s->wave.weights);
}

static void take_all(struct taker *t, struct k3_scratch *s, const struct k3_model_spec *spec,
                     uint64_t context, unsigned threads)
{
    const uint64_t T = s->tokens;
    const uint64_t widest = k3_max_u64(k3_spec_kda_width(spec), k3_spec_mla_out_width(spec));
    s->bank = rows(t, s->bank_max * T, spec->hidden);
    s->cur = rows(t, T, spec->hidden);
    s->folded = rows(t, 1, spec->hidden);
    s->mixed = rows(t, T, spec->hidden);
    s->normed = rows(t, T, spec->hidden);
    s->branch = rows(t, T, spec->hidden);
    s->wide_stride = k3_padded((size_t)widest);
    s->gate = rows(t, T, widest);
    s->attn = rows(t, T, widest);
    take_kda(t, s, spec);
    take_mla(t, s, spec, context, threads);
    take_mlp(t, s, spec);
    s->job_max = (size_t)k3_max_u64(2 * s->pairs, k3_max_u64(spec->mla_heads, 8));
    s->jobs = take(t, s->job_max, sizeof(struct k3_matmul));
    s->piece = take(t, s->job_max, sizeof(struct k3_matmul));
}

static struct k3_scratch counts_of(const struct k3_model_spec *spec, size_t tokens)
{
    return (struct k3_scratch){
        .tokens = tokens,
        .pairs = tokens > spec->experts_per_token ? tokens : spec->experts_per_token,
        .bank_max = (spec->layers + spec->attn_res_block_layers - 1) / spec->attn_res_block_layers,
    };
}

uint64_t k3_scratch_bytes(const struct k3_model_spec *spec, size_t tokens, uint64_t context,
                          unsigned threads)
{
    struct taker t = {0};
    struct k3_scratch s = counts_of(spec, tokens);
    take_all(&t, &s, spec, context, threads);
    return t.failed ? UINT64_MAX : t.bytes;
}

enum k3_code k3_scratch_init(const struct k3_model_spec *spec, size_t tokens, uint64_t context,
                             unsigned threads, struct k3_scratch *out_scratch, struct k3_error *err)
{
    struct k3_scratch s = counts_of(spec, tokens);
    struct taker t = {.scratch = &s};
    take_all(&t, &s, spec, context, threads);
    if (t.failed) {
        k3_scratch_done(&s);
        return k3_fail(err, K3_ERR_NO_MEMORY, K3_ERROR_NO_OFFSET,
                       "no memory for the working buffers: %" PRIu64
                       " bytes for %zu tokens a pass; lower --prefill-chunk or --context",
                       k3_scratch_bytes(spec, tokens, context, threads), tokens);
    }
    *out_scratch = s;
    return K3_OK;
}

void k3_scratch_done(struct k3_scratch *scratch)
{
    for (size_t i = 0; i < scratch->memory_count; i++) {
        free(scratch->memory[i]);
    }
    *scratch = (struct k3_scratch){0};
}
