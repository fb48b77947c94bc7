/* SPDX-License-Identifier: Apache-2.0 */
#include "format/vocab/token_list.h"

#include <stdlib.h>

#include "format/base/assert.h"

enum k3_code k3_token_list_init(struct k3_token_list *list, uint32_t tokens_max, size_t bytes_max,
                                struct k3_error *err)
{
    k3_assert(bytes_max <= UINT32_MAX && tokens_max < UINT32_MAX);
    *list = (struct k3_token_list){.count_max = tokens_max, .bytes_max = bytes_max};
    list->bytes = malloc(bytes_max + 1); /* never zero bytes */
    list->starts = calloc((size_t)tokens_max + 1, sizeof *list->starts);
    if (!list->bytes || !list->starts) {
        k3_token_list_done(list);
        return k3_fail_no_memory(err, "token bytes");
    }
    return K3_OK;
}

void k3_token_list_done(struct k3_token_list *list)
{
    free(list->bytes);
    free(list->starts);
    *list = (struct k3_token_list){0};
}

uint8_t *k3_token_list_tail(const struct k3_token_list *list, size_t *out_room)
{
    const size_t used = list->starts[list->count];
    *out_room = list->bytes_max - used;
    return list->bytes + used;
}

void k3_token_list_push(struct k3_token_list *list, size_t len)
{
    const size_t used = list->starts[list->count];
    k3_assert(list->count < list->count_max && len <= list->bytes_max - used);
    list->count++;
    list->starts[list->count] = (uint32_t)(used + len);
    if (len > list->longest_bytes) {
        list->longest_bytes = len;
    }
}
