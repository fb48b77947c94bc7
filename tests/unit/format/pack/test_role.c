/* SPDX-License-Identifier: Apache-2.0 */
#include "format/pack/role.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tests/support/suite_main.h"
#include "tests/unit/format/pack/pack_fixture.h"
#include "tests/unit/format/pack/released_spec.h"

enum { KDA = 1, MLA = 2, DENSE = 4, MOE = 8, TOP = 16, ALL = KDA | MLA };
enum { F32 = 1, TAPS = 2, B16 = 3, ROWS = 4 };

/* docs/format.md 7.2 for the released model, numbers in place of letters. */
static const struct {
    unsigned role;
    int where;
    const char *name;
    int dtype; /* 1 BF16, 2 F32 */
    uint64_t source[3];
    unsigned encoding, matrices;
    uint32_t rows, cols;
} roles[] = {
    {1, ALL, "self_attention_res_norm.weight", 1, {7168}, F32, 1, 1, 7168},
    {2, ALL, "self_attention_res_proj.weight", 1, {1, 7168}, F32, 1, 1, 7168},
    {3, ALL, "input_layernorm.weight", 1, {7168}, F32, 1, 1, 7168},
    {4, KDA, "self_attn.q_proj.weight", 1, {12288, 7168}, B16, 1, 12288, 7168},
    {5, KDA, "self_attn.k_proj.weight", 1, {12288, 7168}, B16, 1, 12288, 7168},
    {6, KDA, "self_attn.v_proj.weight", 1, {12288, 7168}, B16, 1, 12288, 7168},
    {7, KDA, "self_attn.g_proj.weight", 1, {12288, 7168}, B16, 1, 12288, 7168},
    {8, KDA, "self_attn.f_a_proj.weight", 1, {128, 7168}, B16, 1, 128, 7168},
    {9, KDA, "self_attn.b_proj.weight", 1, {96, 7168}, B16, 1, 96, 7168},
    {10, KDA, "self_attn.q_conv1d.weight", 2, {12288, 1, 4}, TAPS, 1, 4, 12288},
    {11, KDA, "self_attn.k_conv1d.weight", 2, {12288, 1, 4}, TAPS, 1, 4, 12288},
    {12, KDA, "self_attn.v_conv1d.weight", 2, {12288, 1, 4}, TAPS, 1, 4, 12288},
    {13, KDA, "self_attn.f_b_proj.weight", 1, {12288, 128}, B16, 1, 12288, 128},
    {14, KDA, "self_attn.A_log", 2, {128}, F32, 1, 1, 128},
    {15, KDA, "self_attn.dt_bias", 2, {12288}, F32, 1, 1, 12288},
    {16, KDA, "self_attn.o_norm.weight", 2, {128}, F32, 1, 1, 128},
    {17, MLA, "self_attn.q_a_proj.weight", 1, {1536, 7168}, B16, 1, 1536, 7168},
    {18, MLA, "self_attn.kv_a_proj_with_mqa.weight", 1, {576, 7168}, B16, 1, 576, 7168},
    {22, MLA, "self_attn.g_proj.weight", 1, {12288, 7168}, B16, 1, 12288, 7168},
    {21, MLA, "self_attn.q_a_layernorm.weight", 1, {1536}, F32, 1, 1, 1536},
    {23, MLA, "self_attn.kv_a_layernorm.weight", 1, {512}, F32, 1, 1, 512},
    {24, MLA, "self_attn.q_b_proj.weight", 1, {18432, 1536}, B16, 1, 18432, 1536},
    {19, MLA, "self_attn.kv_b_proj.weight", 1, {24576, 512}, B16, 96, 512, 128},
    {20, MLA, "self_attn.kv_b_proj.weight", 1, {24576, 512}, B16, 96, 128, 512},
    {25, ALL, "self_attn.o_proj.weight", 1, {7168, 12288}, B16, 1, 7168, 12288},
    {26, ALL, "mlp_res_norm.weight", 1, {7168}, F32, 1, 1, 7168},
    {27, ALL, "mlp_res_proj.weight", 1, {1, 7168}, F32, 1, 1, 7168},
    {28, ALL, "post_attention_layernorm.weight", 1, {7168}, F32, 1, 1, 7168},
    {29, DENSE, "mlp.gate_proj.weight", 1, {33792, 7168}, B16, 1, 33792, 7168},
    {30, DENSE, "mlp.up_proj.weight", 1, {33792, 7168}, B16, 1, 33792, 7168},
    {31, DENSE, "mlp.down_proj.weight", 1, {7168, 33792}, B16, 1, 7168, 33792},
    {32, MOE, "block_sparse_moe.gate.weight", 1, {896, 7168}, B16, 1, 896, 7168},
    {33, MOE, "block_sparse_moe.gate.e_score_correction_bias", 2, {896}, F32, 1, 1, 896},
    {34,
     MOE,
     "block_sparse_moe.routed_expert_down_proj.weight",
     1,
     {3584, 7168},
     B16,
     1,
     3584,
     7168},
    {35,
     MOE,
     "block_sparse_moe.shared_experts.gate_proj.weight",
     1,
     {6144, 7168},
     B16,
     1,
     6144,
     7168},
    {36,
     MOE,
     "block_sparse_moe.shared_experts.up_proj.weight",
     1,
     {6144, 7168},
     B16,
     1,
     6144,
     7168},
    {37,
     MOE,
     "block_sparse_moe.shared_experts.down_proj.weight",
     1,
     {7168, 6144},
     B16,
     1,
     7168,
     6144},
    {38, MOE, "block_sparse_moe.routed_expert_norm.weight", 1, {3584}, F32, 1, 1, 3584},
    {39, MOE, "block_sparse_moe.routed_expert_up_proj.weight", 1, {7168, 3584}, B16, 1, 7168, 3584},
    {40, TOP, "language_model.model.output_attn_res_norm.weight", 1, {7168}, F32, 1, 1, 7168},
    {41, TOP, "language_model.model.output_attn_res_proj.weight", 1, {1, 7168}, F32, 1, 1, 7168},
    {42, TOP, "language_model.model.norm.weight", 1, {7168}, F32, 1, 1, 7168},
    {43, TOP, "language_model.lm_head.weight", 1, {163840, 7168}, B16, 1, 163840, 7168},
    {44, TOP, "language_model.model.embed_tokens.weight", 1, {163840, 7168}, ROWS, 1, 163840, 7168},
};
enum { ROLE_COUNT = sizeof roles / sizeof roles[0] };

