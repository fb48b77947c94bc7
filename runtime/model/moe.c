/* SPDX-License-Identifier: Apache-2.0 */
/* Latent mixture of experts: report 4.7 and 4.8. */
#include <string.h>

#include "format/base/ckd.h"
#include "runtime/model/model.h"

static enum k3_code run_router(const struct k3_model *model, uint32_t layer, size_t tokens,
                               const float *x, struct k3_error *err)
{
    const struct k3_scratch *s = &model->scratch;
    const size_t in = k3_padded(model->spec->hidden);
    s->jobs[0] = k3_trunk_product(&model->trunk, layer, K3_ROLE_ROUTER, tokens, x, in, NULL,
                                  k3_padded(model->spec->experts));
    s->jobs[0].kind = K3_MATMUL_ROUTER;
    s->jobs[0].y_double = s->router_logits;
    return k3_trunk_multiply(&model->trunk, s->jobs, 1, err);
}

/* Picks of every token, and the (token, slot) pairs sorted by expert: expert e has the pairs
 * pair_of[expert_first[e] .. expert_first[e + 1]). */
static void route(const struct k3_model *model, const float *bias, size_t tokens)
{
    const struct k3_scratch *s = &model->scratch;
    const size_t experts = model->spec->experts, k = model->spec->experts_per_token;
    memset(s->expert_first, 0, (experts + 1) * sizeof *s->expert_first);
    for (size_t t = 0; t < tokens; t++) {
        k3_router_pick(s->router_logits + t * k3_padded(experts), bias, experts, k,
                       model->spec->routed_scaling_factor, s->picks + t * k);
        for (size_t i = 0; i < k; i++) {
            s->expert_first[s->picks[t * k + i].expert + 1]++;
        }
    }
    for (size_t e = 0; e < experts; e++) {
        s->expert_first[e + 1] += s->expert_first[e];
    }
    /* Buckets fill from their ends, so that pairs stay in token order. */
    for (size_t pair = tokens * k; pair-- > 0;) {
        const uint32_t e = s->picks[pair].expert;
        s->pair_of[--s->expert_first[e + 1]] = (uint32_t)pair;
    }
    /* Every end has become its bucket's start: shift them back into place. */
    memmove(s->expert_first, s->expert_first + 1, experts * sizeof *s->expert_first);
    s->expert_first[experts] = (uint32_t)(tokens * k);
}

static uint32_t pairs_of(const struct k3_scratch *s, uint32_t expert)
{
    return s->expert_first[expert + 1] - s->expert_first[expert];
}

static void announce(const struct k3_model *model, uint32_t layer)
{
    uint32_t *experts = model->scratch.announced;
    uint32_t count = 0;
    for (uint32_t e = 0; e < model->spec->experts; e++) {
        if (pairs_of(&model->scratch, e) > 0) {
            experts[count++] = e;
        }
    }
    model->trunk.source.experts_announce(model->trunk.source.self, layer, experts, count);
}

/* The router decides and the experts are asked for before anything else of the layer is read, so
 * that they arrive while the shared expert is computed. */
static enum k3_code choose_experts(const struct k3_model *model, uint32_t layer, size_t tokens,
                                   const float *x, struct k3_error *err)
{
    enum k3_code code = run_router(model, layer, tokens, x, err);
    struct k3_trunk_span bias;
    if (code == K3_OK) {
        code = k3_trunk_span_acquire(&model->trunk, layer, K3_ROLE_ROUTER_BIAS, K3_ROLE_ROUTER_BIAS,
                                     &bias, err);
    }
    if (code == K3_OK) {
        route(model, k3_trunk_vector(&model->trunk, &bias, K3_ROLE_ROUTER_BIAS), tokens);
        k3_trunk_span_release(&model->trunk, &bias);
        announce(model, layer);
    }
    return code;
}

