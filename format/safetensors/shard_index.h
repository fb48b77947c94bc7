/* SPDX-License-Identifier: Apache-2.0 */
#ifndef K3_FORMAT_SAFETENSORS_SHARD_INDEX_H
#define K3_FORMAT_SAFETENSORS_SHARD_INDEX_H

#include "format/base/error.h"
#include "format/base/problems.h"
#include "format/safetensors/shard_set.h"

/* Compares model.safetensors.index.json, `{"metadata": {"total_size": N}, "weight_map": {tensor:
 * file}}`, with what the shards hold. Every contradiction is a problem; what shards that are
 * missing or unreadable should hold is counted with them, not listed. *out_missing_files is how
 * many files it names that are not there. Errors: NO_MEMORY. */
K3_MUST_CHECK enum k3_code k3_shard_index_check(const char *path, const struct k3_shard_set *set,
                                                struct k3_problems *problems,
                                                size_t *out_missing_files, struct k3_error *err);

#endif
