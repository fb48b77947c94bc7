/* SPDX-License-Identifier: Apache-2.0 */
#ifndef K3_FORMAT_SAFETENSORS_NAME_TABLE_H
#define K3_FORMAT_SAFETENSORS_NAME_TABLE_H

#include <stddef.h>
#include <stdint.h>

#include "format/base/error.h"

/* name -> two numbers, by open addressing; half a million tensor names are looked up by name. Names
 * are borrowed and must outlive the table. Zeroed is empty. */
struct k3_name_slot {
    const char *name; /* NULL: free */
    uint32_t shard;
    uint32_t entry;
};

struct k3_name_table {
    struct k3_name_slot *slots;
    size_t slot_count; /* a power of two, at least twice the count; or 0 */
    size_t count;
    uint64_t seed;
};

void k3_name_table_done(struct k3_name_table *table);

/* NULL when the name is not there. Valid until the next insertion. */
struct k3_name_slot *k3_name_table_find(const struct k3_name_table *table, const char *name);

/* *out_found is NULL when the name was inserted, else the slot that already has it (unchanged;
 * valid until the next insertion). Errors: NO_MEMORY. */
K3_MUST_CHECK enum k3_code k3_name_table_insert(struct k3_name_table *table, const char *name,
                                                uint32_t shard, uint32_t entry,
                                                const struct k3_name_slot **out_found,
                                                struct k3_error *err);

#endif
