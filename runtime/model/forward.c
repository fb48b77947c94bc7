/* SPDX-License-Identifier: Apache-2.0 */
/* The stack: report 4.2. */
#include <string.h>

#include "format/base/assert.h"
#include "runtime/model/model.h"

enum k3_code k3_model_init(const struct k3_pack_tables *tables, struct k3_weight_source source,
                           struct k3_compute compute, size_t chunk, uint64_t context,
                           double mla_eps, struct k3_model *out_model, struct k3_error *err)
{
    struct k3_model model = {
        .tables = tables,
        .spec = &tables->spec,
        .trunk = {.tables = tables, .source = source, .compute = compute},
        .compute = compute,
        .eps = (float)tables->spec.rms_norm_eps,
        .mla_eps = (float)mla_eps,
        .beta = (float)tables->spec.situ_beta,
        .linear_beta = (float)tables->spec.situ_linear_beta,
        .gate_lower_bound = (float)tables->spec.gate_lower_bound,
    };
    const enum k3_code code = k3_scratch_init(
        model.spec, chunk, context, k3_pool_thread_count(compute.pool), &model.scratch, err);
    if (code == K3_OK) {
        model.trunk.piece = model.scratch.piece;
        *out_model = model;
    }
    return code;
}

void k3_model_done(struct k3_model *model)
{
    k3_scratch_done(&model->scratch);
}

static enum k3_code embed(struct k3_model *model, const uint32_t *ids, size_t tokens,
                          struct k3_error *err)
{
    const struct k3_trunk_tensor *table =
        k3_trunk_find(model->tables, K3_TOP_LEVEL, K3_ROLE_EMBEDDING);
    const size_t hidden = model->spec->hidden, row_bytes = 2 * hidden;
    for (size_t t = 0; t < tokens; t++) {
        k3_assert(ids[t] < model->spec->vocab);
        const uint64_t at = table->file_offset + (uint64_t)ids[t] * row_bytes;
        const uint8_t *row = NULL;
        const enum k3_code code =
            model->trunk.source.trunk_acquire(model->trunk.source.self, at, row_bytes, &row, err);
        if (code != K3_OK) {
            return code;
        }
        model->compute.kernels->bf16_widen(model->scratch.cur + t * k3_padded(hidden), row, hidden);
        model->trunk.source.trunk_release(model->trunk.source.self, at, row_bytes);
    }
    return K3_OK;
}

static void norm_rows(const struct k3_model *model, size_t tokens, float *y, const float *x,
                      const float *gain)
{
    const size_t hidden = model->spec->hidden, row = k3_padded(hidden);
    for (size_t t = 0; t < tokens; t++) {
        model->compute.kernels->rms_norm(y + t * row, x + t * row, gain, hidden, model->eps);
    }
}

/* cur += branch, or cur = branch where the block has only begun. */
static void accumulate(const struct k3_model *model, size_t tokens, bool is_first)
{
    const struct k3_scratch *s = &model->scratch;
    const size_t row = k3_padded(model->spec->hidden);
    if (is_first) {
        memcpy(s->cur, s->branch, tokens * row * sizeof(float));
        return;
    }
    for (size_t t = 0; t < tokens; t++) {
        model->compute.kernels->add(s->cur + t * row, s->cur + t * row, s->branch + t * row,
                                    model->spec->hidden);
    }
}

/* The sum of the block that ends here becomes a bank entry. */
static void bank_current(struct k3_model *model, size_t tokens)
{
    struct k3_scratch *s = &model->scratch;
    const size_t row = k3_padded(model->spec->hidden);
    k3_assert(s->bank_count < s->bank_max);
    memcpy(s->bank + s->bank_count * s->tokens * row, s->cur, tokens * row * sizeof(float));
    s->bank_count++;
}