/* A released layer in which the role occurs. */
static uint32_t layer_with(int where)
{
    switch (where) {
    case TOP:
        return K3_TOP_LEVEL;
    case DENSE:
        return 0;
    case MLA:
    case MOE:
        return 92;
    default:
        return 90;
    }
}

START_TEST(names)
{
    const uint32_t layer = layer_with(roles[_i].where);
    char expected[256];
    if (layer == K3_TOP_LEVEL) {
        snprintf(expected, sizeof expected, "%s", roles[_i].name);
    } else {
        snprintf(expected, sizeof expected, "language_model.model.layers.%u.%s", layer,
                 roles[_i].name);
    }
    char name[K3_TENSOR_NAME_MAX];
    k3_role_source_name(layer, roles[_i].role, name);
    ck_assert_str_eq(name, expected);
}
END_TEST

START_TEST(shapes)
{
    const struct k3_model_spec spec = k3_released_spec();
    const uint32_t layer = layer_with(roles[_i].where);
    const unsigned role = roles[_i].role;
    const struct k3_source_shape source = k3_role_source_shape(&spec, layer, role, 128);
    ck_assert_int_eq((int)source.dtype, roles[_i].dtype);
    uint64_t elements = 1;
    for (uint32_t d = 0; d < 3; d++) {
        const uint64_t expected = roles[_i].source[d];
        ck_assert_msg((d < source.ndim) == (expected != 0), "%s has %u axes", roles[_i].name,
                      source.ndim);
        if (expected != 0) {
            ck_assert_uint_eq(source.shape[d], expected);
            elements *= expected;
        }
    }
    ck_assert_uint_eq(k3_source_elements(&source), elements);
    ck_assert_uint_eq(k3_source_bytes(&source), elements * (roles[_i].dtype == 2 ? 4 : 2));
    const struct k3_stored_shape stored = k3_role_stored_shape(&spec, layer, role, 128);
    ck_assert_uint_eq(stored.encoding, roles[_i].encoding);
    ck_assert_uint_eq(stored.matrix_count, roles[_i].matrices);
    ck_assert_uint_eq(stored.rows, roles[_i].rows);
    ck_assert_uint_eq(stored.cols, roles[_i].cols);
}
END_TEST

/* The order of a layer is that of the table, without the rows that it does not have. */
static void check_order(const struct k3_model_spec *spec, uint32_t layer, int has)
{
    unsigned role = 0;
    for (size_t i = 0; i < ROLE_COUNT; i++) {
        if (roles[i].where & has) {
            role = k3_role_next(spec, layer, role);
            ck_assert_msg(role == roles[i].role, "layer %u: role %u, expected %u", layer, role,
                          roles[i].role);
        }
    }
    ck_assert_uint_eq(k3_role_next(spec, layer, role), 0);
}

START_TEST(order)
{
    const struct k3_model_spec spec = k3_released_spec();
    for (uint32_t layer = 0; layer < 93; layer++) {
        const bool is_mla = layer % 4 == 3 || layer == 92;
        check_order(&spec, layer, (is_mla ? MLA : KDA) | (layer == 0 ? DENSE : MOE));
    }
    check_order(&spec, K3_TOP_LEVEL, TOP);
}
END_TEST

