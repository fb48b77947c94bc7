/* SPDX-License-Identifier: Apache-2.0 */
#ifndef K3_PACKER_TARGET_H
#define K3_PACKER_TARGET_H

#include "format/base/file.h"
#include "format/pack/layout.h"

/* The folder in which a pack comes into being: journal (which is also the lock), the two partial
 * data files, and what an earlier run left there. */
struct k3_target {
    char *folder;           /* owned */
    struct k3_file journal; /* locked while open */
    struct k3_file trunk, experts;
    bool has_pack; /* a finished pack is there (k3.index exists): nothing else was opened or made */
};

/* A pack does not go among the shards that it is made from. Errors: USAGE. */
K3_MUST_CHECK enum k3_code k3_target_check_apart(const char *folder, const char *checkpoint,
                                                 struct k3_error *err);

/* Makes the folder where needed and takes the lock. A data file that was renamed by a seal that
 * did not finish gets its partial name back. Nothing is created where a finished pack is found.
 * *out_target is the caller's: k3_target_close.
 * Errors: BUSY (another k3pack works here), CANT_CREATE (also: data files that no journal of ours
 * explains), IO, NO_MEMORY. */
K3_MUST_CHECK enum k3_code k3_target_open(const char *folder, struct k3_target *out_target,
                                          struct k3_error *err);
void k3_target_close(struct k3_target *target);

/* Opens the partial data files (made where absent) and gives them their full sizes, as holes.
 * restart: their bytes are thrown away first. */
K3_MUST_CHECK enum k3_code k3_target_open_data(struct k3_target *target, bool restart,
                                               uint64_t trunk_bytes, uint64_t experts_bytes,
                                               struct k3_error *err);

/* The pack is finished (or given up): the journal goes. */
K3_MUST_CHECK enum k3_code k3_target_remove_journal(struct k3_target *target, struct k3_error *err);

/* Before anything was written: leaves no empty journal behind. */
void k3_target_forget(struct k3_target *target);

/* Storage that an earlier run's partial data files hold. */
uint64_t k3_target_held_bytes(const struct k3_target *target);

#endif
