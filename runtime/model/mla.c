/* SPDX-License-Identifier: Apache-2.0 */
/* Gated multi-head latent attention without positions, absorbed form: report 4.6. */
#include <math.h>
#include <string.h>

#include "runtime/model/model.h"

struct mla_region {
    const struct k3_model *model;
    const float *rows; /* cached [position][row] */
    uint64_t position; /* of the first token     */
    size_t tokens;
    size_t row; /* latent + shared key    */
    size_t head_blocks;
    float scale;
};

/* The latent norms; the new positions enter the cache. */
static enum k3_code norm_latents(const struct k3_model *model, uint32_t layer, float *cache_rows,
                                 size_t tokens, struct k3_error *err)
{
    const struct k3_scratch *s = &model->scratch;
    const struct k3_model_spec *spec = model->spec;
    const struct k3_kernels *kernels = model->compute.kernels;
    const size_t row = k3_spec_latent_row(spec);
    struct k3_trunk_span norms;
    const enum k3_code code = k3_trunk_span_acquire(&model->trunk, layer, K3_ROLE_MLA_Q_A_NORM,
                                                    K3_ROLE_MLA_KV_A_NORM, &norms, err);
    if (code != K3_OK) {
        return code;
    }
    const float *q_norm = k3_trunk_vector(&model->trunk, &norms, K3_ROLE_MLA_Q_A_NORM);
    const float *kv_norm = k3_trunk_vector(&model->trunk, &norms, K3_ROLE_MLA_KV_A_NORM);
    for (size_t t = 0; t < tokens; t++) {
        float *q = s->q_a + t * k3_padded(spec->q_lora_rank);
        const float *new_row = s->kv + t * k3_padded(row);
        float *cached = cache_rows + t * row;
        kernels->rms_norm(q, q, q_norm, spec->q_lora_rank, model->mla_eps);
        kernels->rms_norm(cached, new_row, kv_norm, spec->kv_lora_rank, model->mla_eps);
        memcpy(cached + spec->kv_lora_rank, new_row + spec->kv_lora_rank,
               spec->qk_rope_head_dim * sizeof(float)); /* neither normed nor rotated */
    }
    k3_trunk_span_release(&model->trunk, &norms);
    return K3_OK;
}

/* q, latent rows and gate. */
static enum k3_code project(const struct k3_model *model, uint32_t layer, float *cache_rows,
                            size_t tokens, const float *x, struct k3_error *err)
{
    const struct k3_scratch *s = &model->scratch;
    const struct k3_trunk *trunk = &model->trunk;
    const struct k3_model_spec *spec = model->spec;
    const size_t in = k3_padded(spec->hidden), q_a = k3_padded(spec->q_lora_rank);
    s->jobs[0] = k3_trunk_product(trunk, layer, K3_ROLE_MLA_Q_A, tokens, x, in, s->q_a, q_a);
    s->jobs[1] = k3_trunk_product(trunk, layer, K3_ROLE_MLA_KV_A, tokens, x, in, s->kv,
                                  k3_padded(k3_spec_latent_row(spec)));
    s->jobs[2] =
        k3_trunk_product(trunk, layer, K3_ROLE_MLA_GATE, tokens, x, in, s->gate, s->wide_stride);
    enum k3_code code = k3_trunk_multiply(trunk, s->jobs, 3, err);
    if (code == K3_OK) {
        code = norm_latents(model, layer, cache_rows, tokens, err);
    }
    if (code == K3_OK) {
        s->jobs[0] =
            k3_trunk_product(trunk, layer, K3_ROLE_MLA_Q_B, tokens, s->q_a, q_a, s->q,
                             k3_padded((size_t)spec->mla_heads * k3_spec_qk_head_dim(spec)));
        code = k3_trunk_multiply(trunk, s->jobs, 1, err);
    }
    return code;
}

/* One product per head with the matrices of a per-head stack; rows of head h are `heads` rows
 * apart. */
static enum k3_code multiply_heads(const struct k3_model *model, uint32_t layer, unsigned role,
                                   size_t tokens, const float *x, size_t x_row, float *y,
                                   size_t y_row, struct k3_error *err)
{
    const size_t heads = model->spec->mla_heads;
    const struct k3_matmul all =
        k3_trunk_product(&model->trunk, layer, role, tokens, x, heads * x_row, y, heads * y_row);
    for (size_t h = 0; h < heads; h++) {
        struct k3_matmul *job = &model->scratch.jobs[h];
        *job = all;
        job->trunk_offset += h * all.run.tile_count * all.run.tile_stride_bytes;
        job->x += h * x_row;
        job->y += h * y_row;
    }
    return k3_trunk_multiply(&model->trunk, model->scratch.jobs, heads, err);
}

