/* SPDX-License-Identifier: Apache-2.0 */
#ifndef K3_TESTS_UNIT_RUNTIME_KERNELS_PLAIN_H
#define K3_TESTS_UNIT_RUNTIME_KERNELS_PLAIN_H

#include <stddef.h>

/* docs/arithmetic.md once more, written from its text with nothing of runtime/kernels: the second
 * opinion that every tier, the scalar one included, is compared with. Term by term, one output at a
 * time. Section numbers are the document's. */

/* 2. scale: one factor per 32 terms, or NULL. The terms are a_stride and b_stride floats apart. */
float plain_d128(const float *a, size_t a_stride, const float *b, size_t b_stride,
                 const float *scale, size_t n);
float plain_sum128(const float *v, size_t n);

/* 3. */
double plain_exp_d(double x);
double plain_sigmoid_d(double x);
float plain_exp(float x);
float plain_sigmoid(float x);
float plain_tanh(float x);

/* 4, 5. */
void plain_rms_norm(float *y, const float *x, const float *gain, size_t n, float eps);
float plain_situ_glu(float gate, float up, float beta, float linear_beta);
void plain_res_mix(float *y, const float *const *sources, size_t source_count, const float *folded,
                   size_t n, float eps);
void plain_conv_silu(float *y, const float *taps, size_t tap_count, const float *history,
                     const float *x, size_t channels);

/* 6. */
void plain_kda_normalise(float *q, float *k, size_t n);
void plain_kda_decay(float *alpha, const float *z, const float *dt_bias, size_t n, float exp_a,
                     float lower_bound);
void plain_kda_step(float *o, float *S, const float *q, const float *k, const float *v,
                    const float *alpha, float beta, size_t n);

/* 7. */
void plain_softmax(float *p, const float *s, size_t n);

/* 8. The logit of one expert. */
double plain_router(const float *w, const float *x, size_t n);

#endif
