/* SPDX-License-Identifier: Apache-2.0 */
#ifndef K3_FORMAT_PACK_ROLE_H
#define K3_FORMAT_PACK_ROLE_H

#include <stdbool.h>

#include "format/pack/layout.h"
#include "format/pack/model_spec.h"

/* What each trunk tensor is for: docs/format.md 7.2. One table says, per role, where it occurs,
 * what the checkpoint calls it, its shape there and how it is stored. Numbers are part of the
 * format. */
enum k3_role {
    K3_ROLE_ATTN_RES_NORM = 1,
    K3_ROLE_ATTN_RES_PROJ = 2,
    K3_ROLE_INPUT_NORM = 3,
    K3_ROLE_KDA_Q = 4,
    K3_ROLE_KDA_K = 5,
    K3_ROLE_KDA_V = 6,
    K3_ROLE_KDA_GATE = 7,
    K3_ROLE_KDA_F_A = 8,
    K3_ROLE_KDA_BETA = 9,
    K3_ROLE_KDA_Q_CONV = 10,
    K3_ROLE_KDA_K_CONV = 11,
    K3_ROLE_KDA_V_CONV = 12,
    K3_ROLE_KDA_F_B = 13,
    K3_ROLE_KDA_A_LOG = 14,
    K3_ROLE_KDA_DT_BIAS = 15,
    K3_ROLE_KDA_O_NORM = 16,
    K3_ROLE_MLA_Q_A = 17,
    K3_ROLE_MLA_KV_A = 18,
    K3_ROLE_MLA_KV_B_KEY = 19,
    K3_ROLE_MLA_KV_B_VALUE = 20,
    K3_ROLE_MLA_Q_A_NORM = 21,
    K3_ROLE_MLA_GATE = 22,
    K3_ROLE_MLA_KV_A_NORM = 23,
    K3_ROLE_MLA_Q_B = 24,
    K3_ROLE_ATTN_OUT = 25,
    K3_ROLE_MLP_RES_NORM = 26,
    K3_ROLE_MLP_RES_PROJ = 27,
    K3_ROLE_POST_ATTN_NORM = 28,
    K3_ROLE_DENSE_GATE = 29,
    K3_ROLE_DENSE_UP = 30,
    K3_ROLE_DENSE_DOWN = 31,
    K3_ROLE_ROUTER = 32,
    K3_ROLE_ROUTER_BIAS = 33,
    K3_ROLE_LATENT_DOWN = 34,
    K3_ROLE_SHARED_GATE = 35,
    K3_ROLE_SHARED_UP = 36,
    K3_ROLE_SHARED_DOWN = 37,
    K3_ROLE_LATENT_NORM = 38,
    K3_ROLE_LATENT_UP = 39,
    K3_ROLE_OUT_RES_NORM = 40,
    K3_ROLE_OUT_RES_PROJ = 41,
    K3_ROLE_FINAL_NORM = 42,
    K3_ROLE_LM_HEAD = 43,
    K3_ROLE_EMBEDDING = 44
};
#define K3_ROLES_END 45U /* one past the largest */

#define K3_TENSOR_NAME_MAX 128U /* longest tensor name that we make, NUL included */
#define K3_SOURCE_DIMS_MAX 3U

/* A source tensor as the checkpoint must hold it. */
struct k3_source_shape {
    enum k3_dtype dtype;
    uint32_t ndim;
    uint64_t shape[K3_SOURCE_DIMS_MAX];
};

/* The stored form of a role in a layer. */
struct k3_stored_shape {
    enum k3_encoding encoding;
    uint32_t matrix_count;
    uint32_t rows, cols;
};

/* The roles of a layer (or K3_TOP_LEVEL), in stored order: the role after `previous` (0 to begin),
 * or 0 at the end. */
unsigned k3_role_next(const struct k3_model_spec *spec, uint32_t layer, unsigned previous);

/* Shapes of a role that occurs in `layer`. a_log_len is the length of the layer's A_log, the one
 * length that the spec does not fix; ignored for other roles. */
struct k3_source_shape k3_role_source_shape(const struct k3_model_spec *spec, uint32_t layer,
                                            unsigned role, uint32_t a_log_len);
struct k3_stored_shape k3_role_stored_shape(const struct k3_model_spec *spec, uint32_t layer,
                                            unsigned role, uint32_t a_log_len);

/* "language_model.model.layers.3.self_attn.q_proj.weight". */
void k3_role_source_name(uint32_t layer, unsigned role, char out_name[K3_TENSOR_NAME_MAX]);

/* Does this role share its source tensor with the one stored before it (kv_b_proj, value part)? */
static inline bool k3_role_shares_source(unsigned role)
{
    return role == K3_ROLE_MLA_KV_B_VALUE;
}

/* The six source tensors of an expert, in the order of docs/format.md 9.4. */
void k3_expert_part_name(uint32_t layer, uint32_t expert, unsigned part,
                         char out_name[K3_TENSOR_NAME_MAX]);
/* rows x bytes per row of that part (all are U8). */
void k3_expert_part_shape(const struct k3_model_spec *spec, unsigned part, uint64_t out_shape[2]);

static inline uint64_t k3_source_elements(const struct k3_source_shape *s)
{
    uint64_t n = 1;
    for (uint32_t i = 0; i < s->ndim; i++) {
        n *= s->shape[i];
    }
    return n;
}
static inline uint64_t k3_source_bytes(const struct k3_source_shape *s)
{
    return k3_source_elements(s) * (s->dtype == K3_DTYPE_F32 ? 4U : 2U);
}

#endif
