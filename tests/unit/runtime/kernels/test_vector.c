/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <string.h>

#include "format/base/bytes.h"
#include "tests/support/suite_main.h"
#include "tests/unit/runtime/kernels/fixture.h"
#include "tests/unit/runtime/kernels/plain.h"

/* Every vector kernel of every tier against the plain one, bit for bit, at every length around the
 * groups of 32 and 128, at four alignments, with all kinds of numbers. */

static const size_t lengths[] = {1,   2,   3,   7,   8,   9,   15,  16,   17,  31,
                                 32,  33,  48,  63,  64,  65,  95,  127,  128, 129,
                                 143, 160, 224, 255, 256, 257, 385, 1000, 1536};
#define LENGTHS    (int)(sizeof lengths / sizeof lengths[0])
#define LENGTH_MAX 1536U
#define SOURCES    5U

/* Inputs a, b, c of one case; each test takes what it needs. */
struct inputs {
    size_t n, misalign;
    enum kt_kind kind;
    float *a, *b, *c, *got, *expected;
};

typedef void (*check_fn)(const struct k3_kernels *tier, struct inputs *in);

static void expect_equal(const struct k3_kernels *tier, const struct inputs *in, const char *what)
{
    const size_t at = kt_differs_at(in->got, in->expected, in->n);
    ck_assert_msg(at == in->n, "%s %s: n %zu misaligned %zu %s, element %zu: %a, not %a",
                  tier->name, what, in->n, in->misalign, kt_kind_name(in->kind), at,
                  (double)in->got[at], (double)in->expected[at]);
    ck_assert_msg(in->got[in->n] == 99.0F, "%s %s: wrote beyond n", tier->name, what);
}

/* Runs `check` for one length in every tier, kind and alignment. */
static void for_all(size_t n, check_fn check)
{
    const struct k3_kernels *tiers[KT_TIERS_MAX];
    kt_tiers(tiers);
    for (int kind = 0; kind < KT_KINDS; kind++) {
        for (size_t misalign = 0; misalign < 4; misalign++) {
            struct kt_random random = {n * 100 + misalign};
            struct inputs in = {.n = n, .misalign = misalign, .kind = (enum kt_kind)kind};
            float **const buffers[] = {&in.a, &in.b, &in.c, &in.got, &in.expected};
            for (size_t i = 0; i < 5; i++) {
                *buffers[i] = kt_floats(n + 1, misalign);
                kt_fill(*buffers[i], n, &random, in.kind);
            }
            for (size_t i = 0; tiers[i]; i++) {
                in.got[n] = 99.0F;
                check(tiers[i], &in);
            }
            for (size_t i = 0; i < 5; i++) {
                kt_floats_free(*buffers[i], misalign);
            }
        }
    }
}

static void check_dot(const struct k3_kernels *tier, struct inputs *in)
{
    const float got = tier->dot(in->a, in->b, in->n);
    const float expected = plain_d128(in->a, 1, in->b, 1, NULL, in->n);
    ck_assert_msg(kt_same(got, expected), "%s dot: n %zu %s: %a, not %a", tier->name, in->n,
                  kt_kind_name(in->kind), (double)got, (double)expected);
}

static void check_rms_norm(const struct k3_kernels *tier, struct inputs *in)
{
    plain_rms_norm(in->expected, in->a, in->b, in->n, 1e-5F);
    tier->rms_norm(in->got, in->a, in->b, in->n, 1e-5F);
    expect_equal(tier, in, "rms_norm");
    memcpy(in->got, in->a, in->n * sizeof(float));
    tier->rms_norm(in->got, in->got, in->b, in->n, 1e-5F);
    expect_equal(tier, in, "rms_norm in place");
}

