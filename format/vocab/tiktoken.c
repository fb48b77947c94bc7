/* SPDX-License-Identifier: Apache-2.0 */
#include "format/vocab/tiktoken.h"

#include <stdbool.h>
#include <string.h>

#include "format/vocab/base64.h"

struct cursor {
    const uint8_t *bytes;
    size_t len;
    size_t at;     /* start of the line that comes next */
    uint32_t rank; /* its number                        */
};

static enum k3_code refuse(const struct cursor *cursor, size_t at, const char *why,
                           struct k3_error *err)
{
    return k3_fail(err, K3_ERR_MALFORMED, at, "tiktoken.model: line %lu: %s",
                   (unsigned long)cursor->rank + 1, why);
}

/* First `byte` in [at, end), or end. */
static size_t find_byte(const uint8_t *bytes, size_t at, size_t end, uint8_t byte)
{
    const uint8_t *found = at < end ? memchr(bytes + at, byte, end - at) : NULL;
    return found ? (size_t)(found - bytes) : end;
}

/* The token's base64 is [at, end). */
static enum k3_code parse_token(const struct cursor *cursor, size_t end, struct k3_token_list *list,
                                struct k3_error *err)
{
    const size_t text_len = end - cursor->at;
    size_t room = 0;
    uint8_t *tail = k3_token_list_tail(list, &room);
    if (text_len == 0) {
        return refuse(cursor, cursor->at, "token without bytes", err);
    }
    if (k3_base64_decoded_max(text_len) > room ||
        text_len > (K3_VOCAB_TOKEN_BYTES_MAX + 2) / 3 * 4) {
        return refuse(cursor, cursor->at, "token too long", err);
    }
    size_t len = 0;
    size_t bad_at = 0;
    if (!k3_base64_decode(cursor->bytes + cursor->at, text_len, tail, &len, &bad_at)) {
        return refuse(cursor, cursor->at + bad_at, "token is not canonical base64", err);
    }
    if (len > K3_VOCAB_TOKEN_BYTES_MAX) {
        return refuse(cursor, cursor->at, "token too long", err);
    }
    k3_token_list_push(list, len);
    return K3_OK;
}

/* The rank is [at, end), and must be the line's number in its shortest form. */
static enum k3_code parse_rank(const struct cursor *cursor, size_t at, size_t end,
                               struct k3_error *err)
{
    uint64_t rank = 0;
    for (size_t i = at; i < end; i++) {
        const uint8_t c = cursor->bytes[i];
        if (c < '0' || c > '9') {
            return refuse(cursor, i, "rank is not a decimal number", err);
        }
        rank = rank * 10 + (uint64_t)(c - '0');
        if (rank > K3_VOCAB_RANKS_MAX) {
            return refuse(cursor, at, "rank too large", err);
        }
    }
    if (at == end || (cursor->bytes[at] == '0' && end - at > 1)) {
        return refuse(cursor, at, "rank is not a decimal number in its shortest form", err);
    }
    if (rank != cursor->rank) {
        return refuse(cursor, at, "gap or repeat: the rank is not the number of lines above", err);
    }
    return K3_OK;
}

/* Parses the line at the cursor and moves past it. */
static enum k3_code parse_line(struct cursor *cursor, struct k3_token_list *list,
                               struct k3_error *err)
{
    const size_t end = find_byte(cursor->bytes, cursor->at, cursor->len, '\n');
    const size_t carriage_return = find_byte(cursor->bytes, cursor->at, end, '\r');
    if (carriage_return < end) {
        return refuse(cursor, carriage_return, "CR found: the file was altered as text", err);
    }
    if (end == cursor->at) {
        return refuse(cursor, cursor->at, "empty line", err);
    }
    const size_t space = find_byte(cursor->bytes, cursor->at, end, ' ');
    enum k3_code code = parse_token(cursor, space, list, err);
    if (code != K3_OK) {
        return code;
    }
    if (space == end) {
        return refuse(cursor, end, "no space and rank after the token", err);
    }
    code = parse_rank(cursor, space + 1, end, err);
    if (code != K3_OK) {
        return code;
    }
    cursor->at = end < cursor->len ? end + 1 : end;
    cursor->rank++;
    return K3_OK;
}

