/* SPDX-License-Identifier: Apache-2.0 */
#include "format/safetensors/config_json.h"

#include <stdbool.h>
#include <string.h>

#include "format/safetensors/config_fields.h"
#include "format/safetensors/config_layers.h"
#include "format/safetensors/json_walk.h"

static void check_model_type(const json_t *root, const json_t *text, struct k3_problems *problems)
{
    const json_t *outer = json_object_get(root, "model_type");
    const json_t *inner = json_object_get(text, "model_type");
    if ((outer && !json_is_string(outer)) || (inner && !json_is_string(inner))) {
        k3_problems_add(problems, K3_ERR_MALFORMED, "model_type must be a string");
        return;
    }
    const char *outer_name = outer ? json_string_value(outer) : "";
    const char *inner_name = inner ? json_string_value(inner) : "";
    if (strcmp(outer_name, "kimi_k3") != 0 && strcmp(inner_name, "kimi_linear") != 0) {
        k3_problems_add(problems, outer || inner ? K3_ERR_UNSUPPORTED : K3_ERR_MALFORMED,
                        "model_type is '%.64s' and text_config.model_type is '%.64s', needs"
                        " 'kimi_k3' or 'kimi_linear'",
                        outer_name, inner_name);
    }
}

/* The root repeats the special ids: optional, but not to be contradicted. */
static void check_root_ids(const json_t *root, const json_t *text, struct k3_problems *problems)
{
    static const char *const keys[] = {"bos_token_id", "eos_token_id", "pad_token_id"};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        const json_t *outer = json_object_get(root, keys[i]);
        const json_t *inner = json_object_get(text, keys[i]);
        if (outer && !json_is_integer(outer)) {
            k3_problems_add(problems, K3_ERR_MALFORMED, "%s must be an integer, is %s", keys[i],
                            k3_config_kind_of(outer));
        } else if (outer && json_is_integer(inner) &&
                   json_integer_value(outer) != json_integer_value(inner)) {
            k3_problems_add(problems, K3_ERR_MALFORMED, "%s is %lld, but text_config.%s is %lld",
                            keys[i], (long long)json_integer_value(outer), keys[i],
                            (long long)json_integer_value(inner));
        }
    }
}

/* A second group would be quantised in a way that nobody reads here. */
static void check_groups(json_t *groups, struct k3_problems *problems)
{
    const char *key;
    json_t *group;
    json_object_foreach(groups, key, group)
    {
        if (strcmp(key, "group_0") != 0) {
            k3_problems_add(problems, K3_ERR_UNSUPPORTED,
                            "text_config.quantization_config.config_groups.%s: only group_0 is"
                            " implemented",
                            key);
        }
    }
}

/* What relates two numbers; each is within its own bounds. */
static void check_relations(const struct k3_config_reading *reading, struct k3_problems *problems)
{
    const struct k3_model_spec *spec = &reading->spec;
    if (reading->kv_heads != spec->mla_heads) {
        k3_problems_add(problems, K3_ERR_UNSUPPORTED,
                        "text_config.num_key_value_heads is %u, must equal"
                        " text_config.num_attention_heads, %u",
                        reading->kv_heads, spec->mla_heads);
    }
    if (spec->experts_per_token > spec->experts) {
        k3_problems_add(
            problems, K3_ERR_MALFORMED,
            "text_config.num_experts_per_token is %u, more than text_config.num_experts,"
            " %u",
            spec->experts_per_token, spec->experts);
    }
    if (spec->dense_layers >= spec->layers) {
        k3_problems_add(problems, K3_ERR_UNSUPPORTED,
                        "text_config.first_k_dense_replace is %u of %u layers: none has experts",
                        spec->dense_layers, spec->layers);
    }
    const struct {
        const char *key;
        uint32_t value;
    } widths[] = {
        {"routed_expert_hidden_size", spec->latent},
        {"moe_intermediate_size", spec->expert_intermediate},
    };
    for (size_t i = 0; i < sizeof widths / sizeof widths[0]; i++) {
        if (widths[i].value % 32 != 0) {
            k3_problems_add(problems, K3_ERR_MALFORMED,
                            "text_config.%s is %u, must be a multiple of 32 (MXFP4 groups)",
                            widths[i].key, widths[i].value);
        }
    }
    const struct {
        const char *key;
        uint32_t value;
    } ids[] = {
        {"bos_token_id", spec->bos_id},
        {"eos_token_id", spec->eos_id},
        {"pad_token_id", spec->pad_id},
    };
    for (size_t i = 0; i < sizeof ids / sizeof ids[0]; i++) {
        if (ids[i].value >= spec->vocab) {
            k3_problems_add(problems, K3_ERR_MALFORMED,
                            "text_config.%s is %u, must be below text_config.vocab_size, %u",
                            ids[i].key, ids[i].value, spec->vocab);
        }
    }
}

