/* SPDX-License-Identifier: Apache-2.0 */
#include "format/safetensors/name_table.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#define FIRST_SLOTS 64U

void k3_name_table_done(struct k3_name_table *table)
{
    free(table->slots);
    *table = (struct k3_name_table){0};
}

/* The slot that has the name, or the free one where it belongs. Needs a free slot. */
static struct k3_name_slot *probe(const struct k3_name_table *table, const char *name)
{
    const size_t mask = table->slot_count - 1;
    size_t at = (size_t)XXH3_64bits_withSeed(name, strlen(name), table->seed) & mask;
    while (table->slots[at].name && strcmp(table->slots[at].name, name) != 0) {
        at = (at + 1) & mask;
    }
    return &table->slots[at];
}

struct k3_name_slot *k3_name_table_find(const struct k3_name_table *table, const char *name)
{
    if (table->slot_count == 0) {
        return NULL;
    }
    struct k3_name_slot *slot = probe(table, name);
    return slot->name ? slot : NULL;
}

static enum k3_code grow(struct k3_name_table *table, struct k3_error *err)
{
    struct k3_name_table larger = {.count = table->count};
    larger.slot_count = table->slot_count ? 2 * table->slot_count : FIRST_SLOTS;
    larger.slots = calloc(larger.slot_count, sizeof *larger.slots);
    if (!larger.slots) {
        return k3_fail_no_memory(err, "name table");
    }
    /* Another seed each time: names made to collide cannot know it. Order never shows outside. */
    larger.seed = (uint64_t)(uintptr_t)larger.slots;
    for (size_t i = 0; i < table->slot_count; i++) {
        if (table->slots[i].name) {
            *probe(&larger, table->slots[i].name) = table->slots[i];
        }
    }
    free(table->slots);
    *table = larger;
    return K3_OK;
}

enum k3_code k3_name_table_insert(struct k3_name_table *table, const char *name, uint32_t shard,
                                  uint32_t entry, const struct k3_name_slot **out_found,
                                  struct k3_error *err)
{
    if (2 * (table->count + 1) > table->slot_count) {
        const enum k3_code code = grow(table, err);
        if (code != K3_OK) {
            return code;
        }
    }
    struct k3_name_slot *slot = probe(table, name);
    *out_found = slot->name ? slot : NULL;
    if (!slot->name) {
        *slot = (struct k3_name_slot){.name = name, .shard = shard, .entry = entry};
        table->count++;
    }
    return K3_OK;
}
