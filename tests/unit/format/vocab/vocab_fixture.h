/* SPDX-License-Identifier: Apache-2.0 */
#ifndef K3_TESTS_UNIT_FORMAT_VOCAB_VOCAB_FIXTURE_H
#define K3_TESTS_UNIT_FORMAT_VOCAB_VOCAB_FIXTURE_H

#include <stddef.h>
#include <stdint.h>

#include "format/vocab/vocab.h"

/* Small vocabularies for tests. Out of memory aborts. */

/* A tokenizer_config.json that names no slot. */
#define K3_FIXTURE_EMPTY_CONFIG "{\"added_tokens_decoder\":{}}"

/* A tiktoken.model that is being written; the caller frees bytes. */
struct k3_tiktoken_text {
    char *bytes;
    size_t len;
    uint32_t lines;
};

/* Appends the line of the next token. */
void k3_fixture_append(struct k3_tiktoken_text *text, const void *token, size_t token_len);

/* Appends the 256 single bytes in the released (GPT-2's) order: '!' is 0, 'a' is 64, LF is 198,
 * space is 220. */
void k3_fixture_append_bytes(struct k3_tiktoken_text *text);

/* The single bytes, then `tokens` (NULL-terminated strings, a NULL ends the list) as ranks 256 and
 * on, and the markers of `config`. */
struct k3_vocab *k3_fixture_vocab(const char *const *tokens, const char *config);

/* The tiktoken.model that has the ordinary tokens of `vocab`. */
struct k3_tiktoken_text k3_fixture_serialise(const struct k3_vocab *vocab);

#endif
