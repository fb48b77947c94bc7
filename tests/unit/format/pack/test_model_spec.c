/* SPDX-License-Identifier: Apache-2.0 */
#include "format/pack/model_spec.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "format/base/bytes.h"
#include "tests/support/suite_main.h"
#include "tests/unit/format/pack/pack_fixture.h"
#include "tests/unit/format/pack/released_spec.h"

static struct k3_error err;

static struct k3_model_spec spec_of(int which)
{
    return which == 0 ? k3_toy_spec() : k3_released_spec();
}

START_TEST(round_trip)
{
    const struct k3_model_spec spec = spec_of(_i);
    const size_t len = k3_model_spec_encoded_bytes(&spec);
    ck_assert_uint_eq(len, 256 + spec.layers);
    uint8_t *bytes = malloc(len);
    k3_model_spec_encode(&spec, bytes);
    struct k3_model_spec back;
    memset(&back, 0, sizeof back);
    ck_assert_ok(k3_model_spec_decode(bytes, len, &back, &err));
    ck_assert_mem_eq(&back, &spec, sizeof spec);
    free(bytes);
}
END_TEST

/* docs/format.md 6, written out: where each field of the toy model stands. */
START_TEST(layout)
{
    static const uint32_t u32s[] = {3, 48, 300, 3, 20, 4,  2,  24, 40, 12, 6,  10,
                                    1, 72, 5,   2, 2,  64, 96, 2,  44, 46, 299};
    static const double reals[] = {1e-5, 4.0, 25.0, -5.0, 1.5};
    const struct k3_model_spec spec = k3_toy_spec();
    uint8_t expected[256 + 3] = {0};
    ck_assert_uint_eq(sizeof u32s / sizeof u32s[0], 23);
    for (size_t i = 0; i < 23; i++) {
        k3_le32_put(expected + 4 * i, u32s[i]);
    }
    memcpy(expected + 112, reals, sizeof reals); /* this machine is little endian */
    k3_le64_put(expected + 160, 4096);
    expected[257] = 1;
    uint8_t bytes[sizeof expected];
    k3_model_spec_encode(&spec, bytes);
    ck_assert_mem_eq(bytes, expected, sizeof expected);
}
END_TEST

#define F(field) offsetof(struct k3_model_spec, field)

/* One field of the toy model set to `value`. */
static const struct {
    size_t at;
    uint32_t value;
    bool is_good;
    const char *why;
} u32_cases[] = {
    {F(layers), 1, false, "one layer cannot be of both kinds"},
    {F(layers), 1025, false, "layers above 1024"},
    {F(hidden), 0, false, "no width"},
    {F(hidden), 1, true, "least width"},
    {F(hidden), 1U << 20, true, "most width"},
    {F(hidden), (1U << 20) + 1, false, "width above 2^20"},
    {F(vocab), 256, false, "a vocabulary of added tokens alone"},
    {F(vocab), 300, true, "ids just below the vocabulary"},
    {F(vocab), 299, false, "pad id not below the vocabulary"},
    {F(vocab), 1U << 22, true, "most vocabulary"},
    {F(vocab), (1U << 22) + 1, false, "vocabulary above 2^22"},
    {F(kda_heads), 0, false, "no heads"},
    {F(kda_heads), 52428, true, "heads * 20 just below 2^20"},
    {F(kda_heads), 52429, false, "heads * 20 just above 2^20"},
    {F(kda_head_dim), 0, false, "no head width"},
    {F(kda_head_dim), 349525, true, "3 * width just below 2^20"},
    {F(kda_head_dim), 349526, false, "3 * width just above 2^20"},
    {F(conv_taps), 0, false, "no taps"},
    {F(conv_taps), 1, true, "one tap"},
    {F(conv_taps), 16, true, "most taps"},
    {F(conv_taps), 17, false, "too many taps"},
    {F(mla_heads), 0, false, "no heads"},
    {F(mla_heads), 47662, true, "heads * (12 + 10) just below 2^20"},
    {F(mla_heads), 47663, false, "heads * (12 + 10) just above 2^20"},
    {F(q_lora_rank), 0, false, "no rank"},
    {F(q_lora_rank), (1U << 20) + 1, false, "rank above 2^20"},
    {F(kv_lora_rank), 0, false, "no rank"},
    {F(kv_lora_rank), 1U << 20, true, "most rank"},
    {F(kv_lora_rank), (1U << 20) + 1, false, "rank above 2^20"},
    {F(qk_nope_head_dim), 0, false, "no width"},
    {F(qk_nope_head_dim), 524288, false, "2 * (width + others) above 2^20"},
    {F(qk_nope_head_dim), UINT32_MAX, false, "a sum that wraps"},
    {F(qk_rope_head_dim), 0, false, "no width"},
    {F(qk_rope_head_dim), 524276, true, "2 * (12 + width) is 2^20"},
    {F(qk_rope_head_dim), 524277, false, "2 * (12 + width) is above 2^20"},
    {F(v_head_dim), 0, false, "no width"},
    {F(v_head_dim), 524276, true, "2 * (12 + width) is 2^20"},
    {F(v_head_dim), 524277, false, "2 * (12 + width) is above 2^20"},
    {F(dense_layers), 0, true, "every layer has experts"},
    {F(dense_layers), 2, true, "the last layer has experts"},
    {F(dense_layers), 3, false, "no layer has experts"},
    {F(dense_layers), UINT32_MAX, false, "far too many dense layers"},
    {F(dense_intermediate), 0, false, "no width"},
    {F(dense_intermediate), (1U << 20) + 1, false, "width above 2^20"},
    {F(experts), 1, false, "fewer experts than a token takes"},
    {F(experts), 2, true, "as many experts as a token takes"},
    {F(experts), 65535, true, "most experts"},
    {F(experts), 65536, false, "too many experts"},
    {F(experts_per_token), 0, false, "a token takes none"},
    {F(experts_per_token), 5, true, "a token takes all"},
    {F(experts_per_token), 6, false, "a token takes more than there are"},
    {F(experts_per_token), 257, false, "above the bound of top-k"},
    {F(shared_experts), 0, false, "no shared expert"},
    {F(shared_experts), 10922, true, "experts * 96 just below 2^20"},
    {F(shared_experts), 10923, false, "experts * 96 just above 2^20"},
    {F(latent), 0, false, "no width"},
    {F(latent), 32, true, "least width"},
    {F(latent), 48, false, "not a multiple of 32"},
    {F(latent), 1U << 20, true, "most width"},
    {F(expert_intermediate), 16, false, "below one group"},
    {F(expert_intermediate), 33, false, "not a multiple of 32"},
    {F(expert_intermediate), 32, true, "least width"},
    {F(attn_res_block_layers), 0, false, "a block of no layers"},
    {F(attn_res_block_layers), 1, true, "a block of one layer"},
    {F(bos_id), 300, false, "id not below the vocabulary"},
    {F(eos_id), 300, false, "id not below the vocabulary"},
    {F(pad_id), 300, false, "id not below the vocabulary"},
    {F(pad_id), UINT32_MAX, false, "id that is no id"},
};

