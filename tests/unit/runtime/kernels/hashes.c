/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/runtime/kernels/hashes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/runtime/kernels/fixture.h"

#define TOKENS 13U
#define N      1000U /* of vectors: ends inside a group */

static struct k3_digest digest_of(float *y, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (isnan(y[i])) {
            const uint32_t one_nan = 0x7fc00000;
            memcpy(&y[i], &one_nan, sizeof one_nan);
        }
    }
    return k3_digest_of(y, n * sizeof *y);
}

static struct k3_digest matrix_hash(const struct k3_kernels *tier, int is_m4, size_t tokens,
                                    enum kt_kind kind)
{
    struct kt_random random = {100 + (uint64_t)is_m4};
    struct kt_matrix m;
    (is_m4 ? kt_m4_make : kt_b16_make)(&m, 112, 896, 0, &random, kind);
    float *x = kt_floats(tokens * m.cols_padded, 0);
    float *y = kt_floats(tokens * m.rows, 0);
    kt_fill(x, tokens * m.cols_padded, &random, kind);
    const struct k3_tile_run run = kt_run(&m, 0, m.tile_count);
    (is_m4 ? tier->m4 : tier->b16)(&run, tokens, x, m.cols_padded, y, m.rows);
    const struct k3_digest digest = digest_of(y, tokens * m.rows);
    kt_floats_free(x, 0);
    kt_floats_free(y, 0);
    kt_matrix_done(&m);
    return digest;
}

static struct k3_digest router_hash(const struct k3_kernels *tier)
{
    struct kt_random random = {102};
    struct kt_matrix m;
    kt_b16_make(&m, 112, 896, 0, &random, KT_PLAIN);
    float *x = kt_floats(TOKENS * m.cols_padded, 0);
    double y[TOKENS * 112];
    kt_fill(x, TOKENS * m.cols_padded, &random, KT_PLAIN);
    const struct k3_tile_run run = kt_run(&m, 0, m.tile_count);
    tier->b16_router(&run, TOKENS, x, m.cols_padded, y, 112);
    kt_floats_free(x, 0);
    kt_matrix_done(&m);
    return k3_digest_of(y, sizeof y);
}

enum vector_kernel { DOT, RMS_NORM, SITU_GLU, GATE, SOFTMAX, RES_MIX, CONV_SILU };

static struct k3_digest vector_hash(const struct k3_kernels *tier, enum vector_kernel kernel)
{
    struct kt_random random = {200 + kernel};
    static float v[8][N];
    float y[N] = {0};
    for (size_t i = 0; i < 8; i++) {
        kt_fill(v[i], N, &random, KT_PLAIN);
    }
    const float *const sources[] = {v[0], v[1], v[2], v[3], v[4]};
    switch (kernel) {
    case DOT:
        for (size_t i = 0; i < N; i++) {
            y[i] = tier->dot(v[0] + i, v[1], N - i);
        }
        break;
    case RMS_NORM:
        tier->rms_norm(y, v[0], v[1], N, 1e-5F);
        break;
    case SITU_GLU:
        tier->situ_glu(y, v[0], v[1], N, 7.0F, 3.5F);
        break;
    case GATE:
        tier->gate(y, v[0], v[1], N);
        break;
    case SOFTMAX:
        tier->softmax(y, v[0], N);
        break;
    case RES_MIX:
        tier->res_mix(y, sources, 5, v[5], N, 1e-5F);
        break;
    case CONV_SILU:
        tier->conv_silu(y, v[0], 4, v[4], v[7], N / 4);
        break;
    }
    return digest_of(y, N);
}

static struct k3_digest kda_hash(const struct k3_kernels *tier)
{
    struct kt_random random = {300};
    static float state[128 * 128];
    float v[5][128];
    float o[8][128];
    kt_fill(state, 128 * 128, &random, KT_PLAIN);
    for (size_t token = 0; token < 8; token++) {
        float alpha[128];
        for (size_t i = 0; i < 5; i++) {
            kt_fill(v[i], 128, &random, KT_PLAIN);
        }
        tier->kda_normalise(v[0], v[1], 128);
        tier->kda_decay(alpha, v[3], v[4], 128, 1.5F, -5.0F);
        tier->kda_step(o[token], state, v[0], v[1], v[2], alpha, 0.75F, 128);
    }
    return digest_of(o[0], 8 * 128);
}

#define HEADS     20U
#define LATENT    96U
#define POSITIONS 150U

static struct k3_digest mla_hash(const struct k3_kernels *tier)
{
    struct kt_random random = {400};
    const size_t row_len = LATENT + 32;
    static float rows[POSITIONS * (LATENT + 32)];
    static float query[HEADS * (LATENT + 32)];
    static float p[HEADS * POSITIONS];
    static float mix[HEADS * LATENT];
    kt_fill(rows, POSITIONS * row_len, &random, KT_PLAIN);
    kt_fill(query, HEADS * row_len, &random, KT_PLAIN);
    tier->mla_scores(p, POSITIONS, query, row_len, HEADS, rows, row_len, row_len, POSITIONS,
                     0.0625F);
    for (size_t h = 0; h < HEADS; h++) {
        tier->softmax(p + h * POSITIONS, p + h * POSITIONS, POSITIONS);
    }
    tier->mla_mix(mix, LATENT, p, POSITIONS, HEADS, rows, row_len, LATENT, POSITIONS);
    return digest_of(mix, (size_t)HEADS * LATENT);
}

size_t kt_hashes(const struct k3_kernels *tier, struct kt_hash out_hashes[KT_HASHES_MAX])
{
    size_t n = 0;
    out_hashes[n++] = (struct kt_hash){"b16", matrix_hash(tier, 0, TOKENS, KT_PLAIN)};
    out_hashes[n++] = (struct kt_hash){"b16-wide", matrix_hash(tier, 0, 2, KT_WIDE)};
    out_hashes[n++] = (struct kt_hash){"m4", matrix_hash(tier, 1, TOKENS, KT_PLAIN)};
    out_hashes[n++] = (struct kt_hash){"m4-wide", matrix_hash(tier, 1, 2, KT_WIDE)};
    out_hashes[n++] = (struct kt_hash){"router", router_hash(tier)};
    out_hashes[n++] = (struct kt_hash){"dot", vector_hash(tier, DOT)};
    out_hashes[n++] = (struct kt_hash){"rms_norm", vector_hash(tier, RMS_NORM)};
    out_hashes[n++] = (struct kt_hash){"situ_glu", vector_hash(tier, SITU_GLU)};
    out_hashes[n++] = (struct kt_hash){"gate", vector_hash(tier, GATE)};
    out_hashes[n++] = (struct kt_hash){"softmax", vector_hash(tier, SOFTMAX)};
    out_hashes[n++] = (struct kt_hash){"res_mix", vector_hash(tier, RES_MIX)};
    out_hashes[n++] = (struct kt_hash){"conv_silu", vector_hash(tier, CONV_SILU)};
    out_hashes[n++] = (struct kt_hash){"kda", kda_hash(tier)};
    out_hashes[n++] = (struct kt_hash){"mla", mla_hash(tier)};
    return n;
}