static enum k3_code check_finite(const struct k3_model *model, uint32_t layer, size_t tokens,
                                 uint64_t position, struct k3_error *err)
{
    const size_t row = k3_padded(model->spec->hidden);
    for (size_t t = 0; t < tokens; t++) {
        if (!model->compute.kernels->all_finite(model->scratch.cur + t * row,
                                                model->spec->hidden)) {
            return k3_fail(err, K3_ERR_DAMAGED, K3_ERROR_NO_OFFSET,
                           "layer %u: the residual of position %llu is not finite; the weights "
                           "are damaged or not those of this model (k3pack --verify --against)",
                           layer, (unsigned long long)(position + t));
        }
    }
    return K3_OK;
}

/* Mix, the norm before the attention, and at a block's start the bank. */
static enum k3_code before_attention(struct k3_model *model, uint32_t layer, size_t tokens,
                                     struct k3_error *err)
{
    struct k3_scratch *s = &model->scratch;
    const struct k3_trunk *trunk = &model->trunk;
    struct k3_trunk_span span;
    const enum k3_code code =
        k3_trunk_span_acquire(trunk, layer, K3_ROLE_ATTN_RES_NORM, K3_ROLE_INPUT_NORM, &span, err);
    if (code != K3_OK) {
        return code;
    }
    /* The mix sees cur before it is banked. */
    k3_attn_res_mix(model, k3_trunk_vector(trunk, &span, K3_ROLE_ATTN_RES_NORM),
                    k3_trunk_vector(trunk, &span, K3_ROLE_ATTN_RES_PROJ), tokens, s->mixed);
    if (layer % model->spec->attn_res_block_layers == 0) {
        bank_current(model, tokens);
    }
    norm_rows(model, tokens, s->normed, s->mixed,
              k3_trunk_vector(trunk, &span, K3_ROLE_INPUT_NORM));
    k3_trunk_span_release(trunk, &span);
    return K3_OK;
}

static enum k3_code before_mlp(struct k3_model *model, uint32_t layer, size_t tokens,
                               struct k3_error *err)
{
    struct k3_scratch *s = &model->scratch;
    const struct k3_trunk *trunk = &model->trunk;
    struct k3_trunk_span span;
    const enum k3_code code = k3_trunk_span_acquire(trunk, layer, K3_ROLE_MLP_RES_NORM,
                                                    K3_ROLE_POST_ATTN_NORM, &span, err);
    if (code != K3_OK) {
        return code;
    }
    k3_attn_res_mix(model, k3_trunk_vector(trunk, &span, K3_ROLE_MLP_RES_NORM),
                    k3_trunk_vector(trunk, &span, K3_ROLE_MLP_RES_PROJ), tokens, s->mixed);
    norm_rows(model, tokens, s->normed, s->mixed,
              k3_trunk_vector(trunk, &span, K3_ROLE_POST_ATTN_NORM));
    k3_trunk_span_release(trunk, &span);
    return K3_OK;
}

static enum k3_code run_layer(struct k3_model *model, struct k3_sequence *sequence, uint32_t layer,
                              size_t tokens, struct k3_error *err)
{
    struct k3_scratch *s = &model->scratch;
    const struct k3_model_spec *spec = model->spec;
    enum k3_code code = before_attention(model, layer, tokens, err);
    if (code == K3_OK) {
        code = spec->layer_kind[layer] == K3_LAYER_KDA
                   ? k3_kda_forward(model, sequence, layer, tokens, s->normed, s->branch, err)
                   : k3_mla_forward(model, sequence, layer, tokens, s->normed, s->branch, err);
    }
    if (code == K3_OK) {
        accumulate(model, tokens, layer % spec->attn_res_block_layers == 0);
        code = before_mlp(model, layer, tokens, err);
    }
    if (code == K3_OK) {
        code = k3_spec_layer_is_moe(spec, layer)
                   ? k3_moe_forward(model, layer, tokens, s->normed, s->branch, err)
                   : k3_mlp_forward(model, layer, tokens, s->normed, s->branch, err);
    }
    if (code == K3_OK) {
        accumulate(model, tokens, false);
        code = check_finite(model, layer, tokens, sequence->length, err);
    }
    return code;
}

