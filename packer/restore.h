/* SPDX-License-Identifier: Apache-2.0 */
#ifndef K3_PACKER_RESTORE_H
#define K3_PACKER_RESTORE_H

#include "format/base/file.h"
#include "packer/buffer.h"
#include "packer/expert_codec.h"

/* The way back: the source bytes of any tensor of the checkpoint, made from what a pack stores.
 * Whatever is stored beyond them (padding of tiles, low halves of widened values) must be zero, or
 * the tensor is DAMAGED. */
struct k3_restorer {
    const struct k3_pack_tables *tables; /* borrowed */
    const struct k3_file *trunk, *experts;
    struct k3_expert_shape shape;
    struct k3_buffer stored, source, again;
    bool has_expert; /* `source` holds all parts of expert `expert` */
    uint64_t expert;
};

/* Takes the bytes in order; what it returns other than K3_OK ends the restoring. */
typedef enum k3_code (*k3_bytes_sink)(void *user, const uint8_t *bytes, uint64_t len,
                                      struct k3_error *err);

void k3_restorer_init(struct k3_restorer *restorer, const struct k3_pack_tables *tables,
                      const struct k3_file *trunk, const struct k3_file *experts);
void k3_restorer_done(struct k3_restorer *restorer);

/* Errors: DAMAGED with the file offset, IO, NO_MEMORY, and the sink's. */
K3_MUST_CHECK enum k3_code k3_restore_trunk(struct k3_restorer *restorer, uint32_t source,
                                            k3_bytes_sink sink, void *user, struct k3_error *err);

/* All six parts of an expert, one after the other; *out_source is valid until the next call. A
 * second call for the same expert costs nothing. */
K3_MUST_CHECK enum k3_code k3_restore_expert(struct k3_restorer *restorer, uint64_t expert,
                                             const uint8_t **out_source, struct k3_error *err);

/* Either, by the source numbers of packer/census.h. */
K3_MUST_CHECK enum k3_code k3_restore_source(struct k3_restorer *restorer, uint32_t source,
                                             k3_bytes_sink sink, void *user, struct k3_error *err);

#endif
