/* SPDX-License-Identifier: Apache-2.0 */
#ifndef K3_RUNTIME_MODEL_SEQUENCE_H
#define K3_RUNTIME_MODEL_SEQUENCE_H

#include "format/pack/model_spec.h"

/* What a sequence leaves behind, layer by layer (report 6): recurrent state and convolution history
 * of the KDA layers, of fixed size; one row per position for the MLA layers. Zero at the start. A
 * sequence cannot be rewound. */
struct k3_sequence {
    uint64_t context; /* positions that fit          */
    uint64_t length;  /* positions already processed */

    /* All of one kind behind each other, in layer order. */
    float *kda_state; /* per KDA layer [heads][head_dim key][head_dim value]            */
    float *conv;      /* per KDA layer [3: q, k, v][taps - 1, oldest first][heads * head_dim] */
    float *latent;    /* per MLA layer [context][kv_lora_rank + qk_rope_head_dim]       */

    uint32_t index_in_kind[K3_LAYERS_MAX];               /* layer -> which of its kind */
    size_t kda_state_floats, conv_floats, latent_floats; /* of one layer */
};

/* Bytes that a sequence of this context takes. */
uint64_t k3_sequence_bytes(const struct k3_model_spec *spec, uint64_t context);

/* Errors: NO_MEMORY, with the bytes that it needs. */
K3_MUST_CHECK enum k3_code k3_sequence_init(const struct k3_model_spec *spec, uint64_t context,
                                            struct k3_sequence *out_sequence, struct k3_error *err);
void k3_sequence_done(struct k3_sequence *sequence);

static inline float *k3_sequence_kda_state(const struct k3_sequence *s, uint32_t layer)
{
    return s->kda_state + s->index_in_kind[layer] * s->kda_state_floats;
}
static inline float *k3_sequence_conv(const struct k3_sequence *s, uint32_t layer)
{
    return s->conv + s->index_in_kind[layer] * s->conv_floats;
}
static inline float *k3_sequence_latent(const struct k3_sequence *s, uint32_t layer)
{
    return s->latent + s->index_in_kind[layer] * s->latent_floats;
}

#endif
