/* SPDX-License-Identifier: Apache-2.0 */
#ifndef K3_RUNTIME_RESIDENCY_INTEGRITY_H
#define K3_RUNTIME_RESIDENCY_INTEGRITY_H

#include "format/pack/pack_reader.h"

/* When bytes are held against their digests. */
enum k3_check_policy {
    K3_CHECK_OFF,
    K3_CHECK_FIRST, /* when they are brought in for the first time */
    K3_CHECK_ALWAYS /* whenever they are brought in                */
};

static inline bool k3_check_is_due(enum k3_check_policy policy, bool was_checked)
{
    return policy == K3_CHECK_ALWAYS || (policy == K3_CHECK_FIRST && !was_checked);
}

/* Errors: DAMAGED, with the place and how to find all damage. */
K3_MUST_CHECK enum k3_code k3_check_block(const struct k3_pack *pack, uint32_t extent,
                                          uint32_t block_in_extent, const struct k3_digest *found,
                                          struct k3_error *err);
K3_MUST_CHECK enum k3_code k3_check_expert(const struct k3_pack *pack, uint64_t number,
                                           const struct k3_digest *found, struct k3_error *err);

#endif
