/* SPDX-License-Identifier: Apache-2.0 */
#ifndef K3_FORMAT_BASE_JSON_H
#define K3_FORMAT_BASE_JSON_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "format/base/error.h"

/* jansson with our bounds. Refuses: more than max_bytes, duplicate keys, invalid UTF-8, NUL in
 * strings, trailing bytes other than white space, integers beyond 64 bits, NaN and infinity,
 * nesting beyond K3_JSON_DEPTH_MAX. Integers stay integers: 3.5 and 3.0 are not JSON integers here.
 * Any value may be the root. *out_root is the caller's: json_decref. Errors: MALFORMED with the
 * byte offset. */
#define K3_JSON_DEPTH_MAX 64

K3_MUST_CHECK enum k3_code k3_json_parse(const uint8_t *bytes, size_t len, size_t max_bytes,
                                         json_t **out_root, struct k3_error *err);

/* The same where no integer is wanted: every number is a real, so that integers beyond 64 bits pass
 * (tokenizer_config.json has "model_max_length": 1000000000000000019884624838656). */
K3_MUST_CHECK enum k3_code k3_json_parse_reals(const uint8_t *bytes, size_t len, size_t max_bytes,
                                               json_t **out_root, struct k3_error *err);

#endif
