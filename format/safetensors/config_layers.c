/* SPDX-License-Identifier: Apache-2.0 */
#include "format/safetensors/config_layers.h"

#include <stdbool.h>
#include <string.h>

#include "format/base/assert.h"
#include "format/pack/model_spec.h"

#define PATH "text_config.linear_attn_config."

enum { UNCLAIMED = 0xff };

static const struct {
    const char *key;
    enum k3_layer_kind kind;
} lists[] = {
    {"kda_layers", K3_LAYER_KDA},
    {"full_attn_layers", K3_LAYER_MLA},
};

enum { LIST_COUNT = sizeof lists / sizeof lists[0] };

/* A list of integers, or a problem that says what it is instead. */
static bool is_list(const json_t *list, const char *key, struct k3_problems *problems)
{
    if (!list) {
        k3_problems_add(problems, K3_ERR_MALFORMED, PATH "%s is missing", key);
        return false;
    }
    if (!json_is_array(list) || json_array_size(list) == 0) {
        k3_problems_add(problems, K3_ERR_MALFORMED,
                        PATH "%s must be a list of layer numbers that is not empty", key);
        return false;
    }
    bool all = true;
    for (size_t i = 0; i < json_array_size(list); i++) {
        if (!json_is_integer(json_array_get(list, i))) {
            k3_problems_add(problems, K3_ERR_MALFORMED, PATH "%s[%zu] must be an integer", key, i);
            all = false;
        }
    }
    return all;
}

static void claim(const json_t *list, size_t which, uint32_t layers, uint8_t *layer_kind,
                  struct k3_problems *problems)
{
    const char *key = lists[which].key;
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_int_t number = json_integer_value(json_array_get(list, i));
        if (number < 1 || number > (json_int_t)layers) {
            k3_problems_add(problems, K3_ERR_MALFORMED,
                            PATH "%s[%zu] is %lld, must be 1..%u (numbers count from 1)", key, i,
                            (long long)number, layers);
            continue;
        }
        uint8_t *kind = &layer_kind[number - 1];
        if (*kind == (uint8_t)lists[which].kind) {
            k3_problems_add(problems, K3_ERR_MALFORMED, PATH "%s has %lld twice", key,
                            (long long)number);
        } else if (*kind != UNCLAIMED) {
            k3_problems_add(problems, K3_ERR_MALFORMED,
                            PATH "kda_layers and " PATH "full_attn_layers both have %lld",
                            (long long)number);
        }
        *kind = (uint8_t)lists[which].kind;
    }
}

void k3_config_layers_read(const json_t *linear, uint32_t layers, uint8_t *out_layer_kind,
                           struct k3_problems *problems)
{
    k3_assert(layers <= K3_LAYERS_MAX);
    memset(out_layer_kind, UNCLAIMED, layers);
    bool all = true;
    for (size_t i = 0; i < LIST_COUNT; i++) {
        const json_t *list = json_object_get(linear, lists[i].key);
        if (!is_list(list, lists[i].key, problems)) {
            all = false;
        } else if (layers > 0) {
            claim(list, i, layers, out_layer_kind, problems);
        }
    }
    for (uint32_t layer = 0; all && layer < layers; layer++) {
        if (out_layer_kind[layer] == UNCLAIMED) {
            k3_problems_add(problems, K3_ERR_MALFORMED,
                            "neither " PATH "kda_layers nor " PATH "full_attn_layers has %u",
                            layer + 1);
        }
    }
}
