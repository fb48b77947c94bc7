/* SPDX-License-Identifier: Apache-2.0 */
#ifndef K3_TESTS_UNIT_FORMAT_PACK_RELEASED_SPEC_H
#define K3_TESTS_UNIT_FORMAT_PACK_RELEASED_SPEC_H

#include "format/pack/model_spec.h"

/* The released model, as its config.json gives it, and two things that only its tensors say. */
#define K3_RELEASED_A_LOG_LEN    128U
#define K3_RELEASED_SHARDS       96U
#define K3_RELEASED_TRUNK_BYTES  UINT64_C(113509540864)
#define K3_RELEASED_EXPERT_BYTES UINT64_C(1446456066048)

static inline struct k3_model_spec k3_released_spec(void)
{
    struct k3_model_spec spec = {
        .layers = 93,
        .hidden = 7168,
        .vocab = 163840,
        .max_positions = 1048576,
        .kda_heads = 96,
        .kda_head_dim = 128,
        .conv_taps = 4,
        .mla_heads = 96,
        .q_lora_rank = 1536,
        .kv_lora_rank = 512,
        .qk_nope_head_dim = 128,
        .qk_rope_head_dim = 64,
        .v_head_dim = 128,
        .dense_layers = 1,
        .dense_intermediate = 33792,
        .experts = 896,
        .experts_per_token = 16,
        .shared_experts = 2,
        .latent = 3584,
        .expert_intermediate = 3072,
        .attn_res_block_layers = 12,
        .bos_id = 163584,
        .eos_id = 163586,
        .pad_id = 163839,
        .rms_norm_eps = 1e-5,
        .situ_beta = 4.0,
        .situ_linear_beta = 25.0,
        .gate_lower_bound = -5.0,
        .routed_scaling_factor = 1.0,
    };
    /* config.json counts from 1: 4, 8, ..., 92 and the last layer, 93, are MLA. */
    for (uint32_t number = 1; number <= spec.layers; number++) {
        const bool is_mla = number % 4 == 0 || number == 93;
        spec.layer_kind[number - 1] = is_mla ? K3_LAYER_MLA : K3_LAYER_KDA;
    }
    return spec;
}

#endif
