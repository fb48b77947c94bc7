/* SPDX-License-Identifier: Apache-2.0 */
#ifndef K3_FORMAT_SAFETENSORS_CONFIG_JSON_H
#define K3_FORMAT_SAFETENSORS_CONFIG_JSON_H

#include <stddef.h>
#include <stdint.h>

#include "format/base/error.h"
#include "format/base/problems.h"
#include "format/pack/model_spec.h"

/* config.json -> model spec. Reads text_config, its linear_attn_config and quantization_config at
 * exactly these places; the root gives model_type alone, and its special ids must not contradict
 * the text model's. vision_config is never searched.
 *
 * Nothing has a default: every key that is absent or of the wrong type is a problem that names its
 * path (text_config.linear_attn_config.head_dim), all of them together; every value that the
 * arithmetic does not implement (another activation, grouped routing, rotary positions, another
 * quantisation, tied embeddings, ...) is UNSUPPORTED, every value out of bounds MALFORMED, all of
 * them together too. Integers are integers: 3.5 and 3.0 are refused; where a real is meant, 4,
 * -5.0, 1e-05 and 0.00001 are all accepted, NaN and Infinity are not JSON.
 *
 * Mistake  top_k (50, a sampling default) for num_experts_per_token (16): both are in text_config.
 * Mistake  layer lists are 1-based; layer_kind is by layer from 0.
 * Source   the released config.json; spec of the released checkpoint, "Configuration". */
#define K3_CONFIG_NAME "config.json"
#define K3_CONFIG_MAX  1048576U /* bytes; the released one has 7,006 */

/* Fails when anything was added to `problems`, with the code of the first line it added; *out_spec
 * then is untouched, else it passes k3_model_spec_check. Errors: MALFORMED, UNSUPPORTED,
 * NO_MEMORY. */
K3_MUST_CHECK enum k3_code k3_config_parse(const uint8_t *bytes, size_t len,
                                           struct k3_model_spec *out_spec,
                                           struct k3_problems *problems, struct k3_error *err);

#endif
