/* SPDX-License-Identifier: Apache-2.0 */
#ifndef K3_FORMAT_VOCAB_TOKEN_LIST_H
#define K3_FORMAT_VOCAB_TOKEN_LIST_H

#include <stddef.h>
#include <stdint.h>

#include "format/base/error.h"
#include "format/vocab/vocab.h"

/* The bytes of all tokens, one after the other, by id. Sized once: parsers know their bounds before
 * they start. */
struct k3_token_list {
    uint8_t *bytes; /* token i is bytes[starts[i], starts[i + 1]) */
    uint32_t *starts;
    uint32_t count;
    uint32_t count_max;
    size_t bytes_max;
    size_t longest_bytes;
};

/* Room for tokens_max tokens of bytes_max bytes together (< 2^32, asserted). Errors: NO_MEMORY. */
K3_MUST_CHECK enum k3_code k3_token_list_init(struct k3_token_list *list, uint32_t tokens_max,
                                              size_t bytes_max, struct k3_error *err);

void k3_token_list_done(struct k3_token_list *list);

/* Where the next token's bytes go, and how many there is room for. */
uint8_t *k3_token_list_tail(const struct k3_token_list *list, size_t *out_room);

/* Makes the first `len` bytes at the tail the next token. Asserts that there is room. */
void k3_token_list_push(struct k3_token_list *list, size_t len);

static inline struct k3_token_view k3_token_list_get(const struct k3_token_list *list, uint32_t id)
{
    const uint32_t start = list->starts[id];
    return (struct k3_token_view){list->bytes + start, list->starts[id + 1] - start};
}

#endif