static enum k3_code parse_lines(const uint8_t *bytes, size_t len, struct k3_token_list *list,
                                struct k3_error *err)
{
    struct cursor cursor = {.bytes = bytes, .len = len};
    while (cursor.at < len) {
        const enum k3_code code = parse_line(&cursor, list, err);
        if (code != K3_OK) {
            return code;
        }
    }
    return K3_OK;
}

/* Start of line `line`, which exists. */
static size_t line_start(const uint8_t *bytes, size_t len, uint32_t line)
{
    size_t at = 0;
    for (; line > 0; line--) {
        at = find_byte(bytes, at, len, '\n') + 1;
    }
    return at;
}

/* Without all 256 single bytes there is text that has no ids. */
static enum k3_code check_single_bytes(const struct k3_token_list *list,
                                       const struct k3_rank_table *table, size_t len,
                                       struct k3_error *err)
{
    for (unsigned byte = 0; byte < 256; byte++) {
        const uint8_t single = (uint8_t)byte;
        uint32_t rank = 0;
        if (!k3_rank_table_find(table, list, &single, 1, &rank)) {
            return k3_fail(err, K3_ERR_MALFORMED, len,
                           "tiktoken.model: no token for the single byte 0x%02x", byte);
        }
    }
    return K3_OK;
}

static enum k3_code make_table(const uint8_t *bytes, size_t len, const struct k3_token_list *list,
                               struct k3_rank_table *table, struct k3_error *err)
{
    uint32_t repeat = 0;
    enum k3_code code = k3_rank_table_init(table, list, &repeat, err);
    if (code == K3_ERR_MALFORMED) {
        return k3_fail(err, code, line_start(bytes, len, repeat),
                       "tiktoken.model: line %lu: the same bytes as an earlier token",
                       (unsigned long)repeat + 1);
    }
    if (code != K3_OK) {
        return code;
    }
    code = check_single_bytes(list, table, len, err);
    if (code != K3_OK) {
        k3_rank_table_done(table);
    }
    return code;
}

/* Lines of the file, or one more than allowed if there are too many. */
static uint32_t count_lines(const uint8_t *bytes, size_t len)
{
    uint32_t lines = 0;
    for (size_t at = 0; at < len && lines <= K3_VOCAB_RANKS_MAX; lines++) {
        at = find_byte(bytes, at, len, '\n') + 1;
    }
    return lines;
}

enum k3_code k3_tiktoken_parse(const uint8_t *bytes, size_t len, uint32_t spare_tokens,
                               size_t spare_bytes, struct k3_token_list *list,
                               struct k3_rank_table *table, struct k3_error *err)
{
    if (len > K3_VOCAB_TIKTOKEN_BYTES_MAX) {
        return k3_fail(err, K3_ERR_MALFORMED, 0, "tiktoken.model: %zu bytes, more than %zu", len,
                       K3_VOCAB_TIKTOKEN_BYTES_MAX);
    }
    const uint32_t lines = count_lines(bytes, len);
    if (lines > K3_VOCAB_RANKS_MAX) {
        return k3_fail(err, K3_ERR_MALFORMED, 0, "tiktoken.model: more than %u lines",
                       K3_VOCAB_RANKS_MAX);
    }
    const size_t bytes_max = k3_base64_decoded_max(len) + spare_bytes;
    enum k3_code code = k3_token_list_init(list, lines + spare_tokens, bytes_max, err);
    if (code != K3_OK) {
        return code;
    }
    code = parse_lines(bytes, len, list, err);
    if (code == K3_OK) {
        code = make_table(bytes, len, list, table, err);
    }
    if (code != K3_OK) {
        k3_token_list_done(list);
    }
    return code;
}
