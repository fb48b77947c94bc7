/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/model/weights.h"

#include "format/base/assert.h"

/* Where the bytes of a layer's tensors are. */
struct binder {
    const struct k3_pack_tables *tables;
    uint32_t layer;
    const uint8_t *extent_bytes;
    uint64_t extent_offset;
};

static const uint8_t *tensor_bytes(const struct binder *b, unsigned role,
                                   const struct k3_trunk_tensor **out_tensor)
{
    const struct k3_trunk_tensor *tensor = k3_trunk_find(b->tables, b->layer, role);
    k3_assert(tensor);
    *out_tensor = tensor;
    return b->extent_bytes + (tensor->file_offset - b->extent_offset);
}

struct k3_matrix k3_matrix_view(const struct k3_trunk_tensor *tensor, const uint8_t *bytes)
{
    k3_assert(tensor->encoding == K3_ENCODING_B16);
    const size_t cols_padded = k3_padded(tensor->cols);
    const size_t tile_count = (tensor->rows + K3_TILE_ROWS - 1) / K3_TILE_ROWS;
    const size_t tile_bytes = k3_b16_tile_bytes(cols_padded);
    return (struct k3_matrix){
        .run = {.tiles = bytes,
                .tile_stride_bytes = tile_bytes,
                .tile_count = tile_count,
                .cols_padded = cols_padded},
        .rows = tensor->rows,
        .cols = tensor->cols,
        .matrix_count = tensor->matrix_count,
        .matrix_bytes = tile_count * tile_bytes,
    };
}

static struct k3_matrix matrix(const struct binder *b, unsigned role)
{
    const struct k3_trunk_tensor *tensor = NULL;
    const uint8_t *bytes = tensor_bytes(b, role, &tensor);
    return k3_matrix_view(tensor, bytes);
}

static const float *vector(const struct binder *b, unsigned role)
{
    const struct k3_trunk_tensor *tensor = NULL;
    const uint8_t *bytes = tensor_bytes(b, role, &tensor);
    k3_assert(tensor->encoding == K3_ENCODING_F32 || tensor->encoding == K3_ENCODING_TAPS);
    /* Tensors start on 4096 bytes of a page-aligned mapping, so this is aligned. */
    return (const float *)(const void *)bytes;
}

static void bind_kda(const struct binder *b, struct k3_kda_weights *w)
{
    w->q = matrix(b, K3_ROLE_KDA_Q);
    w->k = matrix(b, K3_ROLE_KDA_K);
    w->v = matrix(b, K3_ROLE_KDA_V);
    w->gate = matrix(b, K3_ROLE_KDA_GATE);
    w->f_a = matrix(b, K3_ROLE_KDA_F_A);
    w->beta = matrix(b, K3_ROLE_KDA_BETA);
    w->f_b = matrix(b, K3_ROLE_KDA_F_B);
    w->conv[0] = vector(b, K3_ROLE_KDA_Q_CONV);
    w->conv[1] = vector(b, K3_ROLE_KDA_K_CONV);
    w->conv[2] = vector(b, K3_ROLE_KDA_V_CONV);
    w->a_log = vector(b, K3_ROLE_KDA_A_LOG);
    w->dt_bias = vector(b, K3_ROLE_KDA_DT_BIAS);
    w->o_norm = vector(b, K3_ROLE_KDA_O_NORM);
}

static void bind_mla(const struct binder *b, struct k3_mla_weights *w)
{
    w->q_a = matrix(b, K3_ROLE_MLA_Q_A);
    w->kv_a = matrix(b, K3_ROLE_MLA_KV_A);
    w->gate = matrix(b, K3_ROLE_MLA_GATE);
    w->q_b = matrix(b, K3_ROLE_MLA_Q_B);
    w->key = matrix(b, K3_ROLE_MLA_KV_B_KEY);
    w->value = matrix(b, K3_ROLE_MLA_KV_B_VALUE);
    w->q_a_norm = vector(b, K3_ROLE_MLA_Q_A_NORM);
    w->kv_a_norm = vector(b, K3_ROLE_MLA_KV_A_NORM);
}

