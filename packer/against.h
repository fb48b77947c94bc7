/* SPDX-License-Identifier: Apache-2.0 */
#ifndef K3_PACKER_AGAINST_H
#define K3_PACKER_AGAINST_H

#include "packer/verify.h"

/* Does a pack hold what a checkpoint holds? Every source tensor is made from the pack again and
 * compared with the checkpoint's bytes, however they are distributed over shards; config and
 * tokenizer files too. Differences are added to verify->damage. Needs a pack whose index is good.
 * Errors: those of the census (what is wrong with the checkpoint is in `problems`), IO,
 * INTERRUPTED, NO_MEMORY; DAMAGED when the index is not good enough to compare. */
struct k3_against_report {
    uint64_t tensors, bytes; /* compared and equal */
};

K3_MUST_CHECK enum k3_code k3_verify_against(struct k3_verify *verify, const char *checkpoint,
                                             struct k3_problems *problems,
                                             struct k3_against_report *out_report,
                                             struct k3_error *err);

/* Specs and lengths: equal tables mean that every source has its number in both. */
bool k3_tables_are_equal(const struct k3_pack_tables *a, const struct k3_pack_tables *b);

#endif