static void check_situ_glu(const struct k3_kernels *tier, struct inputs *in)
{
    for (size_t i = 0; i < in->n; i++) {
        in->expected[i] = plain_situ_glu(in->a[i], in->b[i], 7.0F, 3.5F);
    }
    tier->situ_glu(in->got, in->a, in->b, in->n, 7.0F, 3.5F);
    expect_equal(tier, in, "situ_glu");
    memcpy(in->got, in->a, in->n * sizeof(float));
    tier->situ_glu(in->got, in->got, in->b, in->n, 7.0F, 3.5F);
    expect_equal(tier, in, "situ_glu over the gate");
    memcpy(in->got, in->b, in->n * sizeof(float));
    tier->situ_glu(in->got, in->a, in->got, in->n, 7.0F, 3.5F);
    expect_equal(tier, in, "situ_glu over up");
}

static void check_gate(const struct k3_kernels *tier, struct inputs *in)
{
    for (size_t i = 0; i < in->n; i++) {
        in->expected[i] = in->a[i] * plain_sigmoid(in->b[i]);
    }
    tier->gate(in->got, in->a, in->b, in->n);
    expect_equal(tier, in, "gate");
    memcpy(in->got, in->a, in->n * sizeof(float));
    tier->gate(in->got, in->got, in->b, in->n);
    expect_equal(tier, in, "gate in place");
    memcpy(in->got, in->b, in->n * sizeof(float));
    tier->gate(in->got, in->a, in->got, in->n);
    expect_equal(tier, in, "gate over the gate");
}

static void check_add_mul_axpy(const struct k3_kernels *tier, struct inputs *in)
{
    for (size_t i = 0; i < in->n; i++) {
        in->expected[i] = in->a[i] + in->b[i];
    }
    tier->add(in->got, in->a, in->b, in->n);
    expect_equal(tier, in, "add");
    memcpy(in->got, in->b, in->n * sizeof(float));
    tier->add(in->got, in->a, in->got, in->n);
    expect_equal(tier, in, "add in place");
    for (size_t i = 0; i < in->n; i++) {
        in->expected[i] = in->a[i] * in->b[i];
    }
    tier->mul(in->got, in->a, in->b, in->n);
    expect_equal(tier, in, "mul");
    for (size_t i = 0; i < in->n; i++) {
        in->expected[i] = fmaf(in->c[0], in->a[i], in->b[i]);
    }
    memcpy(in->got, in->b, in->n * sizeof(float));
    tier->axpy(in->got, in->c[0], in->a, in->n);
    expect_equal(tier, in, "axpy");
}

static void check_softmax(const struct k3_kernels *tier, struct inputs *in)
{
    plain_softmax(in->expected, in->a, in->n);
    tier->softmax(in->got, in->a, in->n);
    expect_equal(tier, in, "softmax");
    memcpy(in->got, in->a, in->n * sizeof(float));
    tier->softmax(in->got, in->got, in->n);
    expect_equal(tier, in, "softmax in place");
}

static void check_res_mix(const struct k3_kernels *tier, struct inputs *in)
{
    const float *const sources[SOURCES] = {in->a, in->b, in->c, in->b, in->a};
    for (size_t count = 1; count <= SOURCES; count++) {
        plain_res_mix(in->expected, sources, count, in->c, in->n, 1e-6F);
        tier->res_mix(in->got, sources, count, in->c, in->n, 1e-6F);
        expect_equal(tier, in, "res_mix");
    }
}

static void check_conv_silu(const struct k3_kernels *tier, struct inputs *in)
{
    float taps[4 * (LENGTH_MAX + 1)];
    float history[4 * (LENGTH_MAX + 1)];
    struct kt_random random = {in->n};
    for (size_t tap_count = 1; tap_count <= 4; tap_count++) {
        kt_fill(taps, tap_count * in->n, &random, in->kind);
        kt_fill(history, tap_count * in->n, &random, in->kind);
        plain_conv_silu(in->expected, taps, tap_count, history, in->a, in->n);
        tier->conv_silu(in->got, taps, tap_count, history, in->a, in->n);
        expect_equal(tier, in, "conv_silu");
    }
}