/* The way into the latent space, and the shared expert. */
static enum k3_code run_shared(const struct k3_model *model, uint32_t layer, size_t tokens,
                               const float *x, struct k3_error *err)
{
    const struct k3_scratch *s = &model->scratch;
    const struct k3_trunk *trunk = &model->trunk;
    const struct k3_model_spec *spec = model->spec;
    const size_t in = k3_padded(spec->hidden), wide = s->mlp_stride;
    s->jobs[0] = k3_trunk_product(trunk, layer, K3_ROLE_LATENT_DOWN, tokens, x, in, s->latent,
                                  k3_padded(spec->latent));
    s->jobs[1] =
        k3_trunk_product(trunk, layer, K3_ROLE_SHARED_GATE, tokens, x, in, s->mlp_gate, wide);
    s->jobs[2] = k3_trunk_product(trunk, layer, K3_ROLE_SHARED_UP, tokens, x, in, s->mlp_up, wide);
    const enum k3_code code = k3_trunk_multiply(trunk, s->jobs, 3, err);
    if (code != K3_OK) {
        return code;
    }
    k3_compute_situ(&model->compute, s->mlp_gate, s->mlp_gate, s->mlp_up, tokens,
                    k3_spec_shared_intermediate(spec), wide, model->beta, model->linear_beta);
    s->jobs[0] = k3_trunk_product(trunk, layer, K3_ROLE_SHARED_DOWN, tokens, s->mlp_gate, wide,
                                  s->mlp_out, in);
    return k3_trunk_multiply(trunk, s->jobs, 1, err);
}

/* Acquires experts from `next` on until the wave is full; returns where to go on. */
static enum k3_code fill_wave(const struct k3_model *model, uint32_t layer, uint32_t *next,
                              struct k3_expert_wave *wave, struct k3_error *err)
{
    const struct k3_scratch *s = &model->scratch;
    wave->count = 0;
    wave->pairs = 0;
    const size_t most = k3_min_u64(s->pairs, model->trunk.source.experts_at_once);
    for (; *next < model->spec->experts && wave->count < most; ++*next) {
        const uint32_t pairs = pairs_of(s, *next);
        if (pairs == 0) {
            continue;
        }
        if (wave->pairs + pairs > s->pairs) {
            break;
        }
        const uint8_t *bytes = NULL;
        const enum k3_code code =
            model->trunk.source.expert_acquire(model->trunk.source.self, layer, *next, &bytes, err);
        if (code != K3_OK) {
            return code;
        }
        wave->experts[wave->count] = *next;
        wave->first_pair[wave->count] = wave->pairs;
        wave->weights[wave->count] = k3_expert_weights_view(model->tables, bytes);
        wave->count++;
        wave->pairs += pairs;
    }
    return K3_OK;
}

static void release_wave(const struct k3_model *model, uint32_t layer,
                         const struct k3_expert_wave *wave)
{
    for (size_t i = 0; i < wave->count; i++) {
        model->trunk.source.expert_release(model->trunk.source.self, layer, wave->experts[i]);
    }
}

/* Copies each pair's latent input behind the others of its expert. */
static void gather_inputs(const struct k3_model *model, const struct k3_expert_wave *wave)
{
    const struct k3_scratch *s = &model->scratch;
    const size_t row = k3_padded(model->spec->latent), k = model->spec->experts_per_token;
    for (size_t i = 0; i < wave->count; i++) {
        const uint32_t first = s->expert_first[wave->experts[i]];
        for (uint32_t j = 0; j < pairs_of(s, wave->experts[i]); j++) {
            const size_t token = s->pair_of[first + j] / k;
            memcpy(s->wave_in + (wave->first_pair[i] + j) * row, s->latent + token * row,
                   model->spec->latent * sizeof(float));
        }
    }
}

static void scatter_outputs(const struct k3_model *model, const struct k3_expert_wave *wave)
{
    const struct k3_scratch *s = &model->scratch;
    const size_t row = k3_padded(model->spec->latent);
    for (size_t i = 0; i < wave->count; i++) {
        const uint32_t first = s->expert_first[wave->experts[i]];
        for (uint32_t j = 0; j < pairs_of(s, wave->experts[i]); j++) {
            memcpy(s->expert_out + s->pair_of[first + j] * row,
                   s->wave_out + (wave->first_pair[i] + j) * row,
                   model->spec->latent * sizeof(float));
        }
    }
}

static struct k3_matmul m4_job(struct k3_tile_run run, size_t tokens, const float *x,
                               size_t x_stride, float *y, size_t y_stride)
{
    return (struct k3_matmul){.kind = K3_MATMUL_M4,
                              .run = run,
                              .tokens = tokens,
                              .x = x,
                              .x_stride = x_stride,
                              .y = y,
                              .y_stride = y_stride};
}

