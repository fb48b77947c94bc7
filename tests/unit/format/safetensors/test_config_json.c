/* SPDX-License-Identifier: Apache-2.0 */
/* The released config.json, and what becomes of it when one thing is changed. */
#include "format/safetensors/config_json.h"

#include <stdlib.h>
#include <string.h>

#include "format/base/file.h"
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

static void check_released(void)
{
    ck_assert_uint_eq(spec.layers, 93);
    ck_assert_uint_eq(spec.hidden, 7168);
    ck_assert_uint_eq(spec.vocab, 163840);
    ck_assert_uint_eq(spec.max_positions, 1048576);
    ck_assert_uint_eq(spec.kda_heads, 96);
    ck_assert_uint_eq(spec.kda_head_dim, 128);
    ck_assert_uint_eq(spec.conv_taps, 4);
    ck_assert_uint_eq(spec.mla_heads, 96);
    ck_assert_uint_eq(spec.q_lora_rank, 1536);
    ck_assert_uint_eq(spec.kv_lora_rank, 512);
    ck_assert_uint_eq(spec.qk_nope_head_dim, 128);
    ck_assert_uint_eq(spec.qk_rope_head_dim, 64);
    ck_assert_uint_eq(spec.v_head_dim, 128);
    ck_assert_uint_eq(spec.dense_layers, 1);
    ck_assert_uint_eq(spec.dense_intermediate, 33792);
    ck_assert_uint_eq(spec.experts, 896);
    ck_assert_uint_eq(spec.experts_per_token, 16);
    ck_assert_uint_eq(spec.shared_experts, 2);
    ck_assert_uint_eq(spec.latent, 3584);
    ck_assert_uint_eq(spec.expert_intermediate, 3072);
    ck_assert_uint_eq(spec.attn_res_block_layers, 12);
    ck_assert_uint_eq(spec.bos_id, 163584);
    ck_assert_uint_eq(spec.eos_id, 163586);
    ck_assert_uint_eq(spec.pad_id, 163839);
    ck_assert(spec.rms_norm_eps == 1e-5);
    ck_assert(spec.situ_beta == 4.0);
    ck_assert(spec.situ_linear_beta == 25.0);
    ck_assert(spec.gate_lower_bound == -5.0);
    ck_assert(spec.routed_scaling_factor == 1.0);
    for (uint32_t layer = 0; layer < 93; layer++) {
        const bool is_mla = layer % 4 == 3 || layer == 92;
        ck_assert_uint_eq(spec.layer_kind[layer], is_mla ? K3_LAYER_MLA : K3_LAYER_KDA);
    }
}

START_TEST(released)
{
    uint8_t *bytes = NULL;
    size_t len = 0;
    ck_assert_ok(k3_file_read_all(K3_CONFIG_RELEASED, K3_CONFIG_MAX, &bytes, &len, &err));
    ck_assert_uint_eq(len, 7006);
    ck_assert_ok(k3_config_parse(bytes, len, &spec, &problems, &err));
    ck_assert_uint_eq(problems.total, 0);
    check_released();
    free(bytes);
}
END_TEST

static const struct {
    const char *path;
    const char *value; /* NULL: removed */
    const char *why;
} harmless[] = {
    {"text_config.rms_norm_eps", "0.00001", "another spelling of 1e-05"},
    {LINEAR "gate_lower_bound", "-5", "an integer where a real is meant"},
    {"text_config.activation_situ_beta", "4", "an integer where a real is meant"},
    {"text_config.top_k", "17", "a sampling default, not the top-k"},
    {"text_config.use_grouped_topk", "false", "with one group it decides nothing"},
    {"bos_token_id", NULL, "the root's ids are optional"},
    {"model_type", NULL, "the text's type is enough"},
    {"text_config.model_type", NULL, "the root's type is enough"},
    {"text_config.model_type", "\"other\"", "the root's type is enough"},
    {"vision_config", NULL, "no images"},
    {"vision_config.hidden_size", "\"x\"", "never searched"},
    {"num_hidden_layers", "7", "the root is never searched"},
    {"head_dim", "7", "the root is never searched"},
    {"text_config.head_dim", "7", "not where it belongs"},
    {"text_config.new_key", "{\"a\":[1]}", "what is not read may be anything"},
    {QUANT "ignore", "[]", "decided by the tensors that are there"},
};

