/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/format/safetensors/config_fixture.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

json_t *k3_config_released(void)
{
    json_t *root = json_load_file(K3_CONFIG_RELEASED, 0, NULL);
    ck_assert_ptr_nonnull(root);
    return root;
}

void k3_config_put(json_t *root, const char *path, const char *value)
{
    char copy[256];
    snprintf(copy, sizeof copy, "%s", path);
    json_t *object = root;
    char *key = copy;
    for (char *dot = strchr(key, '.'); dot; dot = strchr(key, '.')) {
        *dot = 0;
        object = json_object_get(object, key);
        ck_assert_msg(json_is_object(object), "no object on the way to %s", path);
        key = dot + 1;
    }
    if (value) {
        json_t *parsed = json_loads(value, JSON_DECODE_ANY, NULL);
        ck_assert_msg(json_object_set_new(object, key, parsed) == 0, "not JSON: %s", value);
    } else {
        ck_assert_msg(json_object_del(object, key) == 0, "no key %s", path);
    }
}

enum k3_code k3_config_parse_root(const json_t *root, struct k3_model_spec *out_spec,
                                  struct k3_problems *problems, struct k3_error *err)
{
    char *text = json_dumps(root, 0);
    ck_assert_ptr_nonnull(text);
    const enum k3_code code =
        k3_config_parse((const uint8_t *)text, strlen(text), out_spec, problems, err);
    free(text);
    return code;
}
