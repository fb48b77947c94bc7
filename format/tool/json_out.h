/* SPDX-License-Identifier: Apache-2.0 */
#ifndef K3_FORMAT_TOOL_JSON_OUT_H
#define K3_FORMAT_TOOL_JSON_OUT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "format/base/digest.h"
#include "format/base/error.h"

/* Writes JSON as it goes: no tree, no allocation, so a list of half a million records costs
 * nothing. Inside an object every value has a key; inside an array (and for the outermost value)
 * the key is NULL (both asserted).
 *
 *   struct k3_json_out out = {.stream = stdout};
 *   k3_json_object_begin(&out, NULL);
 *   k3_json_string(&out, "schema", "k3pack.verify/1");
 *   k3_json_array_begin(&out, "damage");
 *   k3_json_array_end(&out);
 *   k3_json_object_end(&out);
 *   code = k3_json_out_finish(&out, err);
 *
 * Strings that are not UTF-8 (file names need not be) come out with U+FFFD for each bad byte. */
#define K3_JSON_OUT_DEPTH_MAX 16

struct k3_json_out {
    FILE *stream;
    unsigned depth;
    bool is_object[K3_JSON_OUT_DEPTH_MAX];
    bool has_items[K3_JSON_OUT_DEPTH_MAX];
    /* Objects and arrays at this depth or deeper stand on one line; 0 means 3. */
    unsigned flat_depth;
};

void k3_json_object_begin(struct k3_json_out *out, const char *key);
void k3_json_object_end(struct k3_json_out *out);
void k3_json_array_begin(struct k3_json_out *out, const char *key);
void k3_json_array_end(struct k3_json_out *out);

void k3_json_string(struct k3_json_out *out, const char *key, const char *text);
void k3_json_u64(struct k3_json_out *out, const char *key, uint64_t value);
void k3_json_i64(struct k3_json_out *out, const char *key, int64_t value);
/* Shortest form that reads back to the same double; a value that is not finite becomes null. */
void k3_json_f64(struct k3_json_out *out, const char *key, double value);
void k3_json_bool(struct k3_json_out *out, const char *key, bool value);
void k3_json_null(struct k3_json_out *out, const char *key);
void k3_json_hex(struct k3_json_out *out, const char *key, const uint8_t *bytes, size_t len);
void k3_json_digest(struct k3_json_out *out, const char *key, const struct k3_digest *digest);

/* Final newline and flush. Everything must be closed (asserted). Errors: IO when any write failed
 * (a full disk, a closed pipe). */
K3_MUST_CHECK enum k3_code k3_json_out_finish(struct k3_json_out *out, struct k3_error *err);

#endif
