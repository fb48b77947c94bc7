/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/residency/integrity.h"

#include <inttypes.h>
#include <stdio.h>

#include "format/base/ckd.h"

enum k3_code k3_check_block(const struct k3_pack *pack, uint32_t extent, uint32_t block_in_extent,
                            const struct k3_digest *found, struct k3_error *err)
{
    const struct k3_trunk_extent *e = &pack->tables.extents[extent];
    if (k3_digest_equal(found, &pack->tables.block_digests[e->block_first + block_in_extent])) {
        return K3_OK;
    }
    const uint64_t at = e->file_offset + block_in_extent * K3_TRUNK_BLOCK_BYTES;
    const uint64_t end = k3_min_u64(at + K3_TRUNK_BLOCK_BYTES, e->file_offset + e->used_bytes);
    char where[32] = "top level";
    if (e->layer != K3_TOP_LEVEL) {
        snprintf(where, sizeof where, "layer %u", e->layer);
    }
    return k3_fail(err, K3_ERR_DAMAGED, at,
                   "'%s': bytes %" PRIu64 "..%" PRIu64
                   " (%s) do not match their digest; find all damage with k3pack --verify '%s', "
                   "mend it with k3pack --repair",
                   pack->trunk.path, at, end, where, pack->folder);
}

enum k3_code k3_check_expert(const struct k3_pack *pack, uint64_t number,
                             const struct k3_digest *found, struct k3_error *err)
{
    const struct k3_expert_layout *layout = &pack->tables.layout;
    if (k3_digest_equal(found, &pack->tables.expert_digests[number])) {
        return K3_OK;
    }
    const uint64_t at = k3_expert_offset(layout, number);
    return k3_fail(
        err, K3_ERR_DAMAGED, at,
        "'%s': layer %u expert %u (bytes %" PRIu64 "..%" PRIu64
        ") does not match its digest; find all damage with k3pack --verify '%s', mend "
        "it with k3pack --repair",
        pack->experts.path, layout->first_layer + (uint32_t)(number / layout->expert_count),
        (uint32_t)(number % layout->expert_count), at, at + layout->used_bytes, pack->folder);
}
