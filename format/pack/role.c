/* SPDX-License-Identifier: Apache-2.0 */
#include "format/pack/role.h"

#include <stdio.h>

#include "format/base/assert.h"

/* Dimensions by the names of docs/format.md 7.2. */
enum dim {
    ONE,
    DIM_E,
    DIM_H,
    DIM_D,
    DIM_W, /* H * D */
    DIM_TAPS,
    DIM_A_LOG,
    DIM_Q,
    DIM_R,
    DIM_R_DR,   /* R + dr */
    DIM_A_DV,   /* A * dv */
    DIM_A_DNDR, /* A * (dn + dr) */
    DIM_DN,
    DIM_DV,
    DIM_ATTN, /* W in KDA layers, A * dv in MLA layers */
    DIM_I,
    DIM_N,
    DIM_Z,
    DIM_J,
    DIM_V
};

enum place { IN_KDA = 1, IN_MLA = 2, IN_DENSE = 4, IN_MOE = 8, IN_TOP = 16, IN_ALL = 32 };

/* How the source shape follows from rows x cols. */
enum form {
    VECTOR, /* [cols]                      */
    ROW,    /* [1, cols]                   */
    MATRIX, /* [rows, cols]                */
    CONV,   /* [cols, 1, rows]             */
    KV_B    /* [A * (dn + dv), R]          */
};

struct role_row {
    unsigned role;
    unsigned place;
    const char *name;
    enum k3_dtype dtype;
    enum form form;
    enum dim rows, cols;
    enum k3_encoding encoding;
};

#define BF16 K3_DTYPE_BF16
#define F32  K3_DTYPE_F32
#define TILE K3_ENCODING_B16
#define VEC  K3_ENCODING_F32
#define MOE  "block_sparse_moe."
#define TOP  "language_model.model."

