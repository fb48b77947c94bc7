/* SPDX-License-Identifier: Apache-2.0 */
#ifndef K3_FORMAT_SAFETENSORS_CONFIG_LAYERS_H
#define K3_FORMAT_SAFETENSORS_CONFIG_LAYERS_H

#include <jansson.h>
#include <stdint.h>

#include "format/base/problems.h"

/* kda_layers and full_attn_layers of `linear` (linear_attn_config), numbers from 1, into
 * layer_kind[layers] by layer from 0 (enum k3_layer_kind). Problems: a list that is absent, empty
 * or holds anything but integers; a number outside 1..layers, twice in a list, in both, or in
 * neither. layers <= K3_LAYERS_MAX (asserted); 0 means that it is not known, and only types are
 * checked. */
void k3_config_layers_read(const json_t *linear, uint32_t layers, uint8_t *out_layer_kind,
                           struct k3_problems *problems);

#endif