START_TEST(harmless_changes)
{
    k3_config_put(root, harmless[_i].path, harmless[_i].value);
    const enum k3_code code = k3_config_parse_root(root, &spec, &problems, &err);
    ck_assert_msg(code == K3_OK, "%s: %s", harmless[_i].why, err.message);
    check_released();
}
END_TEST

#define BAD K3_ERR_MALFORMED
#define UNS K3_ERR_UNSUPPORTED

static const struct {
    const char *path;
    const char *value; /* NULL: removed */
    enum k3_code code;
    const char *why;
} wrong[] = {
    {"text_config", NULL, BAD, "no text model"},
    {"text_config", "[]", BAD, "a list for the text model"},
    {"text_config.linear_attn_config", NULL, BAD, "no linear attention"},
    {"text_config.linear_attn_config", "null", BAD, "null for linear attention"},
    {"text_config.quantization_config", NULL, BAD, "no quantisation"},
    {QUANT "config_groups", NULL, BAD, "no groups"},
    {QUANT "config_groups.group_0", NULL, BAD, "no group"},
    {GROUP "weights", "3", BAD, "a number for the weights"},
    {"text_config.hidden_size", "7168.0", BAD, "a real, whole"},
    {"text_config.hidden_size", "3.5", BAD, "a real"},
    {"text_config.hidden_size", "\"7168\"", BAD, "text"},
    {"text_config.hidden_size", "true", BAD, "a boolean"},
    {"text_config.hidden_size", "null", BAD, "null"},
    {"text_config.hidden_size", "[7168]", BAD, "a list"},
    {"text_config.hidden_size", "0", BAD, "zero"},
    {"text_config.hidden_size", "-7168", BAD, "negative"},
    {"text_config.hidden_size", "4294974464", BAD, "7168 above 2^32"},
    {"text_config.hidden_size", "9223372036854775807", BAD, "huge"},
    {"text_config.rms_norm_eps", "0", BAD, "zero eps"},
    {"text_config.rms_norm_eps", "-1e-5", BAD, "negative eps"},
    {"text_config.rms_norm_eps", "1e-300", BAD, "an eps that no float holds"},
    {"text_config.rms_norm_eps", "\"1e-05\"", BAD, "text for eps"},
    {"text_config.activation_situ_beta", "0.0", BAD, "zero beta"},
    {"text_config.activation_situ_linear_beta", "-25", BAD, "negative beta"},
    {"text_config.activation_situ_beta", "null", BAD, "null beta"},
    {"text_config.routed_scaling_factor", "0", BAD, "zero scaling"},
    {LINEAR "gate_lower_bound", "5.0", BAD, "a bound above zero"},
    {LINEAR "gate_lower_bound", "0", BAD, "a bound of zero"},
    {"text_config.tie_word_embeddings", "true", UNS, "tied embeddings"},
    {"text_config.tie_word_embeddings", "0", BAD, "a number for a boolean"},
    {"text_config.hidden_act", "\"silu\"", UNS, "another activation"},
    {"text_config.hidden_act", "\"\\u001b[31m\"", UNS, "terminal codes"},
    {"text_config.hidden_act", "1", BAD, "a number for the activation"},
    {"text_config.num_key_value_heads", "8", UNS, "grouped queries"},
    {"text_config.mla_use_nope", "false", UNS, "rotary positions"},
    {"text_config.mla_use_output_gate", "false", UNS, "no output gate"},
    {"text_config.moe_layer_freq", "2", UNS, "every second layer"},
    {"text_config.first_k_dense_replace", "93", UNS, "no layer has experts"},
    {"text_config.first_k_dense_replace", "-1", BAD, "negative"},
    {"text_config.num_experts_per_token", "897", BAD, "more than top-k arrays hold"},
    {"text_config.num_experts", "15", BAD, "fewer than the top-k"},
    {"text_config.num_experts_per_token", "0", BAD, "no experts"},
    {"text_config.routed_expert_hidden_size", "3600", BAD, "not of whole groups"},
    {"text_config.moe_intermediate_size", "3080", BAD, "not of whole groups"},
    {"text_config.latent_moe_use_norm", "false", UNS, "no latent norm"},
    {"text_config.moe_router_activation_func", "\"softmax\"", UNS, "another router"},
    {"text_config.moe_renormalize", "false", UNS, "no renormalisation"},
    {"text_config.topk_method", "\"greedy\"", UNS, "another selection"},
    {"text_config.use_grouped_topk", "1", BAD, "a number for a boolean"},
    {"text_config.num_expert_group", "8", UNS, "grouped routing"},
    {"text_config.topk_group", "4", UNS, "grouped routing"},
    {"text_config.num_nextn_predict_layers", "1", UNS, "extra layers"},
    {"text_config.attn_res_block_size", "0", BAD, "no block"},
    {"text_config.bos_token_id", "163840", BAD, "an id beyond the vocabulary"},
    {"text_config.eos_token_id", "-1", BAD, "a negative id"},
    {"text_config.eos_token_id", "[163586]", BAD, "a list of ids"},
    {"text_config.vocab_size", "100", BAD, "no room for the added tokens"},
    {"text_config.max_position_embeddings", "0", BAD, "no positions"},
    {"eos_token_id", "163585", BAD, "the root contradicts"},
    {"eos_token_id", "\"163586\"", BAD, "text at the root"},
    {"pad_token_id", "null", BAD, "null at the root"},
    {"model_type", "3", BAD, "a number for the type"},
    {LINEAR "short_conv_kernel_size", "0", BAD, "no taps"},
    {LINEAR "short_conv_kernel_size", "17", BAD, "too many taps"},
    {LINEAR "use_full_rank_gate", "false", UNS, "a gate of low rank"},
    {LINEAR "head_dim", "1048576", BAD, "a product of dimensions beyond all bounds"},
    {LINEAR "kda_layers", "[]", BAD, "no KDA layer"},
    {LINEAR "kda_layers", "{}", BAD, "an object of layers"},
    {LINEAR "kda_layers", "[1,2,3.0]", BAD, "a real layer"},
    {LINEAR "full_attn_layers", "[4]", BAD, "layers in no list"},
    {LINEAR "full_attn_layers", "\"4\"", BAD, "text for layers"},
    {QUANT "quant_method", "\"gptq\"", UNS, "another method"},
    {QUANT "format", "\"nvfp4-pack-quantized\"", UNS, "another format"},
    {QUANT "kv_cache_scheme", "{}", UNS, "a quantised cache"},
    {GROUP "format", "\"int-quantized\"", UNS, "another format in the group"},
    {GROUP "input_activations", "{\"num_bits\":8}", UNS, "quantised activations"},
    {WEIGHTS "num_bits", "8", UNS, "8 bits"},
    {WEIGHTS "num_bits", "4.0", BAD, "a real"},
    {WEIGHTS "group_size", "16", UNS, "other groups"},
    {WEIGHTS "type", "\"int\"", UNS, "integers"},
    {WEIGHTS "symmetric", "false", UNS, "zero points"},
    {WEIGHTS "scale_dtype", "\"torch.bfloat16\"", UNS, "other scales"},
    {QUANT "config_groups.group_1", "{}", UNS, "a second group"},
};