/* In stored order. */
static const struct role_row table[] = {
    {K3_ROLE_ATTN_RES_NORM, IN_ALL, "self_attention_res_norm.weight", BF16, VECTOR, ONE, DIM_E,
     VEC},
    {K3_ROLE_ATTN_RES_PROJ, IN_ALL, "self_attention_res_proj.weight", BF16, ROW, ONE, DIM_E, VEC},
    {K3_ROLE_INPUT_NORM, IN_ALL, "input_layernorm.weight", BF16, VECTOR, ONE, DIM_E, VEC},

    {K3_ROLE_KDA_Q, IN_KDA, "self_attn.q_proj.weight", BF16, MATRIX, DIM_W, DIM_E, TILE},
    {K3_ROLE_KDA_K, IN_KDA, "self_attn.k_proj.weight", BF16, MATRIX, DIM_W, DIM_E, TILE},
    {K3_ROLE_KDA_V, IN_KDA, "self_attn.v_proj.weight", BF16, MATRIX, DIM_W, DIM_E, TILE},
    {K3_ROLE_KDA_GATE, IN_KDA, "self_attn.g_proj.weight", BF16, MATRIX, DIM_W, DIM_E, TILE},
    {K3_ROLE_KDA_F_A, IN_KDA, "self_attn.f_a_proj.weight", BF16, MATRIX, DIM_D, DIM_E, TILE},
    {K3_ROLE_KDA_BETA, IN_KDA, "self_attn.b_proj.weight", BF16, MATRIX, DIM_H, DIM_E, TILE},
    {K3_ROLE_KDA_Q_CONV, IN_KDA, "self_attn.q_conv1d.weight", F32, CONV, DIM_TAPS, DIM_W,
     K3_ENCODING_TAPS},
    {K3_ROLE_KDA_K_CONV, IN_KDA, "self_attn.k_conv1d.weight", F32, CONV, DIM_TAPS, DIM_W,
     K3_ENCODING_TAPS},
    {K3_ROLE_KDA_V_CONV, IN_KDA, "self_attn.v_conv1d.weight", F32, CONV, DIM_TAPS, DIM_W,
     K3_ENCODING_TAPS},
    {K3_ROLE_KDA_F_B, IN_KDA, "self_attn.f_b_proj.weight", BF16, MATRIX, DIM_W, DIM_D, TILE},
    {K3_ROLE_KDA_A_LOG, IN_KDA, "self_attn.A_log", F32, VECTOR, ONE, DIM_A_LOG, VEC},
    {K3_ROLE_KDA_DT_BIAS, IN_KDA, "self_attn.dt_bias", F32, VECTOR, ONE, DIM_W, VEC},
    {K3_ROLE_KDA_O_NORM, IN_KDA, "self_attn.o_norm.weight", F32, VECTOR, ONE, DIM_D, VEC},

    {K3_ROLE_MLA_Q_A, IN_MLA, "self_attn.q_a_proj.weight", BF16, MATRIX, DIM_Q, DIM_E, TILE},
    {K3_ROLE_MLA_KV_A, IN_MLA, "self_attn.kv_a_proj_with_mqa.weight", BF16, MATRIX, DIM_R_DR, DIM_E,
     TILE},
    {K3_ROLE_MLA_GATE, IN_MLA, "self_attn.g_proj.weight", BF16, MATRIX, DIM_A_DV, DIM_E, TILE},
    {K3_ROLE_MLA_Q_A_NORM, IN_MLA, "self_attn.q_a_layernorm.weight", BF16, VECTOR, ONE, DIM_Q, VEC},
    {K3_ROLE_MLA_KV_A_NORM, IN_MLA, "self_attn.kv_a_layernorm.weight", BF16, VECTOR, ONE, DIM_R,
     VEC},
    {K3_ROLE_MLA_Q_B, IN_MLA, "self_attn.q_b_proj.weight", BF16, MATRIX, DIM_A_DNDR, DIM_Q, TILE},
    {K3_ROLE_MLA_KV_B_KEY, IN_MLA, "self_attn.kv_b_proj.weight", BF16, KV_B, DIM_R, DIM_DN, TILE},
    {K3_ROLE_MLA_KV_B_VALUE, IN_MLA, "self_attn.kv_b_proj.weight", BF16, KV_B, DIM_DV, DIM_R, TILE},

    {K3_ROLE_ATTN_OUT, IN_ALL, "self_attn.o_proj.weight", BF16, MATRIX, DIM_E, DIM_ATTN, TILE},
    {K3_ROLE_MLP_RES_NORM, IN_ALL, "mlp_res_norm.weight", BF16, VECTOR, ONE, DIM_E, VEC},
    {K3_ROLE_MLP_RES_PROJ, IN_ALL, "mlp_res_proj.weight", BF16, ROW, ONE, DIM_E, VEC},
    {K3_ROLE_POST_ATTN_NORM, IN_ALL, "post_attention_layernorm.weight", BF16, VECTOR, ONE, DIM_E,
     VEC},

    {K3_ROLE_DENSE_GATE, IN_DENSE, "mlp.gate_proj.weight", BF16, MATRIX, DIM_I, DIM_E, TILE},
    {K3_ROLE_DENSE_UP, IN_DENSE, "mlp.up_proj.weight", BF16, MATRIX, DIM_I, DIM_E, TILE},
    {K3_ROLE_DENSE_DOWN, IN_DENSE, "mlp.down_proj.weight", BF16, MATRIX, DIM_E, DIM_I, TILE},

    {K3_ROLE_ROUTER, IN_MOE, MOE "gate.weight", BF16, MATRIX, DIM_N, DIM_E, TILE},
    {K3_ROLE_ROUTER_BIAS, IN_MOE, MOE "gate.e_score_correction_bias", F32, VECTOR, ONE, DIM_N, VEC},
    {K3_ROLE_LATENT_DOWN, IN_MOE, MOE "routed_expert_down_proj.weight", BF16, MATRIX, DIM_Z, DIM_E,
     TILE},
    {K3_ROLE_SHARED_GATE, IN_MOE, MOE "shared_experts.gate_proj.weight", BF16, MATRIX, DIM_J, DIM_E,
     TILE},
    {K3_ROLE_SHARED_UP, IN_MOE, MOE "shared_experts.up_proj.weight", BF16, MATRIX, DIM_J, DIM_E,
     TILE},
    {K3_ROLE_SHARED_DOWN, IN_MOE, MOE "shared_experts.down_proj.weight", BF16, MATRIX, DIM_E, DIM_J,
     TILE},
    {K3_ROLE_LATENT_NORM, IN_MOE, MOE "routed_expert_norm.weight", BF16, VECTOR, ONE, DIM_Z, VEC},
    {K3_ROLE_LATENT_UP, IN_MOE, MOE "routed_expert_up_proj.weight", BF16, MATRIX, DIM_E, DIM_Z,
     TILE},

    {K3_ROLE_OUT_RES_NORM, IN_TOP, TOP "output_attn_res_norm.weight", BF16, VECTOR, ONE, DIM_E,
     VEC},
    {K3_ROLE_OUT_RES_PROJ, IN_TOP, TOP "output_attn_res_proj.weight", BF16, ROW, ONE, DIM_E, VEC},
    {K3_ROLE_FINAL_NORM, IN_TOP, TOP "norm.weight", BF16, VECTOR, ONE, DIM_E, VEC},
    {K3_ROLE_LM_HEAD, IN_TOP, "language_model.lm_head.weight", BF16, MATRIX, DIM_V, DIM_E, TILE},
    {K3_ROLE_EMBEDDING, IN_TOP, TOP "embed_tokens.weight", BF16, MATRIX, DIM_V, DIM_E,
     K3_ENCODING_ROWS},
};
#define ROWS (sizeof table / sizeof table[0])

