/* SPDX-License-Identifier: Apache-2.0 */
#ifndef K3_PACKER_EXPORT_SHARD_H
#define K3_PACKER_EXPORT_SHARD_H

#include "packer/buffer.h"
#include "packer/census.h"

/* What goes into one shard, in the order of the release. Pure. */
struct k3_export_tensor {
    uint32_t source;
    enum k3_source_dtype dtype;
    uint64_t shape[K3_SOURCE_DIMS_MAX];
    uint32_t ndim;
    uint64_t bytes;
    char name[K3_TENSOR_NAME_MAX];
};

struct k3_export_shard {
    struct k3_export_tensor *tensors; /* owned */
    size_t count;
    char *header; /* owned: the JSON, padded to a multiple of 8 with its length before it */
    size_t header_len;
    uint64_t file_bytes; /* 8 + header + data */
};

/* All sources whose record names this shard; count may be 0. *out_shard is the caller's:
 * k3_export_shard_done. Errors: NO_MEMORY. */
K3_MUST_CHECK enum k3_code k3_export_shard_make(const struct k3_pack_tables *tables,
                                                const struct k3_provenance *provenance,
                                                uint32_t shard, struct k3_export_shard *out_shard,
                                                struct k3_error *err);
void k3_export_shard_done(struct k3_export_shard *shard);

#endif
