/* SPDX-License-Identifier: Apache-2.0 */
#ifndef K3_RUNTIME_RESIDENCY_MAPPED_SOURCE_H
#define K3_RUNTIME_RESIDENCY_MAPPED_SOURCE_H

#include "format/base/mapping.h"
#include "format/pack/pack_reader.h"
#include "runtime/model/weight_source.h"
#include "runtime/thread/pool.h"

/* A pack's trunk and experts, mapped read-only and left to the page cache. Digests are checked as
 * the policy says, by the pool's threads, before the bytes are handed out. */
enum k3_check_policy {
    K3_CHECK_OFF,
    K3_CHECK_FIRST, /* when a block or expert is first used   */
    K3_CHECK_ALWAYS /* whenever it is used                    */
};

struct k3_source_counts {
    uint64_t trunk_bytes;   /* handed out              */
    uint64_t expert_bytes;  /* handed out              */
    uint64_t experts;       /* handed out              */
    uint64_t checked_bytes; /* compared with a digest  */
    uint64_t check_ns;
};

struct k3_mapped_source;

/* Borrows the pack and the pool, which must outlive it. Errors: IO, NO_MEMORY. */
K3_MUST_CHECK enum k3_code k3_mapped_source_create(const struct k3_pack *pack, struct k3_pool *pool,
                                                   enum k3_check_policy policy,
                                                   struct k3_mapped_source **out_source,
                                                   struct k3_error *err);
void k3_mapped_source_destroy(struct k3_mapped_source *source);

struct k3_weight_source k3_mapped_source_doors(struct k3_mapped_source *source);
struct k3_source_counts k3_mapped_source_counts(const struct k3_mapped_source *source);

/* For a SIGBUS handler: which file and offset an address belongs to. NULL when it is not ours.
 * Async signal safe. */
const char *k3_mapped_source_locate(const struct k3_mapped_source *source, const void *address,
                                    uint64_t *out_offset);

#endif