START_TEST(wrong_changes)
{
    k3_config_put(root, wrong[_i].path, wrong[_i].value);
    memset(&spec, 0x55, sizeof spec);
    struct k3_model_spec before;
    memset(&before, 0x55, sizeof before);
    const enum k3_code code = k3_config_parse_root(root, &spec, &problems, &err);
    const char *text = k3_problems_text(&problems);
    ck_assert_msg(code == wrong[_i].code, "%s: %s%s", wrong[_i].why, k3_code_name(code), text);
    ck_assert_int_eq(problems.code, code);
    const char *key = strrchr(wrong[_i].path, '.');
    ck_assert_msg(k3_problems_mention(&problems, key ? key + 1 : wrong[_i].path, NULL), "%s:%s",
                  wrong[_i].why, text);
    ck_assert_mem_eq(&spec, &before, sizeof spec);
}
END_TEST

static const struct {
    const char *kda, *mla;
    const char *mention;
    size_t total;
    const char *why;
} layer_lists[] = {
    {"[1,2]", "[3]", NULL, 0, "three layers"},
    {"[2,1]", "[3]", NULL, 0, "in any order"},
    {"[0,1]", "[2]", "kda_layers[0] is 0", 2, "counted from 0"},
    {"[1,2]", "[4]", "full_attn_layers[0] is 4", 2, "beyond the last"},
    {"[1,2,3]", "[3]", "both have 3", 1, "in both"},
    {"[1,2,2]", "[3]", "has 2 twice", 1, "twice in one"},
    {"[1]", "[3]", "has 2", 1, "in neither"},
    {"[1,2,3]", "[]", "full_attn_layers", 1, "one kind only"},
    {"[1,-2]", "[3]", "is -2", 2, "negative"},
    {"[1,2]", "[4294967299]", "4294967299", 2, "3 above 2^32"},
};