static void read_root(const json_t *root, struct k3_config_reading *reading,
                      struct k3_problems *problems)
{
    const size_t before = problems->total;
    struct k3_config_places places;
    k3_config_find_places(root, &places, problems);
    const json_t *text = places.at[K3_CONFIG_TEXT];
    const bool has_numbers = k3_config_read_fields(&places, reading, problems);
    check_model_type(root, text, problems);
    check_root_ids(root, text, problems);
    check_groups(places.at[K3_CONFIG_GROUPS], problems);
    if (has_numbers) {
        check_relations(reading, problems);
    }
    if (places.at[K3_CONFIG_LINEAR]) {
        k3_config_layers_read(places.at[K3_CONFIG_LINEAR], reading->spec.layers,
                              reading->spec.layer_kind, problems);
    }
    /* The bounds that a pack's reader will ask for: products of dimensions, for one. */
    struct k3_error err = {0};
    if (problems->total == before && k3_model_spec_check(&reading->spec, &err) != K3_OK) {
        k3_problems_add_error(problems, &err);
    }
}

static enum k3_code load_text(const uint8_t *bytes, size_t len, json_t **out_root,
                              struct k3_error *err)
{
    struct k3_json_walk walk = {.bytes = bytes, .len = len};
    if (len > K3_CONFIG_MAX) {
        return k3_fail(err, K3_ERR_MALFORMED, 0, "%zu bytes, at most %u are allowed", len,
                       K3_CONFIG_MAX);
    }
    json_t *root = NULL;
    enum k3_code code = k3_json_walk_value(&walk, K3_CONFIG_MAX, &root, err);
    if (code == K3_OK) {
        code = k3_json_walk_end(&walk, " \t\r\n", err);
    }
    if (code == K3_OK && !json_is_object(root)) {
        code = k3_fail(err, K3_ERR_MALFORMED, 0, "the text is not an object");
    }
    if (code != K3_OK) {
        json_decref(root);
        return code;
    }
    *out_root = root;
    return K3_OK;
}

enum k3_code k3_config_parse(const uint8_t *bytes, size_t len, struct k3_model_spec *out_spec,
                             struct k3_problems *problems, struct k3_error *err)
{
    json_t *root = NULL;
    struct k3_error why = {0};
    struct k3_problems found = {0};
    struct k3_config_reading reading;
    memset(&reading, 0, sizeof reading);
    if (load_text(bytes, len, &root, &why) == K3_OK) {
        read_root(root, &reading, &found);
    } else {
        k3_problems_add_error(&found, &why);
    }
    json_decref(root);
    const enum k3_code code = k3_problems_result(&found, K3_CONFIG_NAME, err);
    if (code == K3_OK) {
        *out_spec = reading.spec;
    }
    for (size_t i = 0; i < found.line_count; i++) {
        k3_problems_add(problems, found.code, K3_CONFIG_NAME ": %s", found.lines[i]);
    }
    k3_problems_done(&found);
    return code;
}
