/* SPDX-License-Identifier: Apache-2.0 */
#ifndef K3_PACKER_CENSUS_H
#define K3_PACKER_CENSUS_H

#include "format/base/problems.h"
#include "format/pack/file_bundle.h"
#include "format/pack/provenance.h"
#include "format/safetensors/shard_set.h"

/* What a checkpoint holds against what its model needs: every source tensor found, with exactly
 * the dtype and shape that the model spec demands, and nothing there that is not understood.
 *
 * A source tensor has a number: trunk sources first (index among the tables' sources), then six
 * parts per expert in file order of the experts. */
#define K3_NO_SOURCE UINT32_MAX

struct k3_census {
    struct k3_shard_set set;
    struct k3_file_bundle files;
    struct k3_pack_tables tables;    /* layout; digests are zero                         */
    struct k3_provenance provenance; /* names, sizes and places; digests are zero        */
    bool has_sha256;                 /* SHA-256 of shards is made and recorded too       */
    uint32_t *owner;                 /* by tensor of the set: source number, or none     */
    /* Vision tensors, which a pack leaves out. */
    size_t skipped_tensors, skipped_shards; /* shards that hold nothing else             */
    uint64_t skipped_bytes;
};

/* Everything that is wrong with the checkpoint becomes a line in `problems`; any line makes this
 * fail (k3_problems_result). *out_census is the caller's: k3_census_done.
 * Errors: NO_INPUT, MALFORMED, UNSUPPORTED, IO, NO_MEMORY. */
K3_MUST_CHECK enum k3_code k3_census_take(const char *checkpoint, struct k3_census *out_census,
                                          struct k3_problems *problems, struct k3_error *err);

void k3_census_done(struct k3_census *census);

static inline uint32_t k3_expert_source(const struct k3_pack_tables *tables, uint64_t expert,
                                        unsigned part)
{
    return tables->source_count + (uint32_t)(expert * K3_EXPERT_PARTS) + part;
}

/* Record of a source number. */
static inline struct k3_source_record *k3_source_at(const struct k3_pack_tables *tables,
                                                    const struct k3_provenance *provenance,
                                                    uint32_t source)
{
    return source < tables->source_count ? &provenance->trunk[source]
                                         : &provenance->experts[source - tables->source_count];
}

/* Name of a source number. */
void k3_source_name(const struct k3_pack_tables *tables, uint32_t source,
                    char out_name[K3_TENSOR_NAME_MAX]);

#endif