static uint32_t dim_of(const struct k3_model_spec *s, uint32_t layer, enum dim dim,
                       uint32_t a_log_len)
{
    switch (dim) {
    case ONE:
        return 1;
    case DIM_E:
        return s->hidden;
    case DIM_H:
        return s->kda_heads;
    case DIM_D:
        return s->kda_head_dim;
    case DIM_W:
        return k3_spec_kda_width(s);
    case DIM_TAPS:
        return s->conv_taps;
    case DIM_A_LOG:
        return a_log_len;
    case DIM_Q:
        return s->q_lora_rank;
    case DIM_R:
        return s->kv_lora_rank;
    case DIM_R_DR:
        return k3_spec_latent_row(s);
    case DIM_A_DV:
        return k3_spec_mla_out_width(s);
    case DIM_A_DNDR:
        return s->mla_heads * k3_spec_qk_head_dim(s);
    case DIM_DN:
        return s->qk_nope_head_dim;
    case DIM_DV:
        return s->v_head_dim;
    case DIM_ATTN:
        return s->layer_kind[layer] == K3_LAYER_KDA ? k3_spec_kda_width(s)
                                                    : k3_spec_mla_out_width(s);
    case DIM_I:
        return s->dense_intermediate;
    case DIM_N:
        return s->experts;
    case DIM_Z:
        return s->latent;
    case DIM_J:
        return k3_spec_shared_intermediate(s);
    case DIM_V:
        return s->vocab;
    }
    k3_assert_failed("unknown dimension", __FILE__, __LINE__);
}

static const struct role_row *row_of(unsigned role)
{
    for (size_t i = 0; i < ROWS; i++) {
        if (table[i].role == role) {
            return &table[i];
        }
    }
    k3_assert_failed("unknown role", __FILE__, __LINE__);
}

static unsigned places_of(const struct k3_model_spec *spec, uint32_t layer)
{
    if (layer == K3_TOP_LEVEL) {
        return IN_TOP;
    }
    return IN_ALL | (spec->layer_kind[layer] == K3_LAYER_KDA ? (unsigned)IN_KDA : IN_MLA) |
           (k3_spec_layer_is_moe(spec, layer) ? (unsigned)IN_MOE : IN_DENSE);
}

unsigned k3_role_next(const struct k3_model_spec *spec, uint32_t layer, unsigned previous)
{
    const unsigned places = places_of(spec, layer);
    size_t i = previous == 0 ? 0 : (size_t)(row_of(previous) - table) + 1;
    while (i < ROWS && (table[i].place & places) == 0) {
        i++;
    }
    return i < ROWS ? table[i].role : 0;
}

struct k3_stored_shape k3_role_stored_shape(const struct k3_model_spec *spec, uint32_t layer,
                                            unsigned role, uint32_t a_log_len)
{
    const struct role_row *row = row_of(role);
    return (struct k3_stored_shape){
        .encoding = row->encoding,
        .matrix_count = row->form == KV_B ? spec->mla_heads : 1,
        .rows = dim_of(spec, layer, row->rows, a_log_len),
        .cols = dim_of(spec, layer, row->cols, a_log_len),
    };
}

struct k3_source_shape k3_role_source_shape(const struct k3_model_spec *spec, uint32_t layer,
                                            unsigned role, uint32_t a_log_len)
{
    const struct role_row *row = row_of(role);
    const uint64_t rows = dim_of(spec, layer, row->rows, a_log_len);
    const uint64_t cols = dim_of(spec, layer, row->cols, a_log_len);
    struct k3_source_shape s = {.dtype = row->dtype};
    switch (row->form) {
    case VECTOR:
        s.ndim = 1;
        s.shape[0] = cols;
        break;
    case ROW:
    case MATRIX:
        s.ndim = 2;
        s.shape[0] = rows;
        s.shape[1] = cols;
        break;
    case CONV:
        s.ndim = 3;
        s.shape[0] = cols;
        s.shape[1] = 1;
        s.shape[2] = rows;
        break;
    case KV_B:
        s.ndim = 2;
        s.shape[0] =
            (uint64_t)spec->mla_heads * ((uint64_t)spec->qk_nope_head_dim + spec->v_head_dim);
        s.shape[1] = spec->kv_lora_rank;
        break;
    }
    return s;
}

void k3_role_source_name(uint32_t layer, unsigned role, char out_name[K3_TENSOR_NAME_MAX])
{
    const struct role_row *row = row_of(role);
    if (row->place == IN_TOP) {
        snprintf(out_name, K3_TENSOR_NAME_MAX, "%s", row->name);
    } else {
        snprintf(out_name, K3_TENSOR_NAME_MAX, "language_model.model.layers.%u.%s", layer,
                 row->name);
    }
}

void k3_expert_part_name(uint32_t layer, uint32_t expert, unsigned part,
                         char out_name[K3_TENSOR_NAME_MAX])
{
    snprintf(out_name, K3_TENSOR_NAME_MAX,
             "language_model.model.layers.%u.block_sparse_moe.experts.%u.w%u.weight_%s", layer,
             expert, part / 2 + 1, part % 2 == 0 ? "packed" : "scale");
}

void k3_expert_part_shape(const struct k3_model_spec *spec, unsigned part, uint64_t out_shape[2])
{
    const bool is_down = part / 2 == 1; /* w2 */
    const uint64_t rows = is_down ? spec->latent : spec->expert_intermediate;
    const uint64_t cols = is_down ? spec->expert_intermediate : spec->latent;
    out_shape[0] = rows;
    out_shape[1] = part % 2 == 0 ? cols / 2 : cols / 32;
}
