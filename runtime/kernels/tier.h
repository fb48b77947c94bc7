/* SPDX-License-Identifier: Apache-2.0 */
#ifndef K3_RUNTIME_KERNELS_TIER_H
#define K3_RUNTIME_KERNELS_TIER_H

#include "runtime/kernels/kernels.h"

/* What a tier consists of: the functions of struct k3_kernels under the names k3_<tier>_<member>,
 * declared by K3_TIER_DECLARE(tier), and the table, k3_<tier>_kernels, made by K3_TIER_DEFINE. */

#define K3_TIER_DECLARE(tier)                                                                      \
    extern const struct k3_kernels k3_##tier##_kernels;                                            \
    void k3_##tier##_b16(const struct k3_tile_run *run, size_t tokens, const float *x,             \
                         size_t x_stride, float *y, size_t y_stride);                              \
    void k3_##tier##_m4(const struct k3_tile_run *run, size_t tokens, const float *x,              \
                        size_t x_stride, float *y, size_t y_stride);                               \
    void k3_##tier##_b16_router(const struct k3_tile_run *run, size_t tokens, const float *x,      \
                                size_t x_stride, double *y, size_t y_stride);                      \
    float k3_##tier##_dot(const float *a, const float *b, size_t n);                               \
    void k3_##tier##_rms_norm(float *y, const float *x, const float *gain, size_t n, float eps);   \
    void k3_##tier##_situ_glu(float *y, const float *gate, const float *up, size_t n, float beta,  \
                              float linear_beta);                                                  \
    void k3_##tier##_gate(float *y, const float *x, const float *gate, size_t n);                  \
    void k3_##tier##_add(float *y, const float *a, const float *b, size_t n);                      \
    void k3_##tier##_mul(float *y, const float *a, const float *b, size_t n);                      \
    void k3_##tier##_axpy(float *y, float a, const float *x, size_t n);                            \
    void k3_##tier##_softmax(float *p, const float *s, size_t n);                                  \
    void k3_##tier##_res_mix(float *y, const float *const *sources, size_t source_count,           \
                             const float *folded, size_t n, float eps);                            \
    void k3_##tier##_conv_silu(float *y, const float *taps, size_t tap_count,                      \
                               const float *history, const float *x, size_t channels);             \
    void k3_##tier##_kda_normalise(float *q, float *k, size_t n);                                  \
    void k3_##tier##_kda_decay(float *alpha, const float *z, const float *dt_bias, size_t n,       \
                               float exp_a, float lower_bound);                                    \
    void k3_##tier##_kda_step(float *o, float *S, const float *q, const float *k, const float *v,  \
                              const float *alpha, float beta, size_t n);                           \
    void k3_##tier##_mla_scores(float *scores, size_t score_stride, const float *query,            \
                                size_t query_stride, size_t heads, const float *rows,              \
                                size_t row_stride, size_t row_len, size_t positions, float scale); \
    void k3_##tier##_mla_mix(float *mix, size_t mix_stride, const float *p, size_t p_stride,       \
                             size_t heads, const float *rows, size_t row_stride, size_t latent,    \
                             size_t positions);                                                    \
    void k3_##tier##_bf16_widen(float *y, const uint8_t *bf16, size_t n);                          \
    int k3_##tier##_all_finite(const float *x, size_t n);                                          \
    K3_MUST_END_WITH_SEMICOLON

#define K3_TIER_DEFINE(tier)                                                                       \
    const struct k3_kernels k3_##tier##_kernels = {                                                \
        .name = #tier,                                                                             \
        .b16 = k3_##tier##_b16,                                                                    \
        .m4 = k3_##tier##_m4,                                                                      \
        .b16_router = k3_##tier##_b16_router,                                                      \
        .dot = k3_##tier##_dot,                                                                    \
        .rms_norm = k3_##tier##_rms_norm,                                                          \
        .situ_glu = k3_##tier##_situ_glu,                                                          \
        .gate = k3_##tier##_gate,                                                                  \
        .add = k3_##tier##_add,                                                                    \
        .mul = k3_##tier##_mul,                                                                    \
        .axpy = k3_##tier##_axpy,                                                                  \
        .softmax = k3_##tier##_softmax,                                                            \
        .res_mix = k3_##tier##_res_mix,                                                            \
        .conv_silu = k3_##tier##_conv_silu,                                                        \
        .kda_normalise = k3_##tier##_kda_normalise,                                                \
        .kda_decay = k3_##tier##_kda_decay,                                                        \
        .kda_step = k3_##tier##_kda_step,                                                          \
        .mla_scores = k3_##tier##_mla_scores,                                                      \
        .mla_mix = k3_##tier##_mla_mix,                                                            \
        .bf16_widen = k3_##tier##_bf16_widen,                                                      \
        .all_finite = k3_##tier##_all_finite,                                                      \
    }

/* C17 has no empty declaration at file scope. */
#define K3_MUST_END_WITH_SEMICOLON struct k3_kernels

#endif