/* query = [K_h^T nope | shared], per token and head. */
static enum k3_code absorb_queries(const struct k3_model *model, uint32_t layer, size_t tokens,
                                   struct k3_error *err)
{
    const struct k3_scratch *s = &model->scratch;
    const struct k3_model_spec *spec = model->spec;
    const size_t heads = spec->mla_heads, dn = spec->qk_nope_head_dim, dr = spec->qk_rope_head_dim;
    const size_t q_stride = k3_padded(heads * (dn + dr)), nope = k3_padded(dn);
    const size_t query = k3_padded(k3_spec_latent_row(spec));
    for (size_t i = 0; i < tokens * heads; i++) {
        const float *q = s->q + i / heads * q_stride + i % heads * (dn + dr);
        memcpy(s->nope + i * nope, q, dn * sizeof(float));
    }
    const enum k3_code code = multiply_heads(model, layer, K3_ROLE_MLA_KV_B_KEY, tokens, s->nope,
                                             nope, s->query, query, err);
    if (code != K3_OK) {
        return code;
    }
    /* After the products: a last tile may reach into the place of the shared part. */
    for (size_t i = 0; i < tokens * heads; i++) {
        const float *q = s->q + i / heads * q_stride + i % heads * (dn + dr);
        memcpy(s->query + i * query + spec->kv_lora_rank, q + dn, dr * sizeof(float));
    }
    return K3_OK;
}

/* Scores, softmax and mix of one token and one block of heads. */
static void attend(void *context, size_t item, unsigned worker)
{
    const struct mla_region *r = context;
    const struct k3_model_spec *spec = r->model->spec;
    const struct k3_scratch *s = &r->model->scratch;
    const struct k3_kernels *kernels = r->model->compute.kernels;
    const size_t t = item / r->head_blocks, first = item % r->head_blocks * K3_MLA_HEAD_BLOCK;
    const size_t left = spec->mla_heads - first;
    const size_t heads = left < K3_MLA_HEAD_BLOCK ? left : K3_MLA_HEAD_BLOCK;
    const size_t at = t * spec->mla_heads + first;
    const size_t positions = (size_t)(r->position + t + 1);
    const size_t query = k3_padded(r->row), mix = k3_padded(spec->kv_lora_rank);
    float *scores = s->scores + worker * (size_t)K3_MLA_HEAD_BLOCK * s->score_stride;
    kernels->mla_scores(scores, s->score_stride, s->query + at * query, query, heads, r->rows,
                        r->row, r->row, positions, r->scale);
    for (size_t h = 0; h < heads; h++) {
        kernels->softmax(scores + h * s->score_stride, scores + h * s->score_stride, positions);
    }
    kernels->mla_mix(s->mix + at * mix, mix, scores, s->score_stride, heads, r->rows, r->row,
                     spec->kv_lora_rank, positions);
}

/* attn = (V_h mix) gated, heads behind each other. */
static enum k3_code expand_values(const struct k3_model *model, uint32_t layer, size_t tokens,
                                  struct k3_error *err)
{
    const struct k3_scratch *s = &model->scratch;
    const struct k3_model_spec *spec = model->spec;
    const size_t heads = spec->mla_heads, dv = spec->v_head_dim;
    const size_t mix = k3_padded(spec->kv_lora_rank), value = k3_padded(dv);
    const enum k3_code code = multiply_heads(model, layer, K3_ROLE_MLA_KV_B_VALUE, tokens, s->mix,
                                             mix, s->value, value, err);
    if (code != K3_OK) {
        return code;
    }
    for (size_t i = 0; i < tokens * heads; i++) {
        const size_t at = i / heads * s->wide_stride + i % heads * dv;
        model->compute.kernels->gate(s->attn + at, s->value + i * value, s->gate + at, dv);
    }
    return K3_OK;
}

enum k3_code k3_mla_forward(const struct k3_model *model, struct k3_sequence *sequence,
                            uint32_t layer, size_t tokens, const float *x, float *out,
                            struct k3_error *err)
{
    const struct k3_scratch *s = &model->scratch;
    const struct k3_model_spec *spec = model->spec;
    float *rows = k3_sequence_latent(sequence, layer);
    struct mla_region region = {
        .model = model,
        .rows = rows,
        .position = sequence->length,
        .tokens = tokens,
        .row = k3_spec_latent_row(spec),
        .head_blocks = (spec->mla_heads + K3_MLA_HEAD_BLOCK - 1) / K3_MLA_HEAD_BLOCK,
        .scale = (float)(1.0 / sqrt((double)k3_spec_qk_head_dim(spec))),
    };
    enum k3_code code = project(model, layer, rows + sequence->length * region.row, tokens, x, err);
    if (code == K3_OK) {
        code = absorb_queries(model, layer, tokens, err);
    }
    if (code == K3_OK) {
        k3_compute_each(&model->compute, tokens * region.head_blocks, attend, &region);
        code = expand_values(model, layer, tokens, err);
    }
    if (code == K3_OK) {
        s->jobs[0] = k3_trunk_product(&model->trunk, layer, K3_ROLE_ATTN_OUT, tokens, s->attn,
                                      s->wide_stride, out, k3_padded(spec->hidden));
        code = k3_trunk_multiply(&model->trunk, s->jobs, 1, err);
    }
    return code;
}
