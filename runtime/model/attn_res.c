/* SPDX-License-Identifier: Apache-2.0 */
/* Attention residuals: report 4.2. */
#include "runtime/model/model.h"

/* bank entries and cur */
#define SOURCES_MAX (K3_LAYERS_MAX + 1)

struct mix_region {
    const struct k3_model *model;
    size_t stride, tokens;
    float *mixed;
};

static void mix_token(void *context, size_t t, unsigned worker)
{
    (void)worker;
    const struct mix_region *r = context;
    const struct k3_scratch *s = &r->model->scratch;
    const float *sources[SOURCES_MAX];
    for (size_t n = 0; n < s->bank_count; n++) {
        sources[n] = s->bank + (n * s->tokens + t) * r->stride;
    }
    sources[s->bank_count] = s->cur + t * r->stride;
    r->model->compute.kernels->res_mix(r->mixed + t * r->stride, sources, s->bank_count + 1,
                                       s->folded, r->model->spec->hidden, r->model->eps);
}

void k3_attn_res_mix(const struct k3_model *model, const float *norm, const float *proj,
                     size_t tokens, float *mixed)
{
    const size_t hidden = model->spec->hidden;
    model->compute.kernels->mul(model->scratch.folded, norm, proj, hidden);
    struct mix_region region = {model, k3_padded(hidden), tokens, mixed};
    k3_compute_each(&model->compute, tokens, mix_token, &region);
}
