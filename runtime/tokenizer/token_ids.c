/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/tokenizer/token_ids.h"

#include <stdlib.h>

#include "format/base/ckd.h"

enum k3_code k3_token_ids_append(struct k3_token_ids *list, uint32_t id, struct k3_error *err)
{
    if (list->count == list->capacity) {
        size_t capacity = 0;
        size_t bytes = 0;
        uint32_t *ids = NULL;
        if (!ckd_mul(&capacity, list->capacity, (size_t)2) &&
            !ckd_add(&capacity, capacity, (size_t)64) && !ckd_mul(&bytes, capacity, sizeof *ids)) {
            ids = realloc(list->ids, bytes);
        }
        if (!ids) {
            return k3_fail_no_memory(err, "token ids");
        }
        list->ids = ids;
        list->capacity = capacity;
    }
    list->ids[list->count++] = id;
    return K3_OK;
}

void k3_token_ids_done(struct k3_token_ids *list)
{
    free(list->ids);
    *list = (struct k3_token_ids){0};
}
