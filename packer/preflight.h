/* SPDX-License-Identifier: Apache-2.0 */
#ifndef K3_PACKER_PREFLIGHT_H
#define K3_PACKER_PREFLIGHT_H

#include "format/base/progress.h"
#include "packer/plan.h"

/* Will it fit? Asked before the first byte is written, answered with exact numbers. */
struct k3_space {
    uint64_t needed_bytes; /* more than what partial files already hold */
    uint64_t free_bytes;
    bool has_holes;        /* the file system can leave gaps out                          */
    bool source_has_holes; /* a sparse checkpoint packs to far less than its apparent size */
};

/* `held_bytes`: storage that an unfinished pack in `folder` already has. Notes what is worth
 * knowing. Errors: IO (not enough space, or files of that size not allowed), NO_INPUT. */
K3_MUST_CHECK enum k3_code k3_preflight(const char *folder, const struct k3_plan *plan,
                                        const struct k3_shard_set *set, uint64_t held_bytes,
                                        const struct k3_observer *observer,
                                        struct k3_space *out_space, struct k3_error *err);

#endif
