/* SPDX-License-Identifier: Apache-2.0 */
#include "format/safetensors/config_fields.h"

#include <stddef.h>
#include <string.h>

/* In the order in which they are found. */
static const struct {
    const char *path;
    const char *key;
    int parent; /* -1: the root */
} places[K3_CONFIG_PLACES] = {
    [K3_CONFIG_TEXT] = {"text_config", "text_config", -1},
    [K3_CONFIG_LINEAR] = {"text_config.linear_attn_config", "linear_attn_config", K3_CONFIG_TEXT},
    [K3_CONFIG_QUANT] = {"text_config.quantization_config", "quantization_config", K3_CONFIG_TEXT},
    [K3_CONFIG_GROUPS] = {"text_config.quantization_config.config_groups", "config_groups",
                          K3_CONFIG_QUANT},
    [K3_CONFIG_GROUP] = {"text_config.quantization_config.config_groups.group_0", "group_0",
                         K3_CONFIG_GROUPS},
    [K3_CONFIG_WEIGHTS] = {"text_config.quantization_config.config_groups.group_0.weights",
                           "weights", K3_CONFIG_GROUP},
};

enum want {
    WANT_U32,  /* an integer in min..max                               */
    WANT_U64,  /* the same, into 64 bits                               */
    WANT_REAL, /* a number above (or, IS_NEGATIVE, below) zero         */
    WANT_INT,  /* exactly this integer (min)                           */
    WANT_TRUE,
    WANT_FALSE,
    WANT_BOOL,   /* either: the value decides nothing                    */
    WANT_STRING, /* exactly this string                                  */
    WANT_NULL
};

struct field {
    enum k3_config_place place;
    const char *key;
    enum want want;
    size_t at;          /* in struct k3_config_reading                             */
    uint64_t min, max;  /* WANT_REAL: min 1 is negative                  */
    const char *string; /* WANT_STRING                                   */
};

#define IS_NEGATIVE   1
#define POSITIONS_MAX (UINT64_C(1) << 40)

#define SPEC(member) offsetof(struct k3_config_reading, spec.member)
#define U32(place, key, member, lo, hi)                                                            \
    {                                                                                              \
        place, key, WANT_U32, SPEC(member), lo, hi, NULL                                           \
    }
#define DIM(place, key, member) U32(place, key, member, 1, K3_DIM_MAX)
#define REAL(place, key, member, s)                                                                \
    {                                                                                              \
        place, key, WANT_REAL, SPEC(member), s, 0, NULL                                            \
    }
#define FIXED(place, key, value)                                                                   \
    {                                                                                              \
        place, key, WANT_INT, 0, value, value, NULL                                                \
    }
#define STRING(place, key, value)                                                                  \
    {                                                                                              \
        place, key, WANT_STRING, 0, 0, 0, value                                                    \
    }
#define WORD(place, key, want)                                                                     \
    {                                                                                              \
        place, key, want, 0, 0, 0, NULL                                                            \
    }