START_TEST(lists_of_layers)
{
    k3_config_put(root, "text_config.num_hidden_layers", "3");
    k3_config_put(root, LINEAR "kda_layers", layer_lists[_i].kda);
    k3_config_put(root, LINEAR "full_attn_layers", layer_lists[_i].mla);
    const enum k3_code code = k3_config_parse_root(root, &spec, &problems, &err);
    ck_assert_int_eq(code, layer_lists[_i].total ? K3_ERR_MALFORMED : K3_OK);
    ck_assert_msg(problems.total == layer_lists[_i].total, "%s:%s", layer_lists[_i].why,
                  k3_problems_text(&problems));
    if (layer_lists[_i].mention) {
        ck_assert_msg(k3_problems_mention(&problems, layer_lists[_i].mention, NULL), "%s:%s",
                      layer_lists[_i].why, k3_problems_text(&problems));
    } else {
        ck_assert_uint_eq(spec.layer_kind[0], K3_LAYER_KDA);
        ck_assert_uint_eq(spec.layer_kind[2], K3_LAYER_MLA);
    }
}
END_TEST

static const char *const texts[] = {
    "",
    "{",
    "[]",
    "null",
    "{}",
    "{\"text_config\":{},\"text_config\":{}}",
    "{\"text_config\":{\"rms_norm_eps\":NaN}}",
    "{\"text_config\":{\"rms_norm_eps\":Infinity}}",
    "{\"text_config\":{\"hidden_size\":99999999999999999999}}",
};

START_TEST(texts_that_are_no_config)
{
    ck_assert_code(
        k3_config_parse((const uint8_t *)texts[_i], strlen(texts[_i]), &spec, &problems, &err),
        K3_ERR_MALFORMED);
    ck_assert_uint_ge(problems.total, 1);
}
END_TEST

START_TEST(length_is_bounded)
{
    uint8_t *bytes = malloc(K3_CONFIG_MAX + 1);
    ck_assert_ptr_nonnull(bytes);
    memset(bytes, ' ', K3_CONFIG_MAX + 1);
    memcpy(bytes, "{}", 2);
    ck_assert_code(k3_config_parse(bytes, K3_CONFIG_MAX + 1, &spec, &problems, &err),
                   K3_ERR_MALFORMED);
    ck_assert_uint_eq(problems.total, 1);
    free(bytes);
}
END_TEST

Suite *k3_suite(void)
{
    Suite *suite = suite_create("config_json");
    TCase *contract = tcase_create("contract");
    tcase_add_checked_fixture(contract, set_up, tear_down);
    tcase_add_test(contract, released);
    tcase_add_loop_test(contract, harmless_changes, 0, sizeof harmless / sizeof harmless[0]);
    tcase_add_loop_test(contract, wrong_changes, 0, sizeof wrong / sizeof wrong[0]);
    tcase_add_loop_test(contract, lists_of_layers, 0, sizeof layer_lists / sizeof layer_lists[0]);
    tcase_add_loop_test(contract, texts_that_are_no_config, 0, sizeof texts / sizeof texts[0]);
    tcase_add_test(contract, length_is_bounded);
    suite_add_tcase(suite, contract);
    return suite;
}
