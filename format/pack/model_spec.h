/* SPDX-License-Identifier: Apache-2.0 */
#ifndef K3_FORMAT_PACK_MODEL_SPEC_H
#define K3_FORMAT_PACK_MODEL_SPEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "format/base/error.h"

/* What config.json says about the text model, in the report's words, and nothing else. Filled from
 * a checkpoint by format/safetensors/config_json, from a pack by k3_model_spec_decode. Both end in
 * k3_model_spec_check, so whoever holds a spec may rely on its bounds. docs/format.md "Model spec".
 */

#define K3_LAYERS_MAX  1024U
#define K3_EXPERTS_MAX 65535U     /* per layer                       */
#define K3_TOP_K_MAX   256U       /* experts per token               */
#define K3_DIM_MAX     (1U << 20) /* any width, rank or head count   */
#define K3_VOCAB_MAX   (1U << 22)
#define K3_CONV_MAX    16U /* taps of the short convolution   */

enum k3_layer_kind { K3_LAYER_KDA = 0, K3_LAYER_MLA = 1 };

struct k3_model_spec {
    uint32_t layers;
    uint32_t hidden; /* E                                                  */
    uint32_t vocab;  /* BPE ranks + 256 added tokens                       */
    uint64_t max_positions;

    uint32_t kda_heads;
    uint32_t kda_head_dim; /* key and value width of a head                      */
    uint32_t conv_taps;

    uint32_t mla_heads;
    uint32_t q_lora_rank;
    uint32_t kv_lora_rank;
    uint32_t qk_nope_head_dim;
    uint32_t qk_rope_head_dim; /* shared key block, never rotated                */
    uint32_t v_head_dim;

    uint32_t dense_layers; /* the first layers have a dense MLP                  */
    uint32_t dense_intermediate;
    uint32_t experts;
    uint32_t experts_per_token;
    uint32_t shared_experts; /* stored as one MLP, shared_experts times as wide */
    uint32_t latent;         /* width in which routed experts live              */
    uint32_t expert_intermediate;

    uint32_t attn_res_block_layers;
    uint32_t bos_id, eos_id, pad_id;

    double rms_norm_eps;
    double situ_beta;        /* caps the gate      */
    double situ_linear_beta; /* caps the up branch */
    double gate_lower_bound; /* < 0                */
    double routed_scaling_factor;

    uint8_t layer_kind[K3_LAYERS_MAX]; /* enum k3_layer_kind, by layer from 0 */
};

/* Widths that follow. */
static inline uint32_t k3_spec_kda_width(const struct k3_model_spec *s)
{
    return s->kda_heads * s->kda_head_dim;
}
static inline uint32_t k3_spec_qk_head_dim(const struct k3_model_spec *s)
{
    return s->qk_nope_head_dim + s->qk_rope_head_dim;
}
static inline uint32_t k3_spec_mla_out_width(const struct k3_model_spec *s)
{
    return s->mla_heads * s->v_head_dim;
}
/* Floats cached per position and MLA layer: latent, then shared key. */
static inline uint32_t k3_spec_latent_row(const struct k3_model_spec *s)
{
    return s->kv_lora_rank + s->qk_rope_head_dim;
}
static inline uint32_t k3_spec_shared_intermediate(const struct k3_model_spec *s)
{
    return s->shared_experts * s->expert_intermediate;
}
static inline uint32_t k3_spec_moe_layers(const struct k3_model_spec *s)
{
    return s->layers - s->dense_layers;
}
static inline bool k3_spec_layer_is_moe(const struct k3_model_spec *s, uint32_t layer)
{
    return layer >= s->dense_layers;
}

/* Every bound above, products of dimensions included (each at most K3_DIM_MAX), top-k <= experts,
 * latent and expert widths divisible by 32, reals finite and of the right sign, both layer kinds
 * present, ids below vocab. Names the first field that fails: MALFORMED. */
K3_MUST_CHECK enum k3_code k3_model_spec_check(const struct k3_model_spec *spec,
                                               struct k3_error *err);

/* Equal in every field, layers beyond `layers` apart. Both are checked specs. */
bool k3_model_spec_equal(const struct k3_model_spec *a, const struct k3_model_spec *b);

/* The encoded form: K3_MODEL_SPEC_FIXED_BYTES and then one byte per layer, so
 * k3_model_spec_encoded_bytes(spec) in all. Decode checks; what it accepts re-encodes to itself. */
#define K3_MODEL_SPEC_FIXED_BYTES 256U
size_t k3_model_spec_encoded_bytes(const struct k3_model_spec *spec);
void k3_model_spec_encode(const struct k3_model_spec *spec, uint8_t *out_bytes);
K3_MUST_CHECK enum k3_code k3_model_spec_decode(const uint8_t *bytes, size_t len,
                                                struct k3_model_spec *out_spec,
                                                struct k3_error *err);

#endif