/* Output mix and final norm of every row. */
static enum k3_code final_rows(struct k3_model *model, size_t tokens, struct k3_error *err)
{
    const struct k3_trunk *trunk = &model->trunk;
    struct k3_trunk_span span;
    const enum k3_code code = k3_trunk_span_acquire(trunk, K3_TOP_LEVEL, K3_ROLE_OUT_RES_NORM,
                                                    K3_ROLE_FINAL_NORM, &span, err);
    if (code != K3_OK) {
        return code;
    }
    k3_attn_res_mix(model, k3_trunk_vector(trunk, &span, K3_ROLE_OUT_RES_NORM),
                    k3_trunk_vector(trunk, &span, K3_ROLE_OUT_RES_PROJ), tokens,
                    model->scratch.mixed);
    norm_rows(model, tokens, model->scratch.normed, model->scratch.mixed,
              k3_trunk_vector(trunk, &span, K3_ROLE_FINAL_NORM));
    k3_trunk_span_release(trunk, &span);
    return K3_OK;
}

static enum k3_code check_logits(const struct k3_model *model, const float *logits, size_t rows,
                                 struct k3_error *err)
{
    for (size_t i = 0; i < rows; i++) {
        if (!model->compute.kernels->all_finite(logits + i * k3_padded(model->spec->vocab),
                                                model->spec->vocab)) {
            return k3_fail(err, K3_ERR_DAMAGED, K3_ERROR_NO_OFFSET,
                           "lm_head: the logits are not finite");
        }
    }
    return K3_OK;
}

static enum k3_code run_head(struct k3_model *model, size_t tokens, float *logits, bool is_all,
                             struct k3_error *err)
{
    enum k3_code code = final_rows(model, tokens, err);
    if (code != K3_OK) {
        return code;
    }
    const size_t row = k3_padded(model->spec->hidden), rows = is_all ? tokens : 1;
    model->scratch.jobs[0] = k3_trunk_product(&model->trunk, K3_TOP_LEVEL, K3_ROLE_LM_HEAD, rows,
                                              model->scratch.normed + (tokens - rows) * row, row,
                                              logits, k3_padded(model->spec->vocab));
    code = k3_trunk_multiply(&model->trunk, model->scratch.jobs, 1, err);
    if (code != K3_OK) {
        return code;
    }
    return check_logits(model, logits, rows, err);
}

static bool may_go_on(const struct k3_layer_hook *hook, uint32_t layer)
{
    return !hook || !hook->before || hook->before(hook->user, layer);
}

enum k3_code k3_model_forward(struct k3_model *model, struct k3_sequence *sequence,
                              const uint32_t *ids, size_t tokens, float *logits, bool is_all,
                              const struct k3_layer_hook *hook, struct k3_error *err)
{
    k3_assert(tokens >= 1 && tokens <= model->scratch.tokens);
    k3_assert(tokens <= sequence->context - sequence->length);
    model->scratch.bank_count = 0;
    model->trunk.source.pass_begin(model->trunk.source.self, logits != NULL);
    enum k3_code code = embed(model, ids, tokens, err);
    for (uint32_t layer = 0; code == K3_OK && layer < model->spec->layers; layer++) {
        if (!may_go_on(hook, layer)) {
            return k3_fail(err, K3_ERR_INTERRUPTED, K3_ERROR_NO_OFFSET, "stopped on request");
        }
        code = run_layer(model, sequence, layer, tokens, err);
    }
    if (code == K3_OK && logits) {
        code = may_go_on(hook, model->spec->layers)
                   ? run_head(model, tokens, logits, is_all, err)
                   : k3_fail(err, K3_ERR_INTERRUPTED, K3_ERROR_NO_OFFSET, "stopped on request");
    }
    if (code == K3_OK) {
        sequence->length += tokens;
    }
    return code;
}