/* Everything that is read, in the order of the specification's table. */
static const struct field fields[] = {
    DIM(K3_CONFIG_TEXT, "hidden_size", hidden),
    U32(K3_CONFIG_TEXT, "num_hidden_layers", layers, 2, K3_LAYERS_MAX),
    U32(K3_CONFIG_TEXT, "vocab_size", vocab, 257, K3_VOCAB_MAX),
    REAL(K3_CONFIG_TEXT, "rms_norm_eps", rms_norm_eps, 0),
    WORD(K3_CONFIG_TEXT, "tie_word_embeddings", WANT_FALSE),
    {K3_CONFIG_TEXT, "max_position_embeddings", WANT_U64, SPEC(max_positions), 1, POSITIONS_MAX,
     NULL},
    STRING(K3_CONFIG_TEXT, "hidden_act", "situ"),
    REAL(K3_CONFIG_TEXT, "activation_situ_beta", situ_beta, 0),
    REAL(K3_CONFIG_TEXT, "activation_situ_linear_beta", situ_linear_beta, 0),
    DIM(K3_CONFIG_TEXT, "num_attention_heads", mla_heads),
    {K3_CONFIG_TEXT, "num_key_value_heads", WANT_U32, offsetof(struct k3_config_reading, kv_heads),
     1, K3_DIM_MAX, NULL},
    WORD(K3_CONFIG_TEXT, "mla_use_nope", WANT_TRUE),
    WORD(K3_CONFIG_TEXT, "mla_use_output_gate", WANT_TRUE),
    DIM(K3_CONFIG_TEXT, "q_lora_rank", q_lora_rank),
    DIM(K3_CONFIG_TEXT, "kv_lora_rank", kv_lora_rank),
    DIM(K3_CONFIG_TEXT, "qk_nope_head_dim", qk_nope_head_dim),
    DIM(K3_CONFIG_TEXT, "qk_rope_head_dim", qk_rope_head_dim),
    DIM(K3_CONFIG_TEXT, "v_head_dim", v_head_dim),
    U32(K3_CONFIG_TEXT, "first_k_dense_replace", dense_layers, 0, K3_LAYERS_MAX),
    FIXED(K3_CONFIG_TEXT, "moe_layer_freq", 1),
    DIM(K3_CONFIG_TEXT, "intermediate_size", dense_intermediate),
    U32(K3_CONFIG_TEXT, "num_experts", experts, 1, K3_EXPERTS_MAX),
    U32(K3_CONFIG_TEXT, "num_experts_per_token", experts_per_token, 1, K3_TOP_K_MAX),
    DIM(K3_CONFIG_TEXT, "num_shared_experts", shared_experts),
    DIM(K3_CONFIG_TEXT, "routed_expert_hidden_size", latent),
    DIM(K3_CONFIG_TEXT, "moe_intermediate_size", expert_intermediate),
    WORD(K3_CONFIG_TEXT, "latent_moe_use_norm", WANT_TRUE),
    STRING(K3_CONFIG_TEXT, "moe_router_activation_func", "sigmoid"),
    WORD(K3_CONFIG_TEXT, "moe_renormalize", WANT_TRUE),
    REAL(K3_CONFIG_TEXT, "routed_scaling_factor", routed_scaling_factor, 0),
    STRING(K3_CONFIG_TEXT, "topk_method", "noaux_tc"),
    WORD(K3_CONFIG_TEXT, "use_grouped_topk", WANT_BOOL),
    FIXED(K3_CONFIG_TEXT, "num_expert_group", 1),
    FIXED(K3_CONFIG_TEXT, "topk_group", 1),
    FIXED(K3_CONFIG_TEXT, "num_nextn_predict_layers", 0),
    DIM(K3_CONFIG_TEXT, "attn_res_block_size", attn_res_block_layers),
    U32(K3_CONFIG_TEXT, "bos_token_id", bos_id, 0, K3_VOCAB_MAX),
    U32(K3_CONFIG_TEXT, "eos_token_id", eos_id, 0, K3_VOCAB_MAX),
    U32(K3_CONFIG_TEXT, "pad_token_id", pad_id, 0, K3_VOCAB_MAX),
    DIM(K3_CONFIG_LINEAR, "num_heads", kda_heads),
    DIM(K3_CONFIG_LINEAR, "head_dim", kda_head_dim),
    U32(K3_CONFIG_LINEAR, "short_conv_kernel_size", conv_taps, 1, K3_CONV_MAX),
    REAL(K3_CONFIG_LINEAR, "gate_lower_bound", gate_lower_bound, IS_NEGATIVE),
    WORD(K3_CONFIG_LINEAR, "use_full_rank_gate", WANT_TRUE),
    STRING(K3_CONFIG_QUANT, "quant_method", "compressed-tensors"),
    STRING(K3_CONFIG_QUANT, "format", "mxfp4-pack-quantized"),
    WORD(K3_CONFIG_QUANT, "kv_cache_scheme", WANT_NULL),
    STRING(K3_CONFIG_GROUP, "format", "mxfp4-pack-quantized"),
    WORD(K3_CONFIG_GROUP, "input_activations", WANT_NULL),
    FIXED(K3_CONFIG_WEIGHTS, "num_bits", 4),
    FIXED(K3_CONFIG_WEIGHTS, "group_size", 32),
    STRING(K3_CONFIG_WEIGHTS, "type", "float"),
    WORD(K3_CONFIG_WEIGHTS, "symmetric", WANT_TRUE),
    STRING(K3_CONFIG_WEIGHTS, "scale_dtype", "torch.uint8"),
};

