/* SPDX-License-Identifier: Apache-2.0 */
#include "format/pack/model_spec.h"

#include <math.h>
#include <string.h>

#include "format/base/assert.h"
#include "format/base/bytes.h"

/* One table drives check, encode and decode: a field that is missing here is missing everywhere. */
struct u32_field {
    const char *name;
    size_t at; /* in the struct; its place in the encoded form is its place in the table */
    uint32_t min, max;
};

#define U32(field, least, most)                                                                    \
    {                                                                                              \
#field, offsetof(struct k3_model_spec, field), least, most                                 \
    }
static const struct u32_field u32_fields[] = {
    U32(layers, 2, K3_LAYERS_MAX),
    U32(hidden, 1, K3_DIM_MAX),
    U32(vocab, 257, K3_VOCAB_MAX),
    U32(kda_heads, 1, K3_DIM_MAX),
    U32(kda_head_dim, 1, K3_DIM_MAX),
    U32(conv_taps, 1, K3_CONV_MAX),
    U32(mla_heads, 1, K3_DIM_MAX),
    U32(q_lora_rank, 1, K3_DIM_MAX),
    U32(kv_lora_rank, 1, K3_DIM_MAX),
    U32(qk_nope_head_dim, 1, K3_DIM_MAX),
    U32(qk_rope_head_dim, 1, K3_DIM_MAX),
    U32(v_head_dim, 1, K3_DIM_MAX),
    U32(dense_layers, 0, K3_LAYERS_MAX),
    U32(dense_intermediate, 1, K3_DIM_MAX),
    U32(experts, 1, K3_EXPERTS_MAX),
    U32(experts_per_token, 1, K3_TOP_K_MAX),
    U32(shared_experts, 1, K3_DIM_MAX),
    U32(latent, 32, K3_DIM_MAX),
    U32(expert_intermediate, 32, K3_DIM_MAX),
    U32(attn_res_block_layers, 1, K3_DIM_MAX),
    U32(bos_id, 0, K3_VOCAB_MAX),
    U32(eos_id, 0, K3_VOCAB_MAX),
    U32(pad_id, 0, K3_VOCAB_MAX),
};
#undef U32

struct real_field {
    const char *name;
    size_t at;
    bool is_negative;
};

#define REAL(field, negative)                                                                      \
    {                                                                                              \
#field, offsetof(struct k3_model_spec, field), negative                                    \
    }
static const struct real_field real_fields[] = {
    REAL(rms_norm_eps, false),          REAL(situ_beta, false),
    REAL(situ_linear_beta, false),      REAL(gate_lower_bound, true),
    REAL(routed_scaling_factor, false),
};
#undef REAL

enum {
    U32_COUNT = sizeof u32_fields / sizeof u32_fields[0],
    REAL_COUNT = sizeof real_fields / sizeof real_fields[0],
    REALS_AT = 112,
    POSITIONS_AT = 160
};
_Static_assert(U32_COUNT * 4 <= REALS_AT, "u32 fields overlap the reals");
_Static_assert(REALS_AT + REAL_COUNT * 8 <= POSITIONS_AT, "reals overlap max_positions");
_Static_assert(POSITIONS_AT + 8 <= K3_MODEL_SPEC_FIXED_BYTES, "fixed part too small");

static uint32_t u32_get(const struct k3_model_spec *spec, const struct u32_field *field)
{
    uint32_t value;
    memcpy(&value, (const char *)spec + field->at, sizeof value);
    return value;
}

static double real_get(const struct k3_model_spec *spec, const struct real_field *field)
{
    double value;
    memcpy(&value, (const char *)spec + field->at, sizeof value);
    return value;
}

