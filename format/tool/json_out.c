/* SPDX-License-Identifier: Apache-2.0 */
#include "format/tool/json_out.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "format/base/assert.h"
#include "format/base/utf8.h"

#define FLAT_DEPTH 3U

static bool is_flat(const struct k3_json_out *out)
{
    return out->depth >= (out->flat_depth ? out->flat_depth : FLAT_DEPTH);
}

static void new_line(struct k3_json_out *out)
{
    fputc('\n', out->stream);
    for (unsigned i = 0; i < out->depth; i++) {
        fputc(' ', out->stream);
    }
}

static void put_quoted(FILE *stream, const char *text)
{
    fputc('"', stream);
    const uint8_t *end = (const uint8_t *)text + strlen(text);
    for (const uint8_t *p = (const uint8_t *)text; p < end;) {
        const size_t len = k3_utf8_sequence(p, (size_t)(end - p));
        if (len == 0) {
            fputs("\\ufffd", stream);
            p++;
            continue;
        }
        if (*p == '"' || *p == '\\') {
            fprintf(stream, "\\%c", *p);
        } else if (*p < 0x20 || *p == 0x7f) {
            fprintf(stream, "\\u%04x", *p);
        } else {
            fwrite(p, 1, len, stream);
        }
        p += len;
    }
    fputc('"', stream);
}

/* Comma, line and key that come before a value. */
static void begin_value(struct k3_json_out *out, const char *key)
{
    if (out->depth == 0) {
        k3_assert(!key);
        return;
    }
    const unsigned top = out->depth - 1;
    k3_assert(out->is_object[top] == (key != NULL));
    if (out->has_items[top]) {
        fputc(',', out->stream);
    }
    if (!is_flat(out)) {
        new_line(out);
    } else if (out->has_items[top]) {
        fputc(' ', out->stream);
    }
    out->has_items[top] = true;
    if (key) {
        put_quoted(out->stream, key);
        fputs(": ", out->stream);
    }
}

static void begin(struct k3_json_out *out, const char *key, bool is_object)
{
    begin_value(out, key);
    k3_assert(out->depth < K3_JSON_OUT_DEPTH_MAX);
    fputc(is_object ? '{' : '[', out->stream);
    out->is_object[out->depth] = is_object;
    out->has_items[out->depth] = false;
    out->depth++;
}

static void end(struct k3_json_out *out, bool is_object)
{
    k3_assert(out->depth > 0 && out->is_object[out->depth - 1] == is_object);
    const bool was_flat = is_flat(out);
    const bool had_items = out->has_items[out->depth - 1];
    out->depth--;
    if (had_items && !was_flat) {
        new_line(out);
    }
    fputc(is_object ? '}' : ']', out->stream);
}

void k3_json_object_begin(struct k3_json_out *out, const char *key)
{
    begin(out, key, true);
}

void k3_json_object_end(struct k3_json_out *out)
{
    end(out, true);
}

void k3_json_array_begin(struct k3_json_out *out, const char *key)
{
    begin(out, key, false);
}

void k3_json_array_end(struct k3_json_out *out)
{
    end(out, false);
}

void k3_json_string(struct k3_json_out *out, const char *key, const char *text)
{
    begin_value(out, key);
    put_quoted(out->stream, text);
}

void k3_json_u64(struct k3_json_out *out, const char *key, uint64_t value)
{
    begin_value(out, key);
    fprintf(out->stream, "%" PRIu64, value);
}

void k3_json_i64(struct k3_json_out *out, const char *key, int64_t value)
{
    begin_value(out, key);
    fprintf(out->stream, "%" PRId64, value);
}

void k3_json_f64(struct k3_json_out *out, const char *key, double value)
{
    begin_value(out, key);
    if (!isfinite(value)) {
        fputs("null", out->stream);
        return;
    }
    char text[40];
    for (int digits = 1; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, value);
        const double back = strtod(text, NULL);
        if (memcmp(&back, &value, sizeof back) == 0) {
            break;
        }
    }
    fputs(text, out->stream);
    if (!strpbrk(text, ".e")) {
        fputs(".0", out->stream); /* a real stays a real for readers that tell them apart */
    }
}

void k3_json_bool(struct k3_json_out *out, const char *key, bool value)
{
    begin_value(out, key);
    fputs(value ? "true" : "false", out->stream);
}

void k3_json_null(struct k3_json_out *out, const char *key)
{
    begin_value(out, key);
    fputs("null", out->stream);
}

void k3_json_hex(struct k3_json_out *out, const char *key, const uint8_t *bytes, size_t len)
{
    static const char digits[] = "0123456789abcdef";
    begin_value(out, key);
    fputc('"', out->stream);
    for (size_t i = 0; i < len; i++) {
        fputc(digits[bytes[i] >> 4], out->stream);
        fputc(digits[bytes[i] & 15], out->stream);
    }
    fputc('"', out->stream);
}

void k3_json_digest(struct k3_json_out *out, const char *key, const struct k3_digest *digest)
{
    k3_json_hex(out, key, digest->bytes, K3_DIGEST_BYTES);
}

enum k3_code k3_json_out_finish(struct k3_json_out *out, struct k3_error *err)
{
    k3_assert(out->depth == 0);
    fputc('\n', out->stream);
    if (fflush(out->stream) != 0 || ferror(out->stream)) {
        return k3_fail_errno(err, K3_ERR_IO, errno ? errno : EIO, K3_ERROR_NO_OFFSET,
                             "cannot write the JSON output");
    }
    return K3_OK;
}