enum { FIELD_COUNT = sizeof fields / sizeof fields[0] };

const char *k3_config_kind_of(const json_t *value)
{
    switch (json_typeof(value)) {
    case JSON_OBJECT:
        return "an object";
    case JSON_ARRAY:
        return "a list";
    case JSON_STRING:
        return "a string";
    case JSON_INTEGER:
        return "an integer";
    case JSON_REAL:
        return "a real number";
    case JSON_TRUE:
    case JSON_FALSE:
        return "a boolean";
    case JSON_NULL:
        return "null";
    }
    return "something else";
}

static const char *wanted_kind(enum want want)
{
    switch (want) {
    case WANT_U32:
    case WANT_U64:
    case WANT_INT:
        return "an integer";
    case WANT_REAL:
        return "a number";
    case WANT_TRUE:
    case WANT_FALSE:
    case WANT_BOOL:
        return "a boolean";
    case WANT_STRING:
        return "a string";
    case WANT_NULL:
        return "null";
    }
    return "something else";
}

static bool is_kind(const json_t *value, enum want want)
{
    switch (want) {
    case WANT_U32:
    case WANT_U64:
    case WANT_INT:
        return json_is_integer(value);
    case WANT_REAL:
        return json_is_number(value);
    case WANT_TRUE:
    case WANT_FALSE:
    case WANT_BOOL:
        return json_is_boolean(value);
    case WANT_STRING:
        return json_is_string(value);
    case WANT_NULL:
        return true; /* its only value: what else is there is unsupported, not ill-typed */
    }
    return false;
}

void k3_config_find_places(const json_t *root, struct k3_config_places *out_places,
                           struct k3_problems *problems)
{
    for (int i = 0; i < K3_CONFIG_PLACES; i++) {
        const json_t *parent = places[i].parent < 0 ? root : out_places->at[places[i].parent];
        out_places->at[i] = NULL;
        if (!parent) {
            continue;
        }
        json_t *found = json_object_get(parent, places[i].key);
        if (!found) {
            k3_problems_add(problems, K3_ERR_MALFORMED, "%s is missing", places[i].path);
        } else if (!json_is_object(found)) {
            k3_problems_add(problems, K3_ERR_MALFORMED, "%s must be an object, is %s",
                            places[i].path, k3_config_kind_of(found));
        } else {
            out_places->at[i] = found;
        }
    }
}

/* The field's value if it is there and of its type, else NULL. */
static const json_t *well_typed(const struct k3_config_places *in, const struct field *field)
{
    const json_t *value = json_object_get(in->at[field->place], field->key);
    return value && is_kind(value, field->want) ? value : NULL;
}

static void report_types(const struct k3_config_places *in, struct k3_problems *problems)
{
    for (size_t i = 0; i < FIELD_COUNT; i++) {
        const struct field *field = &fields[i];
        if (!in->at[field->place] || well_typed(in, field)) {
            continue;
        }
        const json_t *value = json_object_get(in->at[field->place], field->key);
        const char *path = places[field->place].path;
        if (!value) {
            k3_problems_add(problems, K3_ERR_MALFORMED, "%s.%s is missing", path, field->key);
        } else {
            k3_problems_add(problems, K3_ERR_MALFORMED, "%s.%s must be %s, is %s", path, field->key,
                            wanted_kind(field->want), k3_config_kind_of(value));
        }
    }
}

