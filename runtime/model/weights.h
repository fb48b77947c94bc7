/* SPDX-License-Identifier: Apache-2.0 */
#ifndef K3_RUNTIME_MODEL_WEIGHTS_H
#define K3_RUNTIME_MODEL_WEIGHTS_H

#include "format/pack/tables.h"
#include "runtime/model/compute.h"

/* Typed views of a layer's bytes: pointers into memory that the weight source holds, valid until it
 * is released. Names are those of the report. */

struct k3_matrix {
    struct k3_tile_run run; /* of one matrix            */
    uint32_t rows, cols;    /* of one matrix, unpadded  */
    uint32_t matrix_count;
    size_t matrix_bytes; /* from one matrix to the next */
};

struct k3_kda_weights {
    struct k3_matrix q, k, v, gate, f_a, beta, f_b;
    const float *conv[3]; /* q, k, v: [taps][heads * head_dim]  */
    const float *a_log;   /* [heads], more behind it is ignored */
    const float *dt_bias; /* [heads * head_dim]                 */
    const float *o_norm;  /* [head_dim]                         */
};

struct k3_mla_weights {
    struct k3_matrix q_a, kv_a, gate, q_b;
    struct k3_matrix key;   /* per head, transposed: latent x nope */
    struct k3_matrix value; /* per head: v_head_dim x latent       */
    const float *q_a_norm, *kv_a_norm;
};

struct k3_mlp_weights {
    struct k3_matrix gate, up, down;
};

struct k3_moe_weights {
    struct k3_matrix router, latent_down, latent_up;
    struct k3_mlp_weights shared;
    const float *router_bias; /* [experts] */
    const float *latent_norm; /* [latent]  */
};

struct k3_res_mix_weights {
    const float *norm, *proj; /* [hidden] each */
};

struct k3_layer_weights {
    enum k3_layer_kind kind;
    bool is_moe;
    struct k3_res_mix_weights attn_res, mlp_res;
    const float *input_norm, *post_attn_norm;
    union {
        struct k3_kda_weights kda;
        struct k3_mla_weights mla;
    };
    struct k3_matrix attn_out;
    union {
        struct k3_mlp_weights dense;
        struct k3_moe_weights moe;
    };
};

/* An expert's w1 (gate), w3 (up) and w2 (down). */
struct k3_expert_weights {
    struct k3_tile_run gate, up, down;
};

/* Views of layer `layer`, whose extent's first byte is at `extent_bytes`. */
void k3_layer_weights_bind(const struct k3_pack_tables *tables, uint32_t layer,
                           const uint8_t *extent_bytes, struct k3_layer_weights *out_weights);

/* One tensor (a matrix) of which `bytes` is the first byte. */
struct k3_matrix k3_matrix_view(const struct k3_trunk_tensor *tensor, const uint8_t *bytes);

struct k3_expert_weights k3_expert_weights_view(const struct k3_pack_tables *tables,
                                                const uint8_t *expert_bytes);

/* y = W x, rows of x and y at their strides. */
struct k3_matmul k3_matmul_of(const struct k3_matrix *w, size_t tokens, const float *x,
                              size_t x_stride, float *y, size_t y_stride);

#endif
