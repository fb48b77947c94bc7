/* SPDX-License-Identifier: Apache-2.0 */
#ifndef K3_PACKER_PACK_H
#define K3_PACKER_PACK_H

#include "format/base/problems.h"
#include "format/base/progress.h"
#include "packer/plan.h"
#include "packer/resume.h"

/* The verb: a checkpoint folder becomes a pack folder. */
struct k3_pack_report {
    bool was_packed; /* a finished pack of this checkpoint was there already: nothing was done */
    struct k3_plan plan;
    struct k3_resume_report resumed; /* shards_done 0: nothing was resumed */
    struct k3_digest pack_id;
    uint64_t trunk_bytes, experts_bytes, index_bytes; /* sizes of the files          */
    uint64_t allocated_bytes;                         /* storage that they take      */
};

struct k3_pack_request {
    const char *checkpoint, *folder;
    const char *manifest; /* NULL: no SHA-256 is checked or recorded */
    bool restart;
    unsigned jobs;
};

/* Census, preflight, resume or begin, transfer, seal. restart gives up what an earlier run left.
 * What is wrong with the checkpoint, and why work cannot be resumed, becomes lines in `problems`.
 * Errors: those of the census; BUSY; CANT_CREATE (the folder holds a pack of something else);
 * INTERRUPTED (run again to resume); DAMAGED (weights that a pack never holds); IO; NO_MEMORY. */
K3_MUST_CHECK enum k3_code k3_pack_make(const struct k3_pack_request *request,
                                        const struct k3_observer *observer,
                                        struct k3_problems *problems,
                                        struct k3_pack_report *out_report, struct k3_error *err);

#endif
