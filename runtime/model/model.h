/* SPDX-License-Identifier: Apache-2.0 */
#ifndef K3_RUNTIME_MODEL_MODEL_H
#define K3_RUNTIME_MODEL_MODEL_H

#include "runtime/model/scratch.h"
#include "runtime/model/sequence.h"
#include "runtime/model/trunk.h"

/* The report as code: one forward pass over a chunk of tokens, layer by layer (report 4;
 * docs/arithmetic.md fixes every operation's order). Logits do not depend on how a sequence is cut
 * into chunks. */
struct k3_model {
    const struct k3_pack_tables *tables; /* borrowed */
    const struct k3_model_spec *spec;    /* = &tables->spec */
    struct k3_trunk trunk;               /* and the way to the weight source */
    struct k3_compute compute;
    struct k3_scratch scratch;
    /* The spec's reals as the arithmetic uses them. */
    float eps, mla_eps, beta, linear_beta, gate_lower_bound;
};

/* mla_eps: 1e-6 is the model's; see report 9.1. Borrows tables, and what source and compute point
 * to. Scratch is sized for `chunk` tokens and `context` positions. Errors: NO_MEMORY. */
K3_MUST_CHECK enum k3_code k3_model_init(const struct k3_pack_tables *tables,
                                         struct k3_weight_source source, struct k3_compute compute,
                                         size_t chunk, uint64_t context, double mla_eps,
                                         struct k3_model *out_model, struct k3_error *err);
void k3_model_done(struct k3_model *model);

/* Where a pass stands, for showing progress: called before each layer with its number, and with
 * spec->layers before the head. false stops the pass: INTERRUPTED. */
struct k3_layer_hook {
    bool (*before)(void *user, uint32_t layer);
    void *user;
};

/* Feeds `tokens` ids (1..chunk) at the sequence's next positions, which must fit its context.
 *   logits  rows of k3_padded(vocab) floats: of every token when is_all, else of the last one; NULL
 *           when none are wanted
 * Ids are below vocab. The sequence is undefined after an error. Errors: DAMAGED (digest, or a
 * layer that is not finite: the layer is named), IO, INTERRUPTED. */
K3_MUST_CHECK enum k3_code k3_model_forward(struct k3_model *model, struct k3_sequence *sequence,
                                            const uint32_t *ids, size_t tokens, float *logits,
                                            bool is_all, const struct k3_layer_hook *hook,
                                            struct k3_error *err);

/* The parts, each over `tokens` rows of k3_padded(hidden) floats. They acquire the tensors of
 * `layer` in the order in which they lie (docs/format.md 7.2) and hold none at the end. */
K3_MUST_CHECK enum k3_code k3_kda_forward(const struct k3_model *model,
                                          struct k3_sequence *sequence, uint32_t layer,
                                          size_t tokens, const float *x, float *out,
                                          struct k3_error *err);
K3_MUST_CHECK enum k3_code k3_mla_forward(const struct k3_model *model,
                                          struct k3_sequence *sequence, uint32_t layer,
                                          size_t tokens, const float *x, float *out,
                                          struct k3_error *err);
K3_MUST_CHECK enum k3_code k3_mlp_forward(const struct k3_model *model, uint32_t layer,
                                          size_t tokens, const float *x, float *out,
                                          struct k3_error *err);
K3_MUST_CHECK enum k3_code k3_moe_forward(const struct k3_model *model, uint32_t layer,
                                          size_t tokens, const float *x, float *out,
                                          struct k3_error *err);

/* mixed = attention-residual mix of the bank and cur (report 4.2). norm, proj: [hidden]. */
void k3_attn_res_mix(const struct k3_model *model, const float *norm, const float *proj,
                     size_t tokens, float *mixed);

#endif
