/* SPDX-License-Identifier: Apache-2.0 */
#ifndef K3_FORMAT_SAFETENSORS_JSON_WALK_H
#define K3_FORMAT_SAFETENSORS_JSON_WALK_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "format/base/error.h"

/* Visits the members of large JSON objects one by one, so that a header of 100 MB never becomes a
 * tree of gigabytes. jansson reads each value, and each string that is not plain ASCII; plain
 * ones, and the punctuation between members, are read here. Within a value duplicate keys are
 * refused; between members that is the caller's. Errors carry file offsets: text_at is the file
 * offset of bytes[0]. */
#define K3_JSON_WALK_STRING_BYTES 8192 /* of JSON, quotes included; so of text and its NUL */

struct k3_json_walk {
    const uint8_t *bytes;
    size_t len;
    uint64_t text_at;
    size_t at;        /* the next byte to read                           */
    bool needs_comma; /* a member came before in the present object      */
};

/* Steps into the object that comes next. Errors: MALFORMED (it is something else). */
K3_MUST_CHECK enum k3_code k3_json_walk_enter(struct k3_json_walk *walk, struct k3_error *err);

/* The key of the next member into out_key, NUL-terminated, and steps past its colon; at the end of
 * the object, steps out of it and sets *out_is_end instead. *out_at is the file offset of the key's
 * quote. Errors: MALFORMED, NO_MEMORY. */
K3_MUST_CHECK enum k3_code k3_json_walk_key(struct k3_json_walk *walk,
                                            char out_key[K3_JSON_WALK_STRING_BYTES],
                                            uint64_t *out_at, bool *out_is_end,
                                            struct k3_error *err);

/* A value that must be a string, the same way. */
K3_MUST_CHECK enum k3_code k3_json_walk_string(struct k3_json_walk *walk,
                                               char out_text[K3_JSON_WALK_STRING_BYTES],
                                               struct k3_error *err);

/* The value of the member whose key was just read, at most max_bytes of JSON; or enter it instead.
 * *out_value is the caller's: json_decref. Errors: MALFORMED, NO_MEMORY. */
K3_MUST_CHECK enum k3_code k3_json_walk_value(struct k3_json_walk *walk, size_t max_bytes,
                                              json_t **out_value, struct k3_error *err);

/* Nothing but `padding` bytes may follow the outermost object. Errors: MALFORMED. */
K3_MUST_CHECK enum k3_code k3_json_walk_end(const struct k3_json_walk *walk, const char *padding,
                                            struct k3_error *err);

#endif
