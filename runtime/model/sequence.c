/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/model/sequence.h"

#include <inttypes.h>
#include <stdlib.h>

#include "format/base/ckd.h"

struct sizes {
    uint64_t kda_layers, mla_layers;
    uint64_t kda_state, conv, latent; /* floats of one layer */
    uint64_t bytes;
    bool overflows;
};

static struct sizes sizes_of(const struct k3_model_spec *spec, uint64_t context)
{
    struct sizes s = {0};
    for (uint32_t layer = 0; layer < spec->layers; layer++) {
        s.kda_layers += spec->layer_kind[layer] == K3_LAYER_KDA;
    }
    s.mla_layers = spec->layers - s.kda_layers;
    s.kda_state = (uint64_t)k3_spec_kda_width(spec) * spec->kda_head_dim;
    s.conv = 3 * (uint64_t)(spec->conv_taps - 1) * k3_spec_kda_width(spec);
    uint64_t latent_bytes = 0, total = 0;
    s.overflows =
        ckd_mul(&s.latent, context, (uint64_t)k3_spec_latent_row(spec)) ||
        ckd_mul(&latent_bytes, s.latent, s.mla_layers * sizeof(float)) ||
        ckd_add(&total, latent_bytes, s.kda_layers * (s.kda_state + s.conv) * sizeof(float)) ||
        total > SIZE_MAX / 2;
    s.bytes = s.overflows ? UINT64_MAX : total;
    return s;
}

uint64_t k3_sequence_bytes(const struct k3_model_spec *spec, uint64_t context)
{
    return sizes_of(spec, context).bytes;
}

/* calloc of at least one float: a convolution of one tap has no history. */
static float *zeros(uint64_t count)
{
    return calloc(count ? (size_t)count : 1, sizeof(float));
}

enum k3_code k3_sequence_init(const struct k3_model_spec *spec, uint64_t context,
                              struct k3_sequence *out_sequence, struct k3_error *err)
{
    const struct sizes z = sizes_of(spec, context);
    struct k3_sequence s = {.context = context,
                            .kda_state_floats = (size_t)z.kda_state,
                            .conv_floats = (size_t)z.conv,
                            .latent_floats = (size_t)z.latent};
    if (!z.overflows) {
        s.kda_state = zeros(z.kda_layers * z.kda_state);
        s.conv = zeros(z.kda_layers * z.conv);
        s.latent = zeros(z.mla_layers * z.latent);
    }
    if (!s.kda_state || !s.conv || !s.latent) {
        k3_sequence_done(&s);
        return k3_fail(err, K3_ERR_NO_MEMORY, K3_ERROR_NO_OFFSET,
                       "a context of %" PRIu64 " positions needs %" PRIu64
                       " bytes of state, which this machine does not have; lower --context",
                       context, z.bytes);
    }
    uint32_t count[2] = {0, 0};
    for (uint32_t layer = 0; layer < spec->layers; layer++) {
        s.index_in_kind[layer] = count[spec->layer_kind[layer]]++;
    }
    *out_sequence = s;
    return K3_OK;
}

void k3_sequence_done(struct k3_sequence *sequence)
{
    free(sequence->kda_state);
    free(sequence->conv);
    free(sequence->latent);
    *sequence = (struct k3_sequence){0};
}