static void bind_moe(const struct binder *b, struct k3_moe_weights *w)
{
    w->router = matrix(b, K3_ROLE_ROUTER);
    w->latent_down = matrix(b, K3_ROLE_LATENT_DOWN);
    w->latent_up = matrix(b, K3_ROLE_LATENT_UP);
    w->shared.gate = matrix(b, K3_ROLE_SHARED_GATE);
    w->shared.up = matrix(b, K3_ROLE_SHARED_UP);
    w->shared.down = matrix(b, K3_ROLE_SHARED_DOWN);
    w->router_bias = vector(b, K3_ROLE_ROUTER_BIAS);
    w->latent_norm = vector(b, K3_ROLE_LATENT_NORM);
}

void k3_layer_weights_bind(const struct k3_pack_tables *tables, uint32_t layer,
                           const uint8_t *extent_bytes, struct k3_layer_weights *out_weights)
{
    const struct binder b = {tables, layer, extent_bytes, tables->extents[layer].file_offset};
    struct k3_layer_weights *w = out_weights;
    w->kind = (enum k3_layer_kind)tables->spec.layer_kind[layer];
    w->is_moe = k3_spec_layer_is_moe(&tables->spec, layer);
    w->attn_res.norm = vector(&b, K3_ROLE_ATTN_RES_NORM);
    w->attn_res.proj = vector(&b, K3_ROLE_ATTN_RES_PROJ);
    w->mlp_res.norm = vector(&b, K3_ROLE_MLP_RES_NORM);
    w->mlp_res.proj = vector(&b, K3_ROLE_MLP_RES_PROJ);
    w->input_norm = vector(&b, K3_ROLE_INPUT_NORM);
    w->post_attn_norm = vector(&b, K3_ROLE_POST_ATTN_NORM);
    w->attn_out = matrix(&b, K3_ROLE_ATTN_OUT);
    if (w->kind == K3_LAYER_KDA) {
        bind_kda(&b, &w->kda);
    } else {
        bind_mla(&b, &w->mla);
    }
    if (w->is_moe) {
        bind_moe(&b, &w->moe);
    } else {
        w->dense.gate = matrix(&b, K3_ROLE_DENSE_GATE);
        w->dense.up = matrix(&b, K3_ROLE_DENSE_UP);
        w->dense.down = matrix(&b, K3_ROLE_DENSE_DOWN);
    }
}

struct k3_expert_weights k3_expert_weights_view(const struct k3_pack_tables *tables,
                                                const uint8_t *expert_bytes)
{
    const struct k3_expert_layout *layout = &tables->layout;
    const struct k3_model_spec *spec = &tables->spec;
    const size_t w13 = (size_t)layout->w13_tile_bytes;
    struct k3_expert_weights w;
    /* w1 and w3 alternate tile by tile (docs/format.md 8.1). */
    w.gate = (struct k3_tile_run){
        .tiles = expert_bytes,
        .tile_stride_bytes = 2 * w13,
        .tile_count = (spec->expert_intermediate + K3_TILE_ROWS - 1) / K3_TILE_ROWS,
        .cols_padded = k3_padded(spec->latent),
    };
    w.up = w.gate;
    w.up.tiles += w13;
    w.down = (struct k3_tile_run){
        .tiles = expert_bytes + layout->w2_offset,
        .tile_stride_bytes = (size_t)layout->w2_tile_bytes,
        .tile_count = (spec->latent + K3_TILE_ROWS - 1) / K3_TILE_ROWS,
        .cols_padded = k3_padded(spec->expert_intermediate),
    };
    return w;
}

struct k3_matmul k3_matmul_of(const struct k3_matrix *w, size_t tokens, const float *x,
                              size_t x_stride, float *y, size_t y_stride)
{
    return (struct k3_matmul){.kind = K3_MATMUL_B16,
                              .run = w->run,
                              .tokens = tokens,
                              .x = x,
                              .x_stride = x_stride,
                              .y = y,
                              .y_stride = y_stride};
}
