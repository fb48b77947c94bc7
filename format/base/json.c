/* SPDX-License-Identifier: Apache-2.0 */
#include "format/base/json.h"

#include <stdbool.h>

#include "format/base/json_guard.h"

/* jansson's own limit is a compile-time 2048; ours is checked in one pass over the text, so that a
 * hostile header cannot make the parser recurse deeply. Brackets inside strings do not count. */
static bool depth_is_bounded(const uint8_t *bytes, size_t len, size_t *out_at)
{
    size_t depth = 0;
    bool in_string = false;
    for (size_t i = 0; i < len; i++) {
        const uint8_t c = bytes[i];
        if (in_string) {
            if (c == '\\') {
                i++;
            } else if (c == '"') {
                in_string = false;
            }
        } else if (c == '"') {
            in_string = true;
        } else if (c == '{' || c == '[') {
            if (++depth > K3_JSON_DEPTH_MAX) {
                *out_at = i;
                return false;
            }
        } else if ((c == '}' || c == ']') && depth > 0) {
            depth--;
        }
    }
    return true;
}

static enum k3_code parse(const uint8_t *bytes, size_t len, size_t max_bytes, size_t flags,
                          json_t **out_root, struct k3_error *err)
{
    if (len > max_bytes) {
        return k3_fail(err, K3_ERR_MALFORMED, 0,
                       "JSON text of %zu bytes, more than the %zu allowed", len, max_bytes);
    }
    size_t at = 0;
    if (!depth_is_bounded(bytes, len, &at)) {
        return k3_fail(err, K3_ERR_MALFORMED, at, "JSON nested deeper than %d levels at byte %zu",
                       K3_JSON_DEPTH_MAX, at);
    }
    json_error_t why;
    json_t *root =
        k3_json_guarded_load(bytes, len, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY | flags, &why);
    if (!root) {
        if (json_error_code(&why) == json_error_out_of_memory) {
            return k3_fail_no_memory(err, "JSON text");
        }
        const uint64_t offset = why.position < 0 ? 0 : (uint64_t)why.position;
        return k3_fail(err, K3_ERR_MALFORMED, offset, "not valid JSON at byte %llu (line %d): %s",
                       (unsigned long long)offset, why.line, why.text);
    }
    *out_root = root;
    return K3_OK;
}

enum k3_code k3_json_parse(const uint8_t *bytes, size_t len, size_t max_bytes, json_t **out_root,
                           struct k3_error *err)
{
    return parse(bytes, len, max_bytes, 0, out_root, err);
}

enum k3_code k3_json_parse_reals(const uint8_t *bytes, size_t len, size_t max_bytes,
                                 json_t **out_root, struct k3_error *err)
{
    return parse(bytes, len, max_bytes, JSON_DECODE_INT_AS_REAL, out_root, err);
}
