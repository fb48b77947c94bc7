/* SPDX-License-Identifier: Apache-2.0 */
#ifndef K3_PACKER_REPAIR_UNIT_H
#define K3_PACKER_REPAIR_UNIT_H

#include "packer/direct_io.h"
#include "packer/restore.h"
#include "packer/verify.h"

/* One damaged block or expert made again from the shards. Nothing is written before the whole of it
 * matches the digest that the pack recorded, so what is written is right, and only pages that
 * differ are written, so an interruption leaves no page worse than it was. */
struct k3_mender {
    struct k3_verify *v;      /* borrowed: tables, provenance, states                     */
    const char *checkpoint;   /* borrowed: folder with all or some of the shards          */
    struct k3_file *files[2]; /* borrowed: trunk and experts, open for writing            */
    struct k3_file shard;     /* the open one                                             */
    uint32_t shard_index;
    struct k3_restorer restorer;
    struct k3_buffer image, stored, source, encoded, scratch;
    struct k3_damage_list *lacking; /* borrowed: what could not be read from the shards */
    uint64_t written_bytes;
};

void k3_mender_init(struct k3_mender *mender, struct k3_verify *verify, const char *checkpoint,
                    struct k3_file *trunk, struct k3_file *experts, struct k3_damage_list *lacking);
void k3_mender_done(struct k3_mender *mender);

/* *out_is_mended false: the shards do not have what is needed, which was added to `lacking`.
 * Durable, and read back from the device, when true. Errors: IO (the pack), NO_MEMORY. */
K3_MUST_CHECK enum k3_code k3_mend_block(struct k3_mender *mender,
                                         const struct k3_trunk_extent *extent, uint32_t block,
                                         bool *out_is_mended, struct k3_error *err);
K3_MUST_CHECK enum k3_code k3_mend_expert(struct k3_mender *mender, uint64_t expert,
                                          bool *out_is_mended, struct k3_error *err);

#endif
