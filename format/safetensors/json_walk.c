/* SPDX-License-Identifier: Apache-2.0 */
#include "format/safetensors/json_walk.h"

#include <inttypes.h>
#include <string.h>

#include "format/base/ckd.h"
#include "format/base/json_guard.h"

static bool is_space(uint8_t c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* The next byte that is not white space, 0 at the end (NUL is no JSON punctuation). */
static uint8_t peek(struct k3_json_walk *walk)
{
    while (walk->at < walk->len && is_space(walk->bytes[walk->at])) {
        walk->at++;
    }
    return walk->at < walk->len ? walk->bytes[walk->at] : 0;
}

static enum k3_code fail_expected(const struct k3_json_walk *walk, const char *what,
                                  struct k3_error *err)
{
    const uint64_t at = walk->text_at + walk->at;
    return k3_fail(err, K3_ERR_MALFORMED, at, "not valid JSON at byte %" PRIu64 ": %s expected%s",
                   at, what, walk->at >= walk->len ? ", but the text ends" : "");
}

enum k3_code k3_json_walk_enter(struct k3_json_walk *walk, struct k3_error *err)
{
    if (peek(walk) != '{') {
        return fail_expected(walk, "an object", err);
    }
    walk->at++;
    walk->needs_comma = false;
    return K3_OK;
}

/* One value at walk->at, by jansson. */
static enum k3_code load(struct k3_json_walk *walk, size_t max_bytes, json_t **out_value,
                         struct k3_error *err)
{
    const size_t rest = walk->len - walk->at;
    const bool is_cut = rest > max_bytes;
    json_error_t why;
    json_t *value = k3_json_guarded_load(
        walk->bytes + walk->at, is_cut ? max_bytes : rest,
        JSON_REJECT_DUPLICATES | JSON_DECODE_ANY | JSON_DISABLE_EOF_CHECK, &why);
    if (value) {
        walk->at += (size_t)why.position;
        *out_value = value;
        return K3_OK;
    }
    if (json_error_code(&why) == json_error_out_of_memory) {
        return k3_fail_no_memory(err, "JSON text");
    }
    const uint64_t at = walk->text_at + walk->at;
    if (is_cut && json_error_code(&why) == json_error_premature_end_of_input) {
        return k3_fail(err, K3_ERR_MALFORMED, at,
                       "JSON at byte %" PRIu64 " is longer than the %zu bytes allowed there", at,
                       max_bytes);
    }
    const uint64_t inside = why.position < 0 ? 0 : (uint64_t)why.position;
    return k3_fail(err, K3_ERR_MALFORMED, at + inside, "not valid JSON at byte %" PRIu64 ": %s",
                   at + inside, why.text);
}

/* Length of the string at walk->at if it is printable ASCII without escapes, quotes left out; else
 * 0, and jansson has the word (on the empty string too). */
static size_t plain_length(const struct k3_json_walk *walk)
{
    const uint8_t *text = walk->bytes + walk->at + 1;
    const size_t rest = k3_min_u64(walk->len - walk->at - 1, K3_JSON_WALK_STRING_BYTES - 2);
    for (size_t i = 0; i < rest; i++) {
        if (text[i] == '"') {
            return i;
        }
        if (text[i] < 0x20 || text[i] > 0x7e || text[i] == '\\') {
            return 0;
        }
    }
    return 0;
}

/* The string at walk->at, whose quote is there. Unescaping never lengthens. */
static enum k3_code read_string(struct k3_json_walk *walk, char out_text[K3_JSON_WALK_STRING_BYTES],
                                struct k3_error *err)
{
    const size_t plain = plain_length(walk);
    if (plain > 0) {
        memcpy(out_text, walk->bytes + walk->at + 1, plain);
        out_text[plain] = 0;
        walk->at += plain + 2;
        return K3_OK;
    }
    json_t *value = NULL;
    const enum k3_code code = load(walk, K3_JSON_WALK_STRING_BYTES, &value, err);
    if (code != K3_OK) {
        return code;
    }
    memcpy(out_text, json_string_value(value), json_string_length(value) + 1);
    json_decref(value);
    return K3_OK;
}

enum k3_code k3_json_walk_key(struct k3_json_walk *walk, char out_key[K3_JSON_WALK_STRING_BYTES],
                              uint64_t *out_at, bool *out_is_end, struct k3_error *err)
{
    uint8_t next = peek(walk);
    *out_is_end = next == '}';
    if (*out_is_end) {
        walk->at++;
        walk->needs_comma = true;
        return K3_OK;
    }
    if (walk->needs_comma) {
        if (next != ',') {
            return fail_expected(walk, "',' or '}'", err);
        }
        walk->at++;
        next = peek(walk);
    }
    if (next != '"') {
        return fail_expected(walk, "a name in quotes", err);
    }
    *out_at = walk->text_at + walk->at;
    const enum k3_code code = read_string(walk, out_key, err);
    if (code != K3_OK) {
        return code;
    }
    if (peek(walk) != ':') {
        return fail_expected(walk, "':'", err);
    }
    walk->at++;
    return K3_OK;
}

enum k3_code k3_json_walk_string(struct k3_json_walk *walk,
                                 char out_text[K3_JSON_WALK_STRING_BYTES], struct k3_error *err)
{
    if (peek(walk) != '"') {
        return fail_expected(walk, "a string", err);
    }
    walk->needs_comma = true;
    return read_string(walk, out_text, err);
}

enum k3_code k3_json_walk_value(struct k3_json_walk *walk, size_t max_bytes, json_t **out_value,
                                struct k3_error *err)
{
    peek(walk);
    walk->needs_comma = true;
    return load(walk, max_bytes, out_value, err);
}

enum k3_code k3_json_walk_end(const struct k3_json_walk *walk, const char *padding,
                              struct k3_error *err)
{
    for (size_t i = walk->at; i < walk->len; i++) {
        if (walk->bytes[i] == 0 || !strchr(padding, walk->bytes[i])) {
            const uint64_t at = walk->text_at + i;
            return k3_fail(err, K3_ERR_MALFORMED, at,
                           "byte %" PRIu64 " after the JSON is not padding", at);
        }
    }
    return K3_OK;
}
