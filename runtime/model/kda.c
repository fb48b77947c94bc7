/* SPDX-License-Identifier: Apache-2.0 */
/* Kimi Delta Attention: report 4.4. */
#include <string.h>

#include "runtime/model/model.h"

struct kda_region {
    const struct k3_model *model;
    const struct k3_kda_weights *w;
    float *state;
    size_t tokens;
    size_t width;  /* heads * head_dim          */
    size_t stride; /* of padded rows of `width` */
};

/* Everything that reads x, in one region. */
static void project(const struct k3_model *model, const struct k3_kda_weights *w, size_t tokens,
                    const float *x)
{
    const struct k3_scratch *s = &model->scratch;
    const struct k3_model_spec *spec = model->spec;
    const size_t in = k3_padded(spec->hidden), stride = k3_padded(k3_spec_kda_width(spec));
    struct k3_matmul *jobs = s->jobs;
    jobs[0] = k3_matmul_of(&w->q, tokens, x, in, s->projected[0], stride);
    jobs[1] = k3_matmul_of(&w->k, tokens, x, in, s->projected[1], stride);
    jobs[2] = k3_matmul_of(&w->v, tokens, x, in, s->projected[2], stride);
    jobs[3] = k3_matmul_of(&w->gate, tokens, x, in, s->gate, s->wide_stride);
    jobs[4] = k3_matmul_of(&w->f_a, tokens, x, in, s->f_a, k3_padded(spec->kda_head_dim));
    jobs[5] = k3_matmul_of(&w->beta, tokens, x, in, s->beta, k3_padded(spec->kda_heads));
    k3_compute_matmuls(&model->compute, jobs, 6);
    jobs[0] = k3_matmul_of(&w->f_b, tokens, s->f_a, k3_padded(spec->kda_head_dim), s->z, stride);
    k3_compute_matmuls(&model->compute, jobs, 1);
}

/* History and new rows behind each other, dense; the last rows become the next history. */
static void gather_conv_rows(const struct k3_model *model, float *history, size_t tokens)
{
    const struct k3_scratch *s = &model->scratch;
    const size_t width = k3_spec_kda_width(model->spec), stride = k3_padded(width);
    const size_t past = model->spec->conv_taps - 1;
    for (size_t i = 0; i < 3; i++) {
        float *saved = history + i * past * width;
        memcpy(s->conv_in[i], saved, past * width * sizeof(float));
        for (size_t t = 0; t < tokens; t++) {
            memcpy(s->conv_in[i] + (past + t) * width, s->projected[i] + t * stride,
                   width * sizeof(float));
        }
        memcpy(saved, s->conv_in[i] + tokens * width, past * width * sizeof(float));
    }
}

static void convolve_one(void *context, size_t at, unsigned worker)
{
    (void)worker;
    const struct kda_region *r = context;
    const struct k3_scratch *s = &r->model->scratch;
    const size_t i = at % 3, t = at / 3, taps = r->model->spec->conv_taps;
    const float *rows = s->conv_in[i] + t * r->width;
    r->model->compute.kernels->conv_silu(s->conv_out[i] + t * r->width, r->w->conv[i], taps, rows,
                                         rows + (taps - 1) * r->width, r->width);
}

/* All tokens of one head, in order: the state stays in cache and is written once per token. */
static void run_head(void *context, size_t head, unsigned worker)
{
    (void)worker;
    const struct kda_region *r = context;
    const struct k3_model *model = r->model;
    const struct k3_kernels *kernels = model->compute.kernels;
    const struct k3_scratch *s = &model->scratch;
    const size_t dim = model->spec->kda_head_dim, at = head * dim;
    const size_t beta_stride = k3_padded(model->spec->kda_heads);
    float *state = r->state + head * dim * dim;
    const float exp_a = k3_exp_f(r->w->a_log[head]);
    for (size_t t = 0; t < r->tokens; t++) {
        float *q = s->conv_out[0] + t * r->width + at;
        float *k = s->conv_out[1] + t * r->width + at;
        const float *v = s->conv_out[2] + t * r->width + at;
        float *alpha = s->alpha + t * r->stride + at;
        float *o = s->attn + t * s->wide_stride + at;
        const float beta = k3_sigmoid_f(s->beta[t * beta_stride + head]);
        kernels->kda_normalise(q, k, dim);
        kernels->kda_decay(alpha, s->z + t * r->stride + at, r->w->dt_bias + at, dim, exp_a,
                           model->gate_lower_bound);
        kernels->kda_step(o, state, q, k, v, alpha, beta, dim);
        kernels->rms_norm(o, o, r->w->o_norm, dim, model->eps);
        kernels->gate(o, o, s->gate + t * s->wide_stride + at, dim);
    }
}

void k3_kda_forward(const struct k3_model *model, const struct k3_layer_weights *w,
                    struct k3_sequence *sequence, uint32_t layer, size_t tokens, const float *x,
                    float *out)
{
    const size_t width = k3_spec_kda_width(model->spec);
    struct kda_region region = {.model = model,
                                .w = &w->kda,
                                .state = k3_sequence_kda_state(sequence, layer),
                                .tokens = tokens,
                                .width = width,
                                .stride = k3_padded(width)};
    project(model, &w->kda, tokens, x);
    gather_conv_rows(model, k3_sequence_conv(sequence, layer), tokens);
    k3_compute_each(&model->compute, 3 * tokens, convolve_one, &region);
    k3_compute_each(&model->compute, model->spec->kda_heads, run_head, &region);
    model->scratch.jobs[0] =
        k3_matmul_of(&w->attn_out, tokens, model->scratch.attn, model->scratch.wide_stride, out,
                     k3_padded(model->spec->hidden));
    k3_compute_matmuls(&model->compute, model->scratch.jobs, 1);
}
