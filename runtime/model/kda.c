/* SPDX-License-Identifier: Apache-2.0 */
/* Kimi Delta Attention: report 4.4. */
#include <string.h>

#include "runtime/model/model.h"

struct kda_region {
    const struct k3_model *model;
    const float *conv[3]; /* q, k, v: [taps][heads * head_dim]  */
    const float *a_log;   /* [heads], more behind it is ignored */
    const float *dt_bias; /* [heads * head_dim]                 */
    const float *o_norm;  /* [head_dim]                         */
    float *state;
    size_t tokens;
    size_t width;  /* heads * head_dim          */
    size_t stride; /* of padded rows of `width` */
};

/* Everything that reads x. */
static enum k3_code project(const struct k3_model *model, uint32_t layer, size_t tokens,
                            const float *x, struct k3_error *err)
{
    const struct k3_scratch *s = &model->scratch;
    const struct k3_model_spec *spec = model->spec;
    const size_t stride = k3_padded(k3_spec_kda_width(spec));
    const struct {
        unsigned role;
        float *y;
        size_t stride;
    } products[] = {
        {K3_ROLE_KDA_Q, s->projected[0], stride},
        {K3_ROLE_KDA_K, s->projected[1], stride},
        {K3_ROLE_KDA_V, s->projected[2], stride},
        {K3_ROLE_KDA_GATE, s->gate, s->wide_stride},
        {K3_ROLE_KDA_F_A, s->f_a, k3_padded(spec->kda_head_dim)},
        {K3_ROLE_KDA_BETA, s->beta, k3_padded(spec->kda_heads)},
    };
    const size_t count = sizeof products / sizeof products[0];
    for (size_t i = 0; i < count; i++) {
        s->jobs[i] = k3_trunk_product(&model->trunk, layer, products[i].role, tokens, x,
                                      k3_padded(spec->hidden), products[i].y, products[i].stride);
    }
    return k3_trunk_multiply(&model->trunk, s->jobs, count, err);
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
    r->model->compute.kernels->conv_silu(s->conv_out[i] + t * r->width, r->conv[i], taps, rows,
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
    const float exp_a = k3_exp_f(r->a_log[head]);
    for (size_t t = 0; t < r->tokens; t++) {
        float *q = s->conv_out[0] + t * r->width + at;
        float *k = s->conv_out[1] + t * r->width + at;
        const float *v = s->conv_out[2] + t * r->width + at;
        float *alpha = s->alpha + t * r->stride + at;
        float *o = s->attn + t * s->wide_stride + at;
        const float beta = k3_sigmoid_f(s->beta[t * beta_stride + head]);
        kernels->kda_normalise(q, k, dim);
        kernels->kda_decay(alpha, s->z + t * r->stride + at, r->dt_bias + at, dim, exp_a,
                           model->gate_lower_bound);
        kernels->kda_step(o, state, q, k, v, alpha, beta, dim);
        kernels->rms_norm(o, o, r->o_norm, dim, model->eps);
        kernels->gate(o, o, s->gate + t * s->wide_stride + at, dim);
    }
}

static enum k3_code convolve(const struct k3_model *model, struct kda_region *region,
                             uint32_t layer, struct k3_error *err)
{
    struct k3_trunk_span taps;
    const enum k3_code code = k3_trunk_span_acquire(&model->trunk, layer, K3_ROLE_KDA_Q_CONV,
                                                    K3_ROLE_KDA_V_CONV, &taps, err);
    if (code != K3_OK) {
        return code;
    }
    region->conv[0] = k3_trunk_vector(&model->trunk, &taps, K3_ROLE_KDA_Q_CONV);
    region->conv[1] = k3_trunk_vector(&model->trunk, &taps, K3_ROLE_KDA_K_CONV);
    region->conv[2] = k3_trunk_vector(&model->trunk, &taps, K3_ROLE_KDA_V_CONV);
    k3_compute_each(&model->compute, 3 * region->tokens, convolve_one, region);
    k3_trunk_span_release(&model->trunk, &taps);
    return K3_OK;
}

static enum k3_code run_heads(const struct k3_model *model, struct kda_region *region,
                              uint32_t layer, struct k3_error *err)
{
    struct k3_trunk_span vectors;
    const enum k3_code code = k3_trunk_span_acquire(&model->trunk, layer, K3_ROLE_KDA_A_LOG,
                                                    K3_ROLE_KDA_O_NORM, &vectors, err);
    if (code != K3_OK) {
        return code;
    }
    region->a_log = k3_trunk_vector(&model->trunk, &vectors, K3_ROLE_KDA_A_LOG);
    region->dt_bias = k3_trunk_vector(&model->trunk, &vectors, K3_ROLE_KDA_DT_BIAS);
    region->o_norm = k3_trunk_vector(&model->trunk, &vectors, K3_ROLE_KDA_O_NORM);
    k3_compute_each(&model->compute, model->spec->kda_heads, run_head, region);
    k3_trunk_span_release(&model->trunk, &vectors);
    return K3_OK;
}

enum k3_code k3_kda_forward(const struct k3_model *model, struct k3_sequence *sequence,
                            uint32_t layer, size_t tokens, const float *x, float *out,
                            struct k3_error *err)
{
    const struct k3_scratch *s = &model->scratch;
    const struct k3_trunk *trunk = &model->trunk;
    const size_t width = k3_spec_kda_width(model->spec);
    struct kda_region region = {.model = model,
                                .state = k3_sequence_kda_state(sequence, layer),
                                .tokens = tokens,
                                .width = width,
                                .stride = k3_padded(width)};
    enum k3_code code = project(model, layer, tokens, x, err);
    if (code == K3_OK) {
        gather_conv_rows(model, k3_sequence_conv(sequence, layer), tokens);
        code = convolve(model, &region, layer, err);
    }
    if (code == K3_OK) {
        s->jobs[0] = k3_trunk_product(trunk, layer, K3_ROLE_KDA_F_B, tokens, s->f_a,
                                      k3_padded(model->spec->kda_head_dim), s->z, region.stride);
        code = k3_trunk_multiply(trunk, s->jobs, 1, err);
    }
    if (code == K3_OK) {
        code = run_heads(model, &region, layer, err);
    }
    if (code == K3_OK) {
        s->jobs[0] = k3_trunk_product(trunk, layer, K3_ROLE_ATTN_OUT, tokens, s->attn,
                                      s->wide_stride, out, k3_padded(model->spec->hidden));
        code = k3_trunk_multiply(trunk, s->jobs, 1, err);
    }
    return code;
}
