/* SPDX-License-Identifier: Apache-2.0 */
#ifndef K3_RUNTIME_MODEL_WEIGHT_SOURCE_H
#define K3_RUNTIME_MODEL_WEIGHT_SOURCE_H

#include <stdbool.h>
#include <stdint.h>

#include "format/base/error.h"

/* The two doors through which the model gets its weights. It knows nothing of where they come from,
 * how long they stay or what was checked; runtime/residency stands behind the doors.
 *
 * What is acquired stays readable, unchanged, until it is released; acquiring the same bytes twice
 * needs two releases. Called from one thread. Errors: DAMAGED (a digest does not match; the extent
 * is named), IO. After an error the run is over: nothing computed since may be shown.
 *
 * The trunk is gone through in the order of the file, extent after extent, pass after pass: that is
 * what lets a source stream it. Another order gives the same bytes, only later. */
struct k3_weight_source {
    void *self;
    uint64_t run_bytes;       /* a caller that can cut its work acquires no more trunk at once   */
    uint32_t experts_at_once; /* never hold more; at least 1                                     */

    /* A pass over all layers begins; with logits it ends with the head. */
    void (*pass_begin)(void *self, bool needs_head);

    /* Bytes [file_offset, file_offset + bytes) of the trunk, inside one extent. */
    enum k3_code (*trunk_acquire)(void *self, uint64_t file_offset, uint64_t bytes,
                                  const uint8_t **out_bytes, struct k3_error *err);
    void (*trunk_release)(void *self, uint64_t file_offset, uint64_t bytes);

    /* The router has spoken: exactly these experts of the layer will be acquired, in this order. */
    void (*experts_announce)(void *self, uint32_t layer, const uint32_t *experts, uint32_t count);
    /* The used bytes of one expert's extent. */
    enum k3_code (*expert_acquire)(void *self, uint32_t layer, uint32_t expert,
                                   const uint8_t **out_bytes, struct k3_error *err);
    void (*expert_release)(void *self, uint32_t layer, uint32_t expert);
};

#endif
