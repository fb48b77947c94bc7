/* SPDX-License-Identifier: Apache-2.0 */
#ifndef K3_FORMAT_VOCAB_ADDED_TOKENS_H
#define K3_FORMAT_VOCAB_ADDED_TOKENS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "format/base/error.h"
#include "format/vocab/vocab.h"

/* The 256 slots after the ranks, as tokenizer_config.json names them. */
struct k3_added_token {
    char spelling[K3_VOCAB_SPELLING_BYTES_MAX + 1]; /* UTF-8, NUL-terminated, not empty */
    bool is_special;
};

/* Reads added_tokens_decoder; slot i has the id first_id + i. Slots without an entry spell
 * <|reserved_token_<id>|> and are special. Refused: no added_tokens_decoder, an id that is not a
 * plain decimal number or not one of the 256, an entry without a "content" string of 1 to 256 bytes
 * or without a boolean "special", and one spelling for two slots.
 * Errors: MALFORMED (an offset only where the JSON itself is broken), NO_MEMORY. */
K3_MUST_CHECK enum k3_code k3_added_tokens_parse(
    const uint8_t *config, size_t config_len, uint32_t first_id,
    struct k3_added_token out_slots[static K3_VOCAB_ADDED_COUNT], struct k3_error *err);

#endif
