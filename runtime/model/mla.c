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

/* q, latent rows and gate; the new positions enter the cache. */
static void project(const struct k3_model *model, const struct k3_mla_weights *w, float *cache_rows,
                    size_t tokens, const float *x)
{
    const struct k3_scratch *s = &model->scratch;
    const struct k3_model_spec *spec = model->spec;
    const struct k3_kernels *kernels = model->compute.kernels;
    const size_t in = k3_padded(spec->hidden), row = k3_spec_latent_row(spec);
    const size_t q_a = k3_padded(spec->q_lora_rank), kv = k3_padded(row);
    struct k3_matmul *jobs = s->jobs;
    jobs[0] = k3_matmul_of(&w->q_a, tokens, x, in, s->q_a, q_a);
    jobs[1] = k3_matmul_of(&w->kv_a, tokens, x, in, s->kv, kv);
    jobs[2] = k3_matmul_of(&w->gate, tokens, x, in, s->gate, s->wide_stride);
    k3_compute_matmuls(&model->compute, jobs, 3);
    for (size_t t = 0; t < tokens; t++) {
        float *q = s->q_a + t * q_a;
        const float *new_row = s->kv + t * kv;
        float *cached = cache_rows + t * row;
        kernels->rms_norm(q, q, w->q_a_norm, spec->q_lora_rank, model->mla_eps);
        kernels->rms_norm(cached, new_row, w->kv_a_norm, spec->kv_lora_rank, model->mla_eps);
        memcpy(cached + spec->kv_lora_rank, new_row + spec->kv_lora_rank,
               spec->qk_rope_head_dim * sizeof(float)); /* neither normed nor rotated */
    }
    jobs[0] = k3_matmul_of(&w->q_b, tokens, s->q_a, q_a, s->q,
                           k3_padded((size_t)spec->mla_heads * k3_spec_qk_head_dim(spec)));
    k3_compute_matmuls(&model->compute, jobs, 1);
}

/* One matrix of a per-head stack; rows of head h are `heads` rows apart. */
static struct k3_matmul head_job(const struct k3_matrix *w, size_t head, size_t heads,
                                 size_t tokens, const float *x, size_t x_row, float *y,
                                 size_t y_row)
{
    struct k3_matmul job =
        k3_matmul_of(w, tokens, x + head * x_row, heads * x_row, y + head * y_row, heads * y_row);
    job.run.tiles += head * w->matrix_bytes;
    return job;
}

/* query = [K_h^T nope | shared], per token and head. */
static void absorb_queries(const struct k3_model *model, const struct k3_mla_weights *w,
                           size_t tokens)
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
    for (size_t h = 0; h < heads; h++) {
        s->jobs[h] = head_job(&w->key, h, heads, tokens, s->nope, nope, s->query, query);
    }
    k3_compute_matmuls(&model->compute, s->jobs, heads);
    /* After the products: a last tile may reach into the place of the shared part. */
    for (size_t i = 0; i < tokens * heads; i++) {
        const float *q = s->q + i / heads * q_stride + i % heads * (dn + dr);
        memcpy(s->query + i * query + spec->kv_lora_rank, q + dn, dr * sizeof(float));
    }
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
static void expand_values(const struct k3_model *model, const struct k3_mla_weights *w,
                          size_t tokens)
{
    const struct k3_scratch *s = &model->scratch;
    const struct k3_model_spec *spec = model->spec;
    const size_t heads = spec->mla_heads, dv = spec->v_head_dim;
    const size_t mix = k3_padded(spec->kv_lora_rank), value = k3_padded(dv);
    for (size_t h = 0; h < heads; h++) {
        s->jobs[h] = head_job(&w->value, h, heads, tokens, s->mix, mix, s->value, value);
    }
    k3_compute_matmuls(&model->compute, s->jobs, heads);
    for (size_t i = 0; i < tokens * heads; i++) {
        const size_t at = i / heads * s->wide_stride + i % heads * dv;
        model->compute.kernels->gate(s->attn + at, s->value + i * value, s->gate + at, dv);
    }
}

void k3_mla_forward(const struct k3_model *model, const struct k3_layer_weights *w,
                    struct k3_sequence *sequence, uint32_t layer, size_t tokens, const float *x,
                    float *out)
{
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
    project(model, &w->mla, rows + sequence->length * region.row, tokens, x);
    absorb_queries(model, &w->mla, tokens);
    k3_compute_each(&model->compute, tokens * region.head_blocks, attend, &region);
    expand_values(model, &w->mla, tokens);
    model->scratch.jobs[0] = k3_matmul_of(&w->attn_out, tokens, model->scratch.attn,
                                          model->scratch.wide_stride, out, k3_padded(spec->hidden));
    k3_compute_matmuls(&model->compute, model->scratch.jobs, 1);
}
