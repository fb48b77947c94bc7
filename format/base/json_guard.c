/* SPDX-License-Identifier: Apache-2.0 */
#include "format/base/json_guard.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define FEW_BLOCKS 64

/* One load: where to go when memory runs out, and what to free there. */
struct guard {
    jmp_buf ran_out;
    void **blocks; /* few, or memory of its own */
    size_t block_count;
    size_t block_room;
    void *few[FEW_BLOCKS];
};

static _Thread_local struct guard *active;

static bool grow(struct guard *guard)
{
    const size_t room = 2 * guard->block_room;
    const bool is_first = guard->blocks == guard->few;
    void **blocks = realloc(is_first ? NULL : guard->blocks, room * sizeof *blocks);
    if (!blocks) {
        return false;
    }
    if (is_first) {
        memcpy(blocks, guard->few, sizeof guard->few);
    }
    guard->blocks = blocks;
    guard->block_room = room;
    return true;
}

static void *guarded_malloc(size_t bytes)
{
    struct guard *guard = active;
    if (!guard) {
        return malloc(bytes);
    }
    const bool has_room = guard->block_count < guard->block_room || grow(guard);
    void *block = has_room ? malloc(bytes) : NULL;
    if (!block) {
        longjmp(guard->ran_out, 1);
    }
    guard->blocks[guard->block_count++] = block;
    return block;
}

static void guarded_free(void *block)
{
    struct guard *guard = active;
    /* From the end: what the parser frees it has mostly just made. */
    for (size_t i = guard ? guard->block_count : 0; i > 0; i--) {
        if (guard->blocks[i - 1] == block) {
            guard->blocks[i - 1] = guard->blocks[--guard->block_count];
            break;
        }
    }
    free(block);
}

static void install(void)
{
    json_set_alloc_funcs(guarded_malloc, guarded_free);
}

/* Apart, so that nothing that changes is a local variable of setjmp's caller. */
static json_t *load(struct guard *guard, const uint8_t *bytes, size_t len, size_t flags,
                    json_error_t *out_why)
{
    if (setjmp(guard->ran_out) != 0) {
        for (size_t i = 0; i < guard->block_count; i++) {
            free(guard->blocks[i]);
        }
        memset(out_why, 0, sizeof *out_why);
        out_why->text[JSON_ERROR_TEXT_LENGTH - 1] = (char)json_error_out_of_memory;
        return NULL;
    }
    return json_loadb((const char *)bytes, len, flags, out_why);
}

json_t *k3_json_guarded_load(const uint8_t *bytes, size_t len, size_t flags, json_error_t *out_why)
{
    static pthread_once_t is_installed = PTHREAD_ONCE_INIT;
    pthread_once(&is_installed, install);
    struct guard guard = {.block_room = FEW_BLOCKS};
    guard.blocks = guard.few;
    active = &guard;
    json_t *value = load(&guard, bytes, len, flags, out_why);
    active = NULL;
    if (guard.blocks != guard.few) {
        free(guard.blocks);
    }
    return value;
}
