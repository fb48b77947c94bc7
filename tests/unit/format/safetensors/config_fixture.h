/* SPDX-License-Identifier: Apache-2.0 */
#ifndef K3_TESTS_UNIT_FORMAT_SAFETENSORS_CONFIG_FIXTURE_H
#define K3_TESTS_UNIT_FORMAT_SAFETENSORS_CONFIG_FIXTURE_H

#include <jansson.h>

#include "format/safetensors/config_json.h"

/* The released config.json (tests/golden/config_released.json, a copy), to be changed. */
#define K3_CONFIG_RELEASED K3_TESTS_DIR "/golden/config_released.json"

/* Dotted paths of the objects that are not text_config itself. */
#define LINEAR  "text_config.linear_attn_config."
#define QUANT   "text_config.quantization_config."
#define GROUP   QUANT "config_groups.group_0."
#define WEIGHTS GROUP "weights."

/* Fresh; the caller's. */
json_t *k3_config_released(void);

/* Puts the JSON text `value` (NULL removes) at a dotted path; the objects on the way must be there.
 */
void k3_config_put(json_t *root, const char *path, const char *value);

/* k3_config_parse of the root's text. */
enum k3_code k3_config_parse_root(const json_t *root, struct k3_model_spec *out_spec,
                                  struct k3_problems *problems, struct k3_error *err);

#endif
