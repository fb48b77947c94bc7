/* SPDX-License-Identifier: Apache-2.0 */
#include "format/vocab/rank_table.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

static bool slot_holds(const struct k3_rank_slot *slot, uint32_t tag,
                       const struct k3_token_list *list, const uint8_t *bytes, size_t len)
{
    if (slot->tag != tag) {
        return false;
    }
    const struct k3_token_view token = k3_token_list_get(list, slot->rank_up - 1);
    return token.len == len && memcmp(token.bytes, bytes, len) == 0;
}

/* The slot that holds these bytes, or the empty one where they belong. */
static struct k3_rank_slot *slot_for(const struct k3_rank_table *table,
                                     const struct k3_token_list *list, const uint8_t *bytes,
                                     size_t len, uint32_t *out_tag)
{
    const uint64_t hash = XXH3_64bits(bytes, len);
    *out_tag = (uint32_t)(hash >> 32);
    size_t at = (size_t)hash & table->mask;
    while (table->slots[at].rank_up != 0 &&
           !slot_holds(&table->slots[at], *out_tag, list, bytes, len)) {
        at = (at + 1) & table->mask;
    }
    return &table->slots[at];
}

enum k3_code k3_rank_table_init(struct k3_rank_table *table, const struct k3_token_list *list,
                                uint32_t *out_repeat, struct k3_error *err)
{
    size_t slot_count = 16;
    while (slot_count < 2 * (size_t)list->count) {
        slot_count *= 2;
    }
    *table = (struct k3_rank_table){.mask = slot_count - 1};
    table->slots = calloc(slot_count, sizeof *table->slots);
    if (!table->slots) {
        return k3_fail_no_memory(err, "table of token ranks");
    }
    for (uint32_t rank = 0; rank < list->count; rank++) {
        const struct k3_token_view token = k3_token_list_get(list, rank);
        uint32_t tag = 0;
        struct k3_rank_slot *slot = slot_for(table, list, token.bytes, token.len, &tag);
        if (slot->rank_up != 0) {
            *out_repeat = rank;
            k3_rank_table_done(table);
            return K3_ERR_MALFORMED;
        }
        *slot = (struct k3_rank_slot){.tag = tag, .rank_up = rank + 1};
    }
    return K3_OK;
}

void k3_rank_table_done(struct k3_rank_table *table)
{
    free(table->slots);
    *table = (struct k3_rank_table){0};
}

bool k3_rank_table_find(const struct k3_rank_table *table, const struct k3_token_list *list,
                        const uint8_t *bytes, size_t len, uint32_t *out_rank)
{
    if (len > list->longest_bytes) {
        return false;
    }
    uint32_t tag = 0;
    const struct k3_rank_slot *slot = slot_for(table, list, bytes, len, &tag);
    if (slot->rank_up == 0) {
        return false;
    }
    *out_rank = slot->rank_up - 1;
    return true;
}
