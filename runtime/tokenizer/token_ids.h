/* SPDX-License-Identifier: Apache-2.0 */
#ifndef K3_RUNTIME_TOKENIZER_TOKEN_IDS_H
#define K3_RUNTIME_TOKENIZER_TOKEN_IDS_H

#include <stddef.h>
#include <stdint.h>

#include "format/base/error.h"

/* A growing list of token ids. Zeroed is empty; k3_token_ids_done frees it and accepts a zeroed
 * one. `ids` moves when the list grows. */
struct k3_token_ids {
    uint32_t *ids;
    size_t count;
    size_t capacity;
};

/* Errors: NO_MEMORY, the list is then unchanged. */
K3_MUST_CHECK enum k3_code k3_token_ids_append(struct k3_token_ids *list, uint32_t id,
                                               struct k3_error *err);

void k3_token_ids_done(struct k3_token_ids *list);

#endif
