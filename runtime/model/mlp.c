/* SPDX-License-Identifier: Apache-2.0 */
/* The dense MLP of the first layers: report 4.3. */
#include "runtime/model/model.h"

enum k3_code k3_mlp_forward(const struct k3_model *model, uint32_t layer, size_t tokens,
                            const float *x, float *out, struct k3_error *err)
{
    const struct k3_scratch *s = &model->scratch;
    const struct k3_trunk *trunk = &model->trunk;
    const size_t in = k3_padded(model->spec->hidden), wide = s->mlp_stride;
    s->jobs[0] =
        k3_trunk_product(trunk, layer, K3_ROLE_DENSE_GATE, tokens, x, in, s->mlp_gate, wide);
    s->jobs[1] = k3_trunk_product(trunk, layer, K3_ROLE_DENSE_UP, tokens, x, in, s->mlp_up, wide);
    const enum k3_code code = k3_trunk_multiply(trunk, s->jobs, 2, err);
    if (code != K3_OK) {
        return code;
    }
    k3_compute_situ(&model->compute, s->mlp_gate, s->mlp_gate, s->mlp_up, tokens,
                    model->spec->dense_intermediate, wide, model->beta, model->linear_beta);
    s->jobs[0] =
        k3_trunk_product(trunk, layer, K3_ROLE_DENSE_DOWN, tokens, s->mlp_gate, wide, out, in);
    return k3_trunk_multiply(trunk, s->jobs, 1, err);
}
