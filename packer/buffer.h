/* SPDX-License-Identifier: Apache-2.0 */
#ifndef K3_PACKER_BUFFER_H
#define K3_PACKER_BUFFER_H

#include <stdint.h>
#include <stdlib.h>

#include "format/base/error.h"

/* Scratch memory that grows to what was asked for once and is then kept. Zeroed is empty. It starts
 * on a page, so that files can be read into it directly. */
#define K3_BUFFER_ALIGN 4096U

struct k3_buffer {
    uint8_t *bytes;
    uint64_t room;
    void *allocation; /* owned; `bytes` lies in it */
};

/* At least `room` bytes at buffer->bytes; fresh ones are zero, old ones are not kept. */
K3_MUST_CHECK static inline enum k3_code k3_buffer_reserve(struct k3_buffer *buffer, uint64_t room,
                                                           struct k3_error *err)
{
    if (room <= buffer->room) {
        return K3_OK;
    }
    free(buffer->allocation);
    *buffer = (struct k3_buffer){0};
    if (room <= SIZE_MAX - K3_BUFFER_ALIGN) {
        buffer->allocation = calloc(1, (size_t)room + K3_BUFFER_ALIGN);
    }
    if (!buffer->allocation) {
        return k3_fail_no_memory(err, "buffer");
    }
    const uintptr_t at = (uintptr_t)buffer->allocation;
    buffer->bytes = (uint8_t *)buffer->allocation + (K3_BUFFER_ALIGN - at % K3_BUFFER_ALIGN);
    buffer->room = room;
    return K3_OK;
}

static inline void k3_buffer_done(struct k3_buffer *buffer)
{
    free(buffer->allocation);
    *buffer = (struct k3_buffer){0};
}

#endif
