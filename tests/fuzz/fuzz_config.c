/* SPDX-License-Identifier: Apache-2.0 */
/* config.json. A spec that is accepted must pass its own check and encode to itself. */
#include <stdlib.h>
#include <string.h>

#include "format/base/assert.h"
#include "format/safetensors/config_json.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    struct k3_model_spec spec;
    struct k3_problems problems = {0};
    const enum k3_code code = k3_config_parse(bytes, len, &spec, &problems, NULL);
    k3_assert((code == K3_OK) == (problems.total == 0));
    k3_problems_done(&problems);
    if (code != K3_OK) {
        return 0;
    }
    k3_assert(k3_model_spec_check(&spec, NULL) == K3_OK);
    const size_t encoded_len = k3_model_spec_encoded_bytes(&spec);
    uint8_t *encoded = malloc(encoded_len);
    if (encoded) {
        struct k3_model_spec back;
        k3_model_spec_encode(&spec, encoded);
        k3_assert(k3_model_spec_decode(encoded, encoded_len, &back, NULL) == K3_OK);
        k3_assert(memcmp(back.layer_kind, spec.layer_kind, spec.layers) == 0);
    }
    free(encoded);
    return 0;
}
