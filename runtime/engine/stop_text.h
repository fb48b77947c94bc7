/* SPDX-License-Identifier: Apache-2.0 */
#ifndef K3_RUNTIME_ENGINE_STOP_TEXT_H
#define K3_RUNTIME_ENGINE_STOP_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "format/base/error.h"

/* Looks for stop strings in text that arrives in pieces. What may still become a stop string is
 * held back; a stop string itself never comes out. */
struct k3_stop_text {
    const char *const *stops; /* borrowed; none is empty */
    size_t count;
    uint8_t *pending; /* owned */
    size_t pending_len, pending_room;
    size_t longest;
    size_t given; /* bytes at the front that the last call gave out */
};

K3_MUST_CHECK enum k3_code k3_stop_text_init(const char *const *stops, size_t count,
                                             struct k3_stop_text *out_stop, struct k3_error *err);
void k3_stop_text_done(struct k3_stop_text *stop);

/* Adds bytes; gives those that are free to be shown, valid until the next call. *out_stopped: a
 * stop string is complete, and what was given ends right before it; feed no more. Errors:
 * NO_MEMORY. */
K3_MUST_CHECK enum k3_code k3_stop_text_feed(struct k3_stop_text *stop, const uint8_t *bytes,
                                             size_t len, const uint8_t **out_bytes, size_t *out_len,
                                             bool *out_stopped, struct k3_error *err);

/* No more text: what was held back is free, up to a stop string that only waited for a longer one.
 */
void k3_stop_text_finish(struct k3_stop_text *stop, const uint8_t **out_bytes, size_t *out_len,
                         bool *out_stopped);

#endif
