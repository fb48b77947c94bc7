/* SPDX-License-Identifier: Apache-2.0 */
#ifndef K3_PACKER_RESUME_H
#define K3_PACKER_RESUME_H

#include "packer/transfer.h"

/* What survives an interruption. A journal says "written", never "still good": everything it says
 * is read back and compared, and what differs is written again. */
struct k3_resume_report {
    uint32_t shards_done;
    uint64_t checked_bytes;
    uint64_t redone_extents, redone_experts;
};

/* Reads the journal into the census and sets shards_done. An empty or torn journal counts as none:
 * shards_done is 0. Writes what is missing at its end. `now` is the identity of what is to be
 * packed. What forbids resuming becomes lines in `changes`, and MALFORMED is returned. */
K3_MUST_CHECK enum k3_code k3_resume_journal(struct k3_transfer *transfer, const uint8_t *now,
                                             size_t now_len, struct k3_problems *changes,
                                             struct k3_error *err);

/* Checks and, where needed, rewrites what the journal holds; makes everything else read as zeros.
 * Not needed for fresh data files. */
K3_MUST_CHECK enum k3_code k3_resume_data(struct k3_transfer *transfer,
                                          struct k3_resume_report *out_report,
                                          struct k3_error *err);

#endif
