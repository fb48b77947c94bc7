/* SPDX-License-Identifier: Apache-2.0 */
#include "packer/damage.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool has_room(struct k3_damage_list *list)
{
    if (list->count < list->room) {
        return true;
    }
    const size_t room = list->room ? 2 * list->room : 16;
    struct k3_damage *items = realloc(list->items, room * sizeof *items);
    if (!items) {
        return false;
    }
    list->items = items;
    list->room = room;
    return true;
}

void k3_damage_add(struct k3_damage_list *list, const struct k3_damage *item, const char *format,
                   ...)
{
    list->total++;
    if (list->count >= K3_DAMAGE_ITEMS_MAX) {
        return;
    }
    char message[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    struct k3_damage copy = *item;
    copy.message = strdup(message);
    copy.shard = item->shard ? strdup(item->shard) : NULL;
    if (!copy.message || (item->shard && !copy.shard) || !has_room(list)) {
        free(copy.message);
        free(copy.shard);
        list->is_short = true;
        return;
    }
    list->items[list->count++] = copy;
    if (list->on_add) {
        list->on_add(list->user, &list->items[list->count - 1]);
    }
}

void k3_damage_done(struct k3_damage_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        free(list->items[i].message);
        free(list->items[i].shard);
    }
    free(list->items);
    *list = (struct k3_damage_list){0};
}

enum k3_code k3_damage_result(const struct k3_damage_list *list, const char *subject,
                              struct k3_error *err)
{
    if (list->is_short) {
        return k3_fail_no_memory(err, "list of damage");
    }
    if (list->total == 0) {
        return K3_OK;
    }
    bool only_differs = list->total == list->count;
    for (size_t i = 0; i < list->count; i++) {
        only_differs = only_differs && list->items[i].kind == K3_DAMAGE_DIFFERENCE;
    }
    return k3_fail(err, K3_ERR_DAMAGED, K3_ERROR_NO_OFFSET, "'%s' %s in %" PRIu64 " place%s",
                   subject, only_differs ? "differs from the checkpoint" : "is damaged",
                   list->total, list->total == 1 ? "" : "s");
}

const char *k3_damage_kind_name(enum k3_damage_kind kind)
{
    switch (kind) {
    case K3_DAMAGE_FILE:
        return "file";
    case K3_DAMAGE_SUPERBLOCK:
        return "superblock";
    case K3_DAMAGE_SECTION_TABLE:
        return "section_table";
    case K3_DAMAGE_SECTION:
        return "section";
    case K3_DAMAGE_PADDING:
        return "padding";
    case K3_DAMAGE_TRUNK:
        return "trunk";
    case K3_DAMAGE_EXPERT:
        return "expert";
    case K3_DAMAGE_DIFFERENCE:
        return "difference";
    }
    return "unknown";
}
