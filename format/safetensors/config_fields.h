/* SPDX-License-Identifier: Apache-2.0 */
#ifndef K3_FORMAT_SAFETENSORS_CONFIG_FIELDS_H
#define K3_FORMAT_SAFETENSORS_CONFIG_FIELDS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "format/base/problems.h"
#include "format/pack/model_spec.h"

/* The keys of config.json that hold one value each: where they are, of which type, within which
 * bounds. What relates two of them is config_json's. */

/* The objects that hold keys. */
enum k3_config_place {
    K3_CONFIG_TEXT,
    K3_CONFIG_LINEAR,
    K3_CONFIG_QUANT,
    K3_CONFIG_GROUPS,
    K3_CONFIG_GROUP,
    K3_CONFIG_WEIGHTS,
    K3_CONFIG_PLACES /* how many */
};

struct k3_config_places {
    json_t *at[K3_CONFIG_PLACES]; /* borrowed from the root; NULL: not there */
};

/* What is read: the spec, and what it is checked against. */
struct k3_config_reading {
    struct k3_model_spec spec;
    uint32_t kv_heads;
};

/* An object that is absent or no object is one problem, for all of its keys. */
void k3_config_find_places(const json_t *root, struct k3_config_places *out_places,
                           struct k3_problems *problems);

/* Problems: first every key that is absent or ill-typed, then every value out of bounds or not
 * implemented. True when every number is there and within its bounds; others may be wrong still. */
bool k3_config_read_fields(const struct k3_config_places *in, struct k3_config_reading *reading,
                           struct k3_problems *problems);

/* "an integer", "a string", ...: what a value is, for messages. */
const char *k3_config_kind_of(const json_t *value);

#endif