static void check_bf16_widen(const struct k3_kernels *tier, struct inputs *in)
{
    uint8_t bf16[2 * LENGTH_MAX + 1];
    for (size_t i = 0; i < in->n; i++) {
        in->expected[i] = k3_bf16_widen((uint16_t)(k3_f32_to_bits(in->a[i]) >> 16));
        k3_le16_put(bf16 + 1 + 2 * i, (uint16_t)(k3_f32_to_bits(in->a[i]) >> 16));
    }
    tier->bf16_widen(in->got, bf16 + 1, in->n);
    expect_equal(tier, in, "bf16_widen");
}

static void check_all_finite(const struct k3_kernels *tier, struct inputs *in)
{
    static const float bad[] = {INFINITY, -INFINITY, NAN};
    struct kt_random random = {in->n};
    kt_fill(in->got, in->n, &random, KT_WIDE);
    ck_assert_int_eq(tier->all_finite(in->got, in->n), 1);
    for (size_t i = 0; i < in->n; i++) {
        const float kept = in->got[i];
        in->got[i] = bad[i % 3];
        ck_assert_msg(tier->all_finite(in->got, in->n) == 0,
                      "%s all_finite: missed element %zu of %zu", tier->name, i, in->n);
        in->got[i] = kept;
    }
}

static const check_fn checks[] = {
    check_dot,     check_rms_norm, check_situ_glu,  check_gate,       check_add_mul_axpy,
    check_softmax, check_res_mix,  check_conv_silu, check_bf16_widen, check_all_finite};
#define CHECKS (int)(sizeof checks / sizeof checks[0])

START_TEST(test_vector)
{
    for_all(lengths[_i % LENGTHS], checks[_i / LENGTHS]);
}
END_TEST

/* The tiers' vector exp, sigmoid and tanh, over the whole line: a stride that is odd and meets
 * every exponent. */
#define SWEEP_STRIDE 32749U
#define SWEEP        512U

START_TEST(test_sweep)
{
    const struct k3_kernels *tiers[KT_TIERS_MAX];
    kt_tiers(tiers);
    float x[SWEEP], one[SWEEP], got[SWEEP], expected[SWEEP];
    uint32_t bits = 0;
    for (size_t i = 0; i < SWEEP; i++) {
        one[i] = 1.0F;
    }
    for (size_t block = 0; block < (UINT32_MAX / SWEEP_STRIDE) / SWEEP; block++) {
        for (size_t i = 0; i < SWEEP; i++, bits += SWEEP_STRIDE) {
            x[i] = k3_f32_from_bits(bits);
        }
        for (size_t t = 0; tiers[t]; t++) {
            tiers[t]->gate(got, one, x, SWEEP);
            for (size_t i = 0; i < SWEEP; i++) {
                expected[i] = k3_sigmoid_f(x[i]);
            }
            size_t at = kt_differs_at(got, expected, SWEEP);
            ck_assert_msg(at == SWEEP, "%s sigmoid(%a)", tiers[t]->name, (double)x[at % SWEEP]);
            for (size_t i = 0; i < SWEEP; i++) {
                got[i] = 100.0F; /* tanh and sigmoid of it are 1 */
                expected[i] = k3_tanh_f(x[i]);
            }
            tiers[t]->situ_glu(got, got, x, SWEEP, 1.0F, 1.0F);
            at = kt_differs_at(got, expected, SWEEP);
            ck_assert_msg(at == SWEEP, "%s tanh(%a)", tiers[t]->name, (double)x[at % SWEEP]);
        }
    }
}
END_TEST

Suite *k3_suite(void)
{
    Suite *suite = suite_create("kernels: vectors");
    TCase *bits = tcase_create("bits");
    tcase_add_loop_test(bits, test_vector, 0, LENGTHS * CHECKS);
    tcase_add_test(bits, test_sweep);
    suite_add_tcase(suite, bits);
    return suite;
}