static uint64_t source_bytes_of(const struct k3_model_spec *spec, uint32_t layer, uint32_t *tensors,
                                uint32_t *f32s)
{
    uint64_t bytes = 0;
    for (unsigned role = k3_role_next(spec, layer, 0); role;
         role = k3_role_next(spec, layer, role)) {
        if (k3_role_shares_source(role)) {
            continue;
        }
        const struct k3_source_shape shape =
            k3_role_source_shape(spec, layer, role, K3_RELEASED_A_LOG_LEN);
        bytes += k3_source_bytes(&shape);
        ++*tensors;
        *f32s += shape.dtype == K3_DTYPE_F32;
    }
    return bytes;
}

START_TEST(released_totals)
{
    const struct k3_model_spec spec = k3_released_spec();
    uint32_t tensors = 0;
    uint32_t f32s = 0;
    uint64_t total = 0;
    for (uint32_t layer = 0; layer < 93; layer++) {
        const bool is_mla = layer % 4 == 3 || layer == 92;
        const uint64_t expected = layer == 0 ? UINT64_C(2341213184)
                                  : is_mla   ? UINT64_C(844335616)
                                             : UINT64_C(1267744256);
        const uint64_t bytes = source_bytes_of(&spec, layer, &tensors, &f32s);
        ck_assert_msg(bytes == expected, "layer %u: %" PRIu64, layer, bytes);
        total += bytes;
    }
    const uint64_t top = source_bytes_of(&spec, K3_TOP_LEVEL, &tensors, &f32s);
    ck_assert_uint_eq(top, UINT64_C(4697663488));
    ck_assert_uint_eq(total + top, K3_RELEASED_TRUNK_BYTES);
    ck_assert_uint_eq(tensors, 2460);
    ck_assert_uint_eq(f32s, 506);
}
END_TEST

static const struct {
    const char *name;
    uint64_t shape[2];
} parts[] = {
    {"w1.weight_packed", {3072, 1792}}, {"w1.weight_scale", {3072, 112}},
    {"w2.weight_packed", {3584, 1536}}, {"w2.weight_scale", {3584, 96}},
    {"w3.weight_packed", {3072, 1792}}, {"w3.weight_scale", {3072, 112}},
};

START_TEST(expert_parts)
{
    const struct k3_model_spec spec = k3_released_spec();
    uint64_t bytes = 0;
    for (unsigned part = 0; part < 6; part++) {
        char name[K3_TENSOR_NAME_MAX];
        char expected[256];
        snprintf(expected, sizeof expected,
                 "language_model.model.layers.92.block_sparse_moe.experts.895.%s",
                 parts[part].name);
        k3_expert_part_name(92, 895, part, name);
        ck_assert_str_eq(name, expected);
        uint64_t shape[2];
        k3_expert_part_shape(&spec, part, shape);
        ck_assert_uint_eq(shape[0], parts[part].shape[0]);
        ck_assert_uint_eq(shape[1], parts[part].shape[1]);
        bytes += shape[0] * shape[1];
    }
    ck_assert_uint_eq(bytes, 17547264);
    ck_assert_uint_eq(bytes * 92 * 896, K3_RELEASED_EXPERT_BYTES);
}
END_TEST

START_TEST(longest_names_fit)
{
    for (size_t i = 0; i < ROLE_COUNT; i++) {
        char name[K3_TENSOR_NAME_MAX];
        k3_role_source_name(1023, roles[i].role, name);
        ck_assert_uint_lt(strlen(name), K3_TENSOR_NAME_MAX - 1);
    }
    char name[K3_TENSOR_NAME_MAX];
    k3_expert_part_name(1023, 65534, 0, name);
    ck_assert_uint_lt(strlen(name), K3_TENSOR_NAME_MAX - 1);
}
END_TEST

START_TEST(a_log_length_is_its_own)
{
    const struct k3_model_spec spec = k3_toy_spec();
    const struct k3_source_shape a_log = k3_role_source_shape(&spec, 0, K3_ROLE_KDA_A_LOG, 77);
    ck_assert_uint_eq(a_log.shape[0], 77);
    const struct k3_source_shape dt = k3_role_source_shape(&spec, 0, K3_ROLE_KDA_DT_BIAS, 77);
    ck_assert_uint_eq(dt.shape[0], 60);
    const struct k3_stored_shape out = k3_role_stored_shape(&spec, 0, K3_ROLE_ATTN_OUT, 0);
    ck_assert_uint_eq(out.cols, 60);
    const struct k3_stored_shape mla = k3_role_stored_shape(&spec, 1, K3_ROLE_ATTN_OUT, 0);
    ck_assert_uint_eq(mla.cols, 20);
}
END_TEST

Suite *k3_suite(void)
{
    Suite *suite = suite_create("role");
    TCase *contract = tcase_create("contract");
    tcase_add_loop_test(contract, names, 0, ROLE_COUNT);
    tcase_add_loop_test(contract, shapes, 0, ROLE_COUNT);
    tcase_add_test(contract, order);
    tcase_add_test(contract, expert_parts);
    tcase_add_test(contract, longest_names_fit);
    tcase_add_test(contract, a_log_length_is_its_own);
    suite_add_tcase(suite, contract);
    TCase *released = tcase_create("released totals");
    tcase_add_test(released, released_totals);
    suite_add_tcase(suite, released);
    return suite;
}
