/* SPDX-License-Identifier: Apache-2.0 */
/* The dense MLP of the first layers: report 4.3. */
#include "runtime/model/model.h"

void k3_mlp_forward(const struct k3_model *model, const struct k3_mlp_weights *w, size_t tokens,
                    const float *x, float *out)
{
    const struct k3_scratch *s = &model->scratch;
    const size_t in = k3_padded(model->spec->hidden), wide = s->mlp_stride;
    s->jobs[0] = k3_matmul_of(&w->gate, tokens, x, in, s->mlp_gate, wide);
    s->jobs[1] = k3_matmul_of(&w->up, tokens, x, in, s->mlp_up, wide);
    k3_compute_matmuls(&model->compute, s->jobs, 2);
    k3_compute_situ(&model->compute, s->mlp_gate, s->mlp_gate, s->mlp_up, tokens, w->gate.rows,
                    wide, model->beta, model->linear_beta);
    s->jobs[0] = k3_matmul_of(&w->down, tokens, s->mlp_gate, wide, out, in);
    k3_compute_matmuls(&model->compute, s->jobs, 1);
}