static void run_wave(const struct k3_model *model, const struct k3_expert_wave *wave)
{
    const struct k3_scratch *s = &model->scratch;
    const size_t z = k3_padded(model->spec->latent),
                 f = k3_padded(model->spec->expert_intermediate);
    gather_inputs(model, wave);
    for (size_t i = 0; i < wave->count; i++) {
        const size_t at = wave->first_pair[i], n = pairs_of(s, wave->experts[i]);
        const float *x = s->wave_in + at * z;
        s->jobs[2 * i] = m4_job(wave->weights[i].gate, n, x, z, s->wave_gate + at * f, f);
        s->jobs[2 * i + 1] = m4_job(wave->weights[i].up, n, x, z, s->wave_up + at * f, f);
    }
    k3_compute_matmuls(&model->compute, s->jobs, 2 * wave->count);
    k3_compute_situ(&model->compute, s->wave_gate, s->wave_gate, s->wave_up, wave->pairs,
                    model->spec->expert_intermediate, f, model->beta, model->linear_beta);
    for (size_t i = 0; i < wave->count; i++) {
        const size_t at = wave->first_pair[i], n = pairs_of(s, wave->experts[i]);
        s->jobs[i] =
            m4_job(wave->weights[i].down, n, s->wave_gate + at * f, f, s->wave_out + at * z, z);
    }
    k3_compute_matmuls(&model->compute, s->jobs, wave->count);
    scatter_outputs(model, wave);
}

static enum k3_code run_experts(const struct k3_model *model, uint32_t layer,
                                struct k3_expert_wave *wave, struct k3_error *err)
{
    uint32_t next = 0;
    for (;;) {
        const enum k3_code code = fill_wave(model, layer, &next, wave, err);
        if (code == K3_OK && wave->count > 0) {
            run_wave(model, wave);
        }
        release_wave(model, layer, wave);
        if (code != K3_OK || wave->count == 0) {
            return code;
        }
    }
}

struct sum_region {
    const struct k3_model *model;
    const float *norm;
};

/* Weighted sum of a token's expert outputs, in ascending expert index, and the norm of the sum. */
static void sum_token(void *context, size_t t, unsigned worker)
{
    (void)worker;
    const struct sum_region *r = context;
    const struct k3_scratch *s = &r->model->scratch;
    const size_t latent = r->model->spec->latent, row = k3_padded(latent);
    const size_t k = r->model->spec->experts_per_token;
    float *sum = s->latent_sum + t * row;
    memset(sum, 0, latent * sizeof(float));
    for (size_t i = t * k; i < (t + 1) * k; i++) {
        r->model->compute.kernels->axpy(sum, s->picks[i].weight, s->expert_out + i * row, latent);
    }
    r->model->compute.kernels->rms_norm(sum, sum, r->norm, latent, r->model->eps);
}

/* The weighted sum, its norm, and the way out of the latent space. */
static enum k3_code combine(const struct k3_model *model, uint32_t layer, size_t tokens, float *out,
                            struct k3_error *err)
{
    const struct k3_scratch *s = &model->scratch;
    struct k3_trunk_span norm;
    const enum k3_code code = k3_trunk_span_acquire(&model->trunk, layer, K3_ROLE_LATENT_NORM,
                                                    K3_ROLE_LATENT_NORM, &norm, err);
    if (code != K3_OK) {
        return code;
    }
    struct sum_region region = {model, k3_trunk_vector(&model->trunk, &norm, K3_ROLE_LATENT_NORM)};
    k3_compute_each(&model->compute, tokens, sum_token, &region);
    k3_trunk_span_release(&model->trunk, &norm);
    s->jobs[0] =
        k3_trunk_product(&model->trunk, layer, K3_ROLE_LATENT_UP, tokens, s->latent_sum,
                         k3_padded(model->spec->latent), out, k3_padded(model->spec->hidden));
    return k3_trunk_multiply(&model->trunk, s->jobs, 1, err);
}

enum k3_code k3_moe_forward(const struct k3_model *model, uint32_t layer, size_t tokens,
                            const float *x, float *out, struct k3_error *err)
{
    const struct k3_scratch *s = &model->scratch;
    const size_t hidden = k3_padded(model->spec->hidden);
    enum k3_code code = choose_experts(model, layer, tokens, x, err);
    if (code == K3_OK) {
        code = run_shared(model, layer, tokens, x, err);
    }
    if (code == K3_OK) {
        struct k3_expert_wave wave = s->wave;
        code = run_experts(model, layer, &wave, err);
    }
    if (code == K3_OK) {
        code = combine(model, layer, tokens, out, err);
    }
    for (size_t t = 0; code == K3_OK && t < tokens; t++) {
        model->compute.kernels->add(out + t * hidden, out + t * hidden, s->mlp_out + t * hidden,
                                    model->spec->hidden);
    }
    return code;
}
