/* SPDX-License-Identifier: Apache-2.0 */
/* All problems of a config.json at once: each key that is missing is named by its path. */
#include "format/safetensors/config_json.h"

#include <stdlib.h>
#include <string.h>

#include "tests/support/failing.h"
#include "tests/support/suite_main.h"
#include "tests/unit/format/safetensors/config_fixture.h"
#include "tests/unit/format/safetensors/shard_fixture.h"

static struct k3_error err;
static struct k3_problems problems;
static struct k3_model_spec spec;
static json_t *root;

static void set_up(void)
{
    root = k3_config_released();
}

static void tear_down(void)
{
    json_decref(root);
    k3_problems_done(&problems);
}

static const char *const required[] = {
    "text_config.hidden_size",
    "text_config.num_hidden_layers",
    "text_config.vocab_size",
    "text_config.rms_norm_eps",
    "text_config.tie_word_embeddings",
    "text_config.max_position_embeddings",
    "text_config.hidden_act",
    "text_config.activation_situ_beta",
    "text_config.activation_situ_linear_beta",
    "text_config.num_attention_heads",
    "text_config.num_key_value_heads",
    "text_config.q_lora_rank",
    "text_config.kv_lora_rank",
    "text_config.qk_nope_head_dim",
    "text_config.qk_rope_head_dim",
    "text_config.v_head_dim",
    "text_config.mla_use_nope",
    "text_config.mla_use_output_gate",
    "text_config.first_k_dense_replace",
    "text_config.moe_layer_freq",
    "text_config.intermediate_size",
    "text_config.num_experts",
    "text_config.num_experts_per_token",
    "text_config.num_shared_experts",
    "text_config.routed_expert_hidden_size",
    "text_config.moe_intermediate_size",
    "text_config.latent_moe_use_norm",
    "text_config.moe_router_activation_func",
    "text_config.moe_renormalize",
    "text_config.routed_scaling_factor",
    "text_config.topk_method",
    "text_config.use_grouped_topk",
    "text_config.num_expert_group",
    "text_config.topk_group",
    "text_config.num_nextn_predict_layers",
    "text_config.attn_res_block_size",
    "text_config.bos_token_id",
    "text_config.eos_token_id",
    "text_config.pad_token_id",
    LINEAR "num_heads",
    LINEAR "head_dim",
    LINEAR "short_conv_kernel_size",
    LINEAR "gate_lower_bound",
    LINEAR "use_full_rank_gate",
    LINEAR "full_attn_layers",
    LINEAR "kda_layers",
    QUANT "quant_method",
    QUANT "format",
    QUANT "kv_cache_scheme",
    GROUP "format",
    GROUP "input_activations",
    WEIGHTS "num_bits",
    WEIGHTS "group_size",
    WEIGHTS "type",
    WEIGHTS "symmetric",
    WEIGHTS "scale_dtype",
};

enum { REQUIRED_COUNT = sizeof required / sizeof required[0] };

/* One of them alone, by its path, and nothing else. */
START_TEST(each_missing_key_is_named)
{
    k3_config_put(root, required[_i], NULL);
    ck_assert_code(k3_config_parse_root(root, &spec, &problems, &err), K3_ERR_MALFORMED);
    ck_assert_msg(problems.total == 1, "%s:%s", required[_i], k3_problems_text(&problems));
    ck_assert_msg(k3_problems_mention(&problems, required[_i], "missing"), "%s:%s", required[_i],
                  k3_problems_text(&problems));
}
END_TEST

START_TEST(all_missing_keys_are_named)
{
    for (size_t i = 0; i < REQUIRED_COUNT; i++) {
        k3_config_put(root, required[i], NULL);
    }
    ck_assert_code(k3_config_parse_root(root, &spec, &problems, &err), K3_ERR_MALFORMED);
    ck_assert_msg(problems.total == REQUIRED_COUNT, "%zu", problems.total);
    for (size_t i = 0; i < REQUIRED_COUNT; i++) {
        ck_assert_msg(k3_problems_mention(&problems, required[i], "missing"), "%s", required[i]);
    }
}
END_TEST

START_TEST(types_and_values_together)
{
    k3_config_put(root, "text_config.hidden_size", "3.5");
    k3_config_put(root, "text_config.hidden_act", "\"silu\"");
    k3_config_put(root, "text_config.num_experts", "-1");
    k3_config_put(root, LINEAR "kda_layers", NULL);
    k3_config_put(root, WEIGHTS "num_bits", "8");
    k3_config_put(root, "eos_token_id", "1");
    ck_assert_code(k3_config_parse_root(root, &spec, &problems, &err), K3_ERR_MALFORMED);
    ck_assert_msg(problems.total == 6, "%s", k3_problems_text(&problems));
}
END_TEST

/* Earlier problems of the caller neither count nor disappear. */
START_TEST(problems_are_added)
{
    k3_problems_add(&problems, K3_ERR_NO_INPUT, "before");
    ck_assert_code(k3_config_parse_root(root, &spec, &problems, &err), K3_OK);
    ck_assert_uint_eq(problems.total, 1);
    k3_config_put(root, "text_config.hidden_size", NULL);
    ck_assert_code(k3_config_parse_root(root, &spec, &problems, &err), K3_ERR_MALFORMED);
    ck_assert_uint_eq(problems.total, 2);
    ck_assert_int_eq(problems.code, K3_ERR_NO_INPUT);
}
END_TEST

START_TEST(every_allocation_once)
{
    k3_config_put(root, "text_config.hidden_size", NULL);
    char *text = json_dumps(root, 0);
    ck_assert_ptr_nonnull(text);
    uint64_t hits = 0;
    for (uint64_t nth = 1;; nth++) {
        struct k3_problems found = {0};
        k3_failing_arm(K3_FAILING_ALLOC, K3_FAILING_ONCE, nth);
        const enum k3_code code =
            k3_config_parse((const uint8_t *)text, strlen(text), &spec, &found, &err);
        const bool hit = k3_failing_disarm();
        const enum k3_code listed = found.code;
        k3_problems_done(&found);
        if (!hit) {
            ck_assert_int_eq(code, K3_ERR_MALFORMED);
            break;
        }
        hits++;
        /* The last ones copy the line to the caller, who learns of it from its own list. */
        ck_assert(code == K3_ERR_NO_MEMORY || listed == K3_ERR_NO_MEMORY);
        ck_assert_int_ne(code, K3_OK);
    }
    ck_assert_uint_gt(hits, 100);
    free(text);
}
END_TEST

Suite *k3_suite(void)
{
    Suite *suite = suite_create("config_problems");
    TCase *together = tcase_create("all problems at once");
    tcase_add_checked_fixture(together, set_up, tear_down);
    tcase_add_loop_test(together, each_missing_key_is_named, 0, REQUIRED_COUNT);
    tcase_add_test(together, all_missing_keys_are_named);
    tcase_add_test(together, types_and_values_together);
    tcase_add_test(together, problems_are_added);
    suite_add_tcase(suite, together);
    TCase *failing = tcase_create("fail everything once");
    tcase_add_checked_fixture(failing, set_up, tear_down);
    tcase_add_test(failing, every_allocation_once);
    suite_add_tcase(suite, failing);
    return suite;
}
