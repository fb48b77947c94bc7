/* SPDX-License-Identifier: Apache-2.0 */
#ifndef K3_RUNTIME_MODEL_WEIGHT_SOURCE_H
#define K3_RUNTIME_MODEL_WEIGHT_SOURCE_H

#include <stdint.h>

#include "format/base/error.h"

/* The two doors through which the model gets its weights. It knows nothing of where they come from,
 * how long they stay or what was checked; runtime/residency stands behind the doors.
 *
 * What is acquired stays readable, unchanged, until it is released; acquiring the same bytes twice
 * needs two releases. Called from one thread. Errors: DAMAGED (a digest does not match; the extent
 * is named), IO. After an error the run is over: nothing computed since may be shown. */
struct k3_weight_source {
    void *self;

    /* Bytes [file_offset, file_offset + bytes) of the trunk. */
    enum k3_code (*trunk_acquire)(void *self, uint64_t file_offset, uint64_t bytes,
                                  const uint8_t **out_bytes, struct k3_error *err);
    void (*trunk_release)(void *self, uint64_t file_offset, uint64_t bytes);

    /* The router has spoken: these experts of the layer will be acquired soon, in this order. */
    void (*experts_announce)(void *self, uint32_t layer, const uint32_t *experts, uint32_t count);
    /* The used bytes of one expert's extent. */
    enum k3_code (*expert_acquire)(void *self, uint32_t layer, uint32_t expert,
                                   const uint8_t **out_bytes, struct k3_error *err);
    void (*expert_release)(void *self, uint32_t layer, uint32_t expert);
};

#endif