START_TEST(u32_bounds)
{
    struct k3_model_spec spec = k3_toy_spec();
    memcpy((char *)&spec + u32_cases[_i].at, &u32_cases[_i].value, sizeof(uint32_t));
    const enum k3_code code = k3_model_spec_check(&spec, &err);
    ck_assert_msg(code == (u32_cases[_i].is_good ? K3_OK : K3_ERR_MALFORMED), "%s: %u gives %s",
                  u32_cases[_i].why, u32_cases[_i].value, k3_code_name(code));
}
END_TEST

static const struct {
    size_t at;
    double value;
    bool is_good;
    const char *why;
} real_cases[] = {
    {F(rms_norm_eps), 0.0, false, "zero"},
    {F(rms_norm_eps), -1e-5, false, "wrong sign"},
    {F(rms_norm_eps), (double)NAN, false, "not a number"},
    {F(rms_norm_eps), (double)INFINITY, false, "infinite"},
    {F(rms_norm_eps), 1e-310, false, "subnormal"},
    {F(rms_norm_eps), 1e-31, false, "no normal float"},
    {F(rms_norm_eps), 1e-6, true, "usual"},
    {F(situ_beta), 0.0, false, "zero"},
    {F(situ_beta), (double)NAN, false, "not a number"},
    {F(situ_beta), 1e31, false, "no float of use"},
    {F(situ_linear_beta), -25.0, false, "wrong sign"},
    {F(situ_linear_beta), (double)INFINITY, false, "infinite"},
    {F(gate_lower_bound), 5.0, false, "wrong sign"},
    {F(gate_lower_bound), 0.0, false, "zero"},
    {F(gate_lower_bound), -0.0, false, "zero with the right sign"},
    {F(gate_lower_bound), -(double)INFINITY, false, "infinite"},
    {F(gate_lower_bound), (double)NAN, false, "not a number"},
    {F(gate_lower_bound), -0.5, true, "usual"},
    {F(routed_scaling_factor), (double)NAN, false, "not a number"},
    {F(routed_scaling_factor), 0.0, false, "zero"},
    {F(routed_scaling_factor), 2.5, true, "usual"},
};

START_TEST(real_bounds)
{
    struct k3_model_spec spec = k3_toy_spec();
    memcpy((char *)&spec + real_cases[_i].at, &real_cases[_i].value, sizeof(double));
    const enum k3_code code = k3_model_spec_check(&spec, &err);
    ck_assert_msg(code == (real_cases[_i].is_good ? K3_OK : K3_ERR_MALFORMED), "%s: %g gives %s",
                  real_cases[_i].why, real_cases[_i].value, k3_code_name(code));
}
END_TEST

