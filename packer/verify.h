/* SPDX-License-Identifier: Apache-2.0 */
#ifndef K3_PACKER_VERIFY_H
#define K3_PACKER_VERIFY_H

#include "format/base/progress.h"
#include "packer/damage.h"
#include "packer/verify_file.h"
#include "packer/verify_scope.h"

/* What the three files of a pack say, put together from whatever is good in them. */
struct k3_verify {
    const char *folder; /* borrowed */
    const struct k3_observer *observer;
    struct k3_file_check files[3]; /* by k3_file_kind - 1 */
    bool has_tables;               /* extents and layout are known                   */
    bool has_trunk_digests, has_expert_digests;
    struct k3_pack_tables tables;
    bool has_bundle;
    struct k3_file_bundle bundle;
    bool has_provenance;
    struct k3_provenance provenance;
    bool has_pack_id;
    struct k3_digest pack_id;
    struct k3_damage_list damage;
    uint64_t checked_bytes, checked_blocks, checked_experts;
    uint64_t chosen_units, all_units; /* blocks and experts: in scope, in all */
    uint8_t *block_state;             /* owned: enum k3_unit_state by block of the trunk */
    uint8_t *expert_state;            /* owned: the same by expert                       */
};

enum k3_unit_state { K3_UNIT_NOT_CHECKED, K3_UNIT_GOOD, K3_UNIT_BAD };

/* Checks structure, sizes, index and the copies of its tables; opens everything that can be opened.
 * All damage goes to out_verify->damage, and K3_OK is returned. *out_verify is the caller's:
 * k3_verify_done; it must not be moved while a restorer borrows from it.
 * Errors: NO_INPUT (no file of a pack is there), UNSUPPORTED (a newer format), NO_MEMORY. */
K3_MUST_CHECK enum k3_code k3_verify_structure(const char *folder,
                                               const struct k3_observer *observer,
                                               struct k3_verify *out_verify, struct k3_error *err);

/* Reads every block and expert in scope, from the device and not from memory, and compares digests;
 * adds to verify->damage. `jobs` threads read; what is found does not depend on their number.
 * Errors: USAGE (a scope that this model does not have), INTERRUPTED, NO_MEMORY. */
K3_MUST_CHECK enum k3_code k3_verify_data(struct k3_verify *verify,
                                          const struct k3_verify_scope *scope, unsigned jobs,
                                          struct k3_error *err);

void k3_verify_done(struct k3_verify *verify);

/* The first file of this pack in which a section is good; NULL when there is none. */
const struct k3_file_check *k3_verify_holder(const struct k3_verify *verify,
                                             enum k3_section_kind kind);

/* The carried files from any good copy, where the index has none. Errors: NO_MEMORY. */
K3_MUST_CHECK enum k3_code k3_verify_salvage_bundle(struct k3_verify *verify, struct k3_error *err);

static inline struct k3_file_check *k3_verify_file(struct k3_verify *verify, enum k3_file_kind kind)
{
    return &verify->files[kind - 1];
}

#endif