static enum k3_code check_fields(const struct k3_model_spec *spec, struct k3_error *err)
{
    for (size_t i = 0; i < U32_COUNT; i++) {
        const struct u32_field *field = &u32_fields[i];
        const uint32_t value = u32_get(spec, field);
        if (value < field->min || value > field->max) {
            return k3_fail(err, K3_ERR_MALFORMED, 4 * i, "model spec: %s is %u, must be %u..%u",
                           field->name, value, field->min, field->max);
        }
    }
    for (size_t i = 0; i < REAL_COUNT; i++) {
        const struct real_field *field = &real_fields[i];
        const double value = real_get(spec, field);
        /* Each becomes a float in the arithmetic: it must be a normal one. */
        const double size = field->is_negative ? -value : value;
        if (!(size >= 1e-30 && size <= 1e30)) {
            return k3_fail(err, K3_ERR_MALFORMED, REALS_AT + 8 * i,
                           "model spec: %s is %g, must be a finite %s number", field->name, value,
                           field->is_negative ? "negative" : "positive");
        }
    }
    return K3_OK;
}

static enum k3_code check_products(const struct k3_model_spec *spec, struct k3_error *err)
{
    const struct {
        const char *name;
        uint64_t a, b;
    } products[] = {
        {"kda_heads * kda_head_dim", spec->kda_heads, spec->kda_head_dim},
        {"mla_heads * (qk_nope_head_dim + qk_rope_head_dim)", spec->mla_heads,
         (uint64_t)spec->qk_nope_head_dim + spec->qk_rope_head_dim},
        {"mla_heads * (qk_nope_head_dim + v_head_dim)", spec->mla_heads,
         (uint64_t)spec->qk_nope_head_dim + spec->v_head_dim},
        {"shared_experts * expert_intermediate", spec->shared_experts, spec->expert_intermediate},
    };
    for (size_t i = 0; i < sizeof products / sizeof products[0]; i++) {
        if (products[i].a * products[i].b > K3_DIM_MAX) {
            return k3_fail(err, K3_ERR_MALFORMED, 0, "model spec: %s is more than %u",
                           products[i].name, K3_DIM_MAX);
        }
    }
    return K3_OK;
}

static enum k3_code check_layers(const struct k3_model_spec *spec, struct k3_error *err)
{
    uint32_t mla = 0;
    for (uint32_t layer = 0; layer < spec->layers; layer++) {
        if (spec->layer_kind[layer] > K3_LAYER_MLA) {
            return k3_fail(err, K3_ERR_MALFORMED, K3_MODEL_SPEC_FIXED_BYTES + layer,
                           "model spec: layer %u has unknown kind %u", layer,
                           spec->layer_kind[layer]);
        }
        mla += spec->layer_kind[layer] == K3_LAYER_MLA;
    }
    if (mla == 0 || mla == spec->layers) {
        return k3_fail(err, K3_ERR_MALFORMED, K3_MODEL_SPEC_FIXED_BYTES,
                       "model spec: needs both KDA and MLA layers");
    }
    return K3_OK;
}

enum k3_code k3_model_spec_check(const struct k3_model_spec *spec, struct k3_error *err)
{
    enum k3_code code = check_fields(spec, err);
    if (code == K3_OK) {
        code = check_products(spec, err);
    }
    if (code == K3_OK) {
        code = check_layers(spec, err);
    }
    if (code != K3_OK) {
        return code;
    }
    if (spec->dense_layers >= spec->layers) {
        return k3_fail(err, K3_ERR_MALFORMED, 0, "model spec: no layer has experts");
    }
    if (spec->experts_per_token > spec->experts) {
        return k3_fail(err, K3_ERR_MALFORMED, 0,
                       "model spec: experts_per_token %u is more than experts %u",
                       spec->experts_per_token, spec->experts);
    }
    if (spec->latent % 32 != 0 || spec->expert_intermediate % 32 != 0) {
        return k3_fail(err, K3_ERR_MALFORMED, 0,
                       "model spec: latent %u and expert_intermediate %u must be multiples of 32",
                       spec->latent, spec->expert_intermediate);
    }
    if (spec->bos_id >= spec->vocab || spec->eos_id >= spec->vocab || spec->pad_id >= spec->vocab) {
        return k3_fail(err, K3_ERR_MALFORMED, 0,
                       "model spec: a special id is not below the vocabulary size %u", spec->vocab);
    }
    if (spec->max_positions == 0 || spec->max_positions > (UINT64_C(1) << 40)) {
        return k3_fail(err, K3_ERR_MALFORMED, POSITIONS_AT,
                       "model spec: max_positions is out of range");
    }
    return K3_OK;
}