START_TEST(positions)
{
    struct k3_model_spec spec = k3_toy_spec();
    spec.max_positions = 0;
    ck_assert_code(k3_model_spec_check(&spec, NULL), K3_ERR_MALFORMED);
    spec.max_positions = UINT64_C(1) << 40;
    ck_assert_code(k3_model_spec_check(&spec, NULL), K3_OK);
    spec.max_positions++;
    ck_assert_code(k3_model_spec_check(&spec, NULL), K3_ERR_MALFORMED);
}
END_TEST

START_TEST(layer_kinds)
{
    static const struct {
        uint8_t kinds[3];
        bool is_good;
        uint64_t at;
        const char *why;
    } cases[] = {
        {{0, 0, 1}, true, 0, "both kinds"},      {{1, 1, 0}, true, 0, "both kinds, other order"},
        {{0, 0, 0}, false, 256, "no MLA layer"}, {{1, 1, 1}, false, 256, "no KDA layer"},
        {{0, 2, 1}, false, 257, "unknown kind"}, {{0, 1, 255}, false, 258, "unknown kind"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct k3_model_spec spec = k3_toy_spec();
        memcpy(spec.layer_kind, cases[i].kinds, 3);
        const enum k3_code code = k3_model_spec_check(&spec, &err);
        ck_assert_msg((code == K3_OK) == cases[i].is_good, "%s", cases[i].why);
        ck_assert_msg(cases[i].is_good || err.file_offset == cases[i].at, "%s", cases[i].why);
    }
}
END_TEST

START_TEST(spare_bytes)
{
    const struct k3_model_spec spec = k3_toy_spec();
    uint8_t good[256 + 3];
    k3_model_spec_encode(&spec, good);
    for (size_t at = 0; at < 256; at++) {
        const bool is_spare = (at >= 92 && at < 112) || (at >= 152 && at < 160) || at >= 168;
        if (!is_spare) {
            continue;
        }
        uint8_t bytes[sizeof good];
        memcpy(bytes, good, sizeof good);
        bytes[at] = 0x80;
        struct k3_model_spec out = {0};
        ck_assert_msg(k3_model_spec_decode(bytes, sizeof bytes, &out, &err) == K3_ERR_MALFORMED,
                      "spare byte %zu", at);
        ck_assert_msg(out.layers == 0, "output touched by spare byte %zu", at);
    }
}
END_TEST

START_TEST(lengths)
{
    const struct k3_model_spec spec = k3_toy_spec();
    uint8_t good[256 + 4] = {0};
    k3_model_spec_encode(&spec, good);
    for (size_t len = 0; len <= sizeof good; len++) {
        /* Exactly this many bytes, so that a sanitizer sees one too far. */
        uint8_t *bytes = malloc(len ? len : 1);
        memcpy(bytes, good, len);
        struct k3_model_spec out;
        const enum k3_code code = k3_model_spec_decode(bytes, len, &out, &err);
        ck_assert_msg(code == (len == 259 ? K3_OK : K3_ERR_MALFORMED), "length %zu", len);
        free(bytes);
    }
}
END_TEST

START_TEST(flipped_bits)
{
    const struct k3_model_spec spec = k3_toy_spec();
    uint8_t bytes[256 + 3];
    k3_model_spec_encode(&spec, bytes);
    for (size_t bit = 0; bit < 8 * sizeof bytes; bit++) {
        bytes[bit / 8] ^= (uint8_t)(1U << bit % 8);
        struct k3_model_spec out;
        if (k3_model_spec_decode(bytes, sizeof bytes, &out, NULL) == K3_OK) {
            uint8_t again[sizeof bytes];
            k3_model_spec_encode(&out, again);
            ck_assert_msg(memcmp(again, bytes, sizeof bytes) == 0, "bit %zu is lost", bit);
        }
        bytes[bit / 8] ^= (uint8_t)(1U << bit % 8);
    }
}
END_TEST

Suite *k3_suite(void)
{
    Suite *suite = suite_create("model_spec");
    TCase *round = tcase_create("round trip");
    tcase_add_loop_test(round, round_trip, 0, 2);
    tcase_add_test(round, layout);
    tcase_add_test(round, flipped_bits);
    suite_add_tcase(suite, round);
    TCase *bounds = tcase_create("bounds");
    tcase_add_loop_test(bounds, u32_bounds, 0, sizeof u32_cases / sizeof u32_cases[0]);
    tcase_add_loop_test(bounds, real_bounds, 0, sizeof real_cases / sizeof real_cases[0]);
    tcase_add_test(bounds, positions);
    tcase_add_test(bounds, layer_kinds);
    suite_add_tcase(suite, bounds);
    TCase *damage = tcase_create("damage");
    tcase_add_test(damage, spare_bytes);
    tcase_add_test(damage, lengths);
    suite_add_tcase(suite, damage);
    return suite;
}
