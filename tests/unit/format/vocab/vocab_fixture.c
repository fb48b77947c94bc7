/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/format/vocab/vocab_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static size_t base64_write(const uint8_t *bytes, size_t len, char *out)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    size_t at = 0;
    for (size_t i = 0; i < len; i += 3) {
        const size_t have = len - i < 3 ? len - i : 3;
        uint32_t bits = (uint32_t)bytes[i] << 16;
        bits |= have > 1 ? (uint32_t)bytes[i + 1] << 8 : 0;
        bits |= have > 2 ? bytes[i + 2] : 0u;
        for (size_t digit = 0; digit < 4; digit++) {
            out[at++] = digit <= have ? digits[bits >> (18 - 6 * digit) & 63] : '=';
        }
    }
    return at;
}

void k3_fixture_append(struct k3_tiktoken_text *text, const void *token, size_t token_len)
{
    char *bytes = realloc(text->bytes, text->len + token_len * 2 + 32);
    if (!bytes) {
        abort();
    }
    text->bytes = bytes;
    text->len += base64_write(token, token_len, bytes + text->len);
    text->len += (size_t)sprintf(bytes + text->len, " %lu\n", (unsigned long)text->lines);
    text->lines++;
}

static void append_range(struct k3_tiktoken_text *text, unsigned first, unsigned last)
{
    for (unsigned byte = first; byte <= last; byte++) {
        const uint8_t single = (uint8_t)byte;
        k3_fixture_append(text, &single, 1);
    }
}

void k3_fixture_append_bytes(struct k3_tiktoken_text *text)
{
    append_range(text, 33, 126);
    append_range(text, 161, 172);
    append_range(text, 174, 255);
    append_range(text, 0, 32);
    append_range(text, 127, 160);
    append_range(text, 173, 173);
}

struct k3_vocab *k3_fixture_vocab(const char *const *tokens, const char *config)
{
    struct k3_tiktoken_text text = {0};
    k3_fixture_append_bytes(&text);
    for (; *tokens; tokens++) {
        k3_fixture_append(&text, *tokens, strlen(*tokens));
    }
    struct k3_vocab *vocab = NULL;
    struct k3_error err = {0};
    if (k3_vocab_create((const uint8_t *)text.bytes, text.len, (const uint8_t *)config,
                        strlen(config), &vocab, &err) != K3_OK) {
        fprintf(stderr, "vocab_fixture: %s\n", err.message);
        abort();
    }
    free(text.bytes);
    return vocab;
}

struct k3_tiktoken_text k3_fixture_serialise(const struct k3_vocab *vocab)
{
    struct k3_tiktoken_text text = {0};
    for (uint32_t id = 0; id < k3_vocab_rank_count(vocab); id++) {
        const struct k3_token_view token = k3_vocab_token(vocab, id);
        k3_fixture_append(&text, token.bytes, token.len);
    }
    return text;
}
