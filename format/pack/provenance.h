/* SPDX-License-Identifier: Apache-2.0 */
#ifndef K3_FORMAT_PACK_PROVENANCE_H
#define K3_FORMAT_PACK_PROVENANCE_H

#include "format/pack/tables.h"

/* Where every byte came from: docs/format.md 9.2 to 9.4. */

#define K3_SHARDS_MAX     65536U
#define K3_SHARD_NAME_MAX 1024U
#define K3_SHA256_BYTES   32U

struct k3_shard_record {
    char *name; /* owned */
    uint64_t file_bytes;
    struct k3_digest digest; /* of the whole file */
    bool has_sha256;
    uint8_t sha256[K3_SHA256_BYTES];
};

struct k3_source_record {
    uint32_t shard;
    uint64_t offset, bytes; /* in the shard file */
    struct k3_digest digest;
};

struct k3_provenance {
    struct k3_shard_record *shards;
    uint32_t shard_count;
    struct k3_source_record *trunk;   /* source_count of the tables */
    struct k3_source_record *experts; /* K3_EXPERT_PARTS per expert, in file order */
};

/* docs/format.md 9.2: 1 to K3_SHARD_NAME_MAX bytes of UTF-8 without '/' and NUL. */
bool k3_shard_name_is_good(const uint8_t *name, size_t len);

/* Zeroed records for these tables and shard_count shards. */
K3_MUST_CHECK enum k3_code k3_provenance_create(const struct k3_pack_tables *tables,
                                                uint32_t shard_count,
                                                struct k3_provenance *out_provenance,
                                                struct k3_error *err);
void k3_provenance_done(struct k3_provenance *provenance);

/* Raw bytes of section `kind` (8..10) in fresh memory, the caller's to free. A shard name that no
 * reader would accept is MALFORMED. */
K3_MUST_CHECK enum k3_code k3_provenance_encode(const struct k3_provenance *provenance,
                                                const struct k3_pack_tables *tables,
                                                enum k3_section_kind kind, uint8_t **out_bytes,
                                                size_t *out_len, struct k3_error *err);

/* The inverse of all three, indexed by kind - K3_SECTION_SHARDS. Names, dtypes, shapes and sizes of
 * the sources must be those that the tables need; ranges must lie in their shards. */
K3_MUST_CHECK enum k3_code k3_provenance_decode(const struct k3_section_bytes sections[3],
                                                const struct k3_pack_tables *tables,
                                                struct k3_provenance *out_provenance,
                                                struct k3_error *err);

/* Name and shape of trunk source `source`, found from its first stored tensor. */
const struct k3_trunk_tensor *k3_source_first_tensor(const struct k3_pack_tables *tables,
                                                     uint32_t source);
struct k3_source_shape k3_tensor_source_shape(const struct k3_pack_tables *tables,
                                              const struct k3_trunk_tensor *tensor);

#endif
