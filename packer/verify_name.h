/* SPDX-License-Identifier: Apache-2.0 */
#ifndef K3_PACKER_VERIFY_NAME_H
#define K3_PACKER_VERIFY_NAME_H

#include "packer/restore.h"
#include "packer/verify.h"

/* What a damaged block or expert means: which tensors are not what was packed, and the bytes of the
 * shard from which each can be made again. Everything goes to verify->damage. */
struct k3_namer {
    struct k3_verify *v; /* borrowed */
    struct k3_restorer restorer;
    uint8_t *tensor_state; /* by stored tensor: what restoring it showed */
};

K3_MUST_CHECK enum k3_code k3_namer_init(struct k3_namer *namer, struct k3_verify *verify,
                                         struct k3_error *err);
void k3_namer_done(struct k3_namer *namer);

/* `reason` says how it showed. Errors: NO_MEMORY. */
K3_MUST_CHECK enum k3_code k3_name_block(struct k3_namer *namer,
                                         const struct k3_trunk_extent *extent, uint32_t block,
                                         const char *reason, struct k3_error *err);

/* stored: the bytes that were read, NULL where none could be. */
K3_MUST_CHECK enum k3_code k3_name_expert(struct k3_namer *namer, uint64_t expert,
                                          const uint8_t *stored, const char *reason,
                                          struct k3_error *err);

#endif