size_t k3_model_spec_encoded_bytes(const struct k3_model_spec *spec)
{
    return K3_MODEL_SPEC_FIXED_BYTES + spec->layers;
}

void k3_model_spec_encode(const struct k3_model_spec *spec, uint8_t *out_bytes)
{
    k3_assert(k3_model_spec_check(spec, NULL) == K3_OK);
    memset(out_bytes, 0, K3_MODEL_SPEC_FIXED_BYTES);
    for (size_t i = 0; i < U32_COUNT; i++) {
        k3_le32_put(out_bytes + 4 * i, u32_get(spec, &u32_fields[i]));
    }
    for (size_t i = 0; i < REAL_COUNT; i++) {
        const double value = real_get(spec, &real_fields[i]);
        uint64_t bits;
        memcpy(&bits, &value, sizeof bits);
        k3_le64_put(out_bytes + REALS_AT + 8 * i, bits);
    }
    k3_le64_put(out_bytes + POSITIONS_AT, spec->max_positions);
    memcpy(out_bytes + K3_MODEL_SPEC_FIXED_BYTES, spec->layer_kind, spec->layers);
}

bool k3_model_spec_equal(const struct k3_model_spec *a, const struct k3_model_spec *b)
{
    uint8_t bytes[2][K3_MODEL_SPEC_FIXED_BYTES + K3_LAYERS_MAX];
    const size_t len = k3_model_spec_encoded_bytes(a);
    if (len != k3_model_spec_encoded_bytes(b)) {
        return false;
    }
    k3_model_spec_encode(a, bytes[0]);
    k3_model_spec_encode(b, bytes[1]);
    return memcmp(bytes[0], bytes[1], len) == 0;
}

/* Bytes of the fixed part that hold no field must be zero. */
static bool spare_is_zero(const uint8_t *bytes)
{
    const size_t reals_end = REALS_AT + 8 * REAL_COUNT;
    const size_t end = POSITIONS_AT + 8;
    return k3_bytes_are_zero(bytes + 4 * U32_COUNT, REALS_AT - 4 * U32_COUNT) &&
           k3_bytes_are_zero(bytes + reals_end, POSITIONS_AT - reals_end) &&
           k3_bytes_are_zero(bytes + end, K3_MODEL_SPEC_FIXED_BYTES - end);
}

enum k3_code k3_model_spec_decode(const uint8_t *bytes, size_t len, struct k3_model_spec *out_spec,
                                  struct k3_error *err)
{
    struct k3_model_spec spec;
    memset(&spec, 0, sizeof spec);
    if (len < K3_MODEL_SPEC_FIXED_BYTES) {
        return k3_fail(err, K3_ERR_MALFORMED, 0, "model spec: %zu bytes, needs at least %u", len,
                       K3_MODEL_SPEC_FIXED_BYTES);
    }
    for (size_t i = 0; i < U32_COUNT; i++) {
        const uint32_t value = k3_le32_get(bytes + 4 * i);
        memcpy((char *)&spec + u32_fields[i].at, &value, sizeof value);
    }
    for (size_t i = 0; i < REAL_COUNT; i++) {
        const uint64_t bits = k3_le64_get(bytes + REALS_AT + 8 * i);
        memcpy((char *)&spec + real_fields[i].at, &bits, sizeof bits);
    }
    spec.max_positions = k3_le64_get(bytes + POSITIONS_AT);
    if (spec.layers > K3_LAYERS_MAX || len != K3_MODEL_SPEC_FIXED_BYTES + (size_t)spec.layers) {
        return k3_fail(err, K3_ERR_MALFORMED, 0, "model spec: %zu bytes do not fit %u layers", len,
                       spec.layers);
    }
    if (!spare_is_zero(bytes)) {
        return k3_fail(err, K3_ERR_MALFORMED, 0, "model spec: spare bytes are not zero");
    }
    memcpy(spec.layer_kind, bytes + K3_MODEL_SPEC_FIXED_BYTES, spec.layers);
    const enum k3_code code = k3_model_spec_check(&spec, err);
    if (code == K3_OK) {
        *out_spec = spec;
    }
    return code;
}