/* Below, `value` is of the field's type. Each returns false with a problem. */

static bool take_integer(const json_t *value, const struct field *field,
                         struct k3_config_reading *reading, struct k3_problems *problems)
{
    const json_int_t number = json_integer_value(value);
    if (number < (json_int_t)field->min || number > (json_int_t)field->max) {
        k3_problems_add(problems, K3_ERR_MALFORMED, "%s.%s is %lld, must be %llu..%llu",
                        places[field->place].path, field->key, (long long)number,
                        (unsigned long long)field->min, (unsigned long long)field->max);
        return false;
    }
    const uint64_t wide = (uint64_t)number;
    const uint32_t narrow = (uint32_t)number;
    if (field->want == WANT_U64) {
        memcpy((char *)reading + field->at, &wide, sizeof wide);
    } else {
        memcpy((char *)reading + field->at, &narrow, sizeof narrow);
    }
    return true;
}

static bool take_real(const json_t *value, const struct field *field,
                      struct k3_config_reading *reading, struct k3_problems *problems)
{
    const double number = json_number_value(value);
    const double size = field->min == IS_NEGATIVE ? -number : number;
    /* Normal floats with room: the bounds of k3_model_spec_check. Also false for a NaN. */
    if (!(size >= 1e-30 && size <= 1e30)) {
        k3_problems_add(problems, K3_ERR_MALFORMED, "%s.%s is %g, must be a %s number",
                        places[field->place].path, field->key, number,
                        field->min == IS_NEGATIVE ? "negative" : "positive");
        return false;
    }
    memcpy((char *)reading + field->at, &number, sizeof number);
    return true;
}

static void check_fixed(const json_t *value, const struct field *field,
                        struct k3_problems *problems)
{
    const char *path = places[field->place].path;
    const enum k3_code code = K3_ERR_UNSUPPORTED;
    if (field->want == WANT_INT && json_integer_value(value) != (json_int_t)field->min) {
        k3_problems_add(problems, code, "%s.%s is %lld, only %llu is implemented", path, field->key,
                        (long long)json_integer_value(value), (unsigned long long)field->min);
    } else if (field->want == WANT_STRING && strcmp(json_string_value(value), field->string) != 0) {
        k3_problems_add(problems, code, "%s.%s is '%.64s', only '%s' is implemented", path,
                        field->key, json_string_value(value), field->string);
    } else if (field->want == WANT_TRUE && !json_is_true(value)) {
        k3_problems_add(problems, code, "%s.%s is false, only true is implemented", path,
                        field->key);
    } else if (field->want == WANT_FALSE && !json_is_false(value)) {
        k3_problems_add(problems, code, "%s.%s is true, only false is implemented", path,
                        field->key);
    } else if (field->want == WANT_NULL && !json_is_null(value)) {
        k3_problems_add(problems, code, "%s.%s is %s, only null is implemented", path, field->key,
                        k3_config_kind_of(value));
    }
}

bool k3_config_read_fields(const struct k3_config_places *in, struct k3_config_reading *reading,
                           struct k3_problems *problems)
{
    report_types(in, problems);
    bool all_numbers = true;
    for (size_t i = 0; i < FIELD_COUNT; i++) {
        const struct field *field = &fields[i];
        const json_t *value = well_typed(in, field);
        switch (field->want) {
        case WANT_U32:
        case WANT_U64:
            all_numbers = value && take_integer(value, field, reading, problems) && all_numbers;
            break;
        case WANT_REAL:
            all_numbers = value && take_real(value, field, reading, problems) && all_numbers;
            break;
        case WANT_INT:
        case WANT_TRUE:
        case WANT_FALSE:
        case WANT_BOOL:
        case WANT_STRING:
        case WANT_NULL:
            if (value) {
                check_fixed(value, field, problems);
            }
            break;
        }
    }
    return all_numbers;
}
