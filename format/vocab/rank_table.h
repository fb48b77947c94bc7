/* SPDX-License-Identifier: Apache-2.0 */
#ifndef K3_FORMAT_VOCAB_RANK_TABLE_H
#define K3_FORMAT_VOCAB_RANK_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "format/base/error.h"
#include "format/vocab/token_list.h"

/* Bytes of an ordinary token -> its rank. Open addressing over XXH3 with linear probing, at most
 * half full; it keeps ranks and compares with the bytes in the token list. */
struct k3_rank_slot {
    uint32_t tag;     /* upper half of the hash: most strangers differ here */
    uint32_t rank_up; /* rank + 1; 0 is an empty slot                       */
};

struct k3_rank_table {
    struct k3_rank_slot *slots;
    size_t mask; /* slot count - 1, a power of two less one */
};

/* Enters tokens [0, list->count). If two of them have equal bytes: MALFORMED, *out_repeat is the
 * later one's rank (the caller knows where it stands and writes the error). Errors: NO_MEMORY.
 * The list is passed again to every look-up. */
K3_MUST_CHECK enum k3_code k3_rank_table_init(struct k3_rank_table *table,
                                              const struct k3_token_list *list,
                                              uint32_t *out_repeat, struct k3_error *err);

void k3_rank_table_done(struct k3_rank_table *table);

bool k3_rank_table_find(const struct k3_rank_table *table, const struct k3_token_list *list,
                        const uint8_t *bytes, size_t len, uint32_t *out_rank);

#endif
