/* SPDX-License-Identifier: Apache-2.0 */
#ifndef K3_RUNTIME_MODEL_SCRATCH_H
#define K3_RUNTIME_MODEL_SCRATCH_H

#include "format/pack/model_spec.h"
#include "runtime/model/compute.h"
#include "runtime/model/expert_weights.h"
#include "runtime/model/router.h"

/* Experts that are computed together: their pairs fit the wave buffers. Room for `pairs` experts.
 */
struct k3_expert_wave {
    size_t count, pairs;
    uint32_t *experts;
    size_t *first_pair; /* in the wave buffers */
    struct k3_expert_weights *weights;
};

/* Working memory of a forward pass over up to `tokens` tokens, allocated once. Every row is
 * k3_padded long; beyond its own length there are finite values that meet only the zero padding of
 * tiles (an exact no-op, docs/arithmetic.md 2): zeros, or what a wider use of the buffer left.
 * Shapes below are without padding; T = tokens. */
struct k3_scratch {
    size_t tokens; /* T */
    size_t pairs;  /* (token, expert) pairs of one wave: max(T, experts_per_token) */
    size_t bank_count;
    size_t bank_max;

    /* Attention residuals: [bank_max][T][hidden], and per token. */
    float *bank, *cur, *folded; /* folded [hidden]: gain * proj */
    float *mixed, *normed, *branch;

    /* KDA, width W = heads * head_dim. conv_in has taps - 1 rows of history before T rows, dense.
     */
    float *conv_in[3],
        *conv_out[3];    /* q, k, v; conv_in dense [taps-1+T][W], conv_out dense [T][W] */
    float *projected[3]; /* q, k, v before the convolution [T][W] */
    size_t wide_stride;  /* of gate and attn, wide enough for both kinds of layer */
    size_t mlp_stride;   /* of mlp_gate and mlp_up, likewise                      */
    float *f_a, *z, *beta, *alpha, *gate, *attn; /* [T][head_dim], [T][W], [T][heads], ... */

    /* MLA, A = heads. */
    float *q_a, *q, *kv, *nope, *query, *mix, *value;
    float *scores; /* [threads][K3_MLA_HEAD_BLOCK][context] */
    size_t score_stride;

    /* MLP: dense or shared, then experts. */
    float *mlp_gate, *mlp_up, *mlp_out, *latent, *latent_sum;
    double *router_logits;
    struct k3_pick *picks;                           /* [T][experts_per_token], ascending expert */
    float *expert_out;                               /* [T][experts_per_token][latent]           */
    float *wave_in, *wave_gate, *wave_up, *wave_out; /* [pairs][...]    */
    uint32_t *expert_first;                          /* [experts + 1]: counting sort of the picks */
    uint32_t *pair_of;                               /* [T * experts_per_token]                  */
    uint32_t *announced;                             /* [experts]                                */
    struct k3_expert_wave wave;

    struct k3_matmul *jobs, *piece; /* room for job_max */
    size_t job_max;

    void *memory[64]; /* everything owned */
    size_t memory_count;
};

#define K3_MLA_HEAD_BLOCK 16U /* heads scored together by one thread */

/* Bytes that scratch for these counts takes. */
uint64_t k3_scratch_bytes(const struct k3_model_spec *spec, size_t tokens, uint64_t context,
                          unsigned threads);

K3_MUST_CHECK enum k3_code k3_scratch_init(const struct k3_model_spec *spec, size_t tokens,
                                           uint64_t context, unsigned threads,
                                           struct k3_scratch *out_scratch, struct k3_error *err);
void k3_scratch_done(struct k3_scratch *scratch);

#endif
