/* SPDX-License-Identifier: Apache-2.0 */
#ifndef K3_TESTS_UNIT_FORMAT_PACK_PACK_FIXTURE_H
#define K3_TESTS_UNIT_FORMAT_PACK_PACK_FIXTURE_H

#include "format/base/file.h"
#include "format/pack/file_bundle.h"
#include "format/pack/provenance.h"
#include "format/pack/sections.h"
#include "format/pack/tables.h"

/* Packs of a toy model for tests and fuzz targets: everything but the weights has meaning, the
 * weights are random bytes. What cannot fail here ends the process. */

/* Three layers (KDA + dense, MLA + MoE, KDA + MoE), every dimension different, few a multiple of a
 * tile. */
struct k3_model_spec k3_toy_spec(void);

/* The next of a sequence of random numbers (splitmix64). */
uint64_t k3_test_random(uint64_t *state);
void k3_test_random_fill(uint64_t *state, void *bytes, size_t len);

/* Everything that a seal needs. */
struct k3_pack_parts {
    struct k3_pack_tables tables;
    struct k3_file_bundle files;
    struct k3_provenance provenance;
};

/* Tables of `spec` with random digests and a provenance of `shard_count` shards in which the
 * sources lie one after the other. A_log of layer l has a_log_len + (l == 0) values: the lengths
 * differ. */
void k3_pack_parts_init(struct k3_pack_parts *parts, const struct k3_model_spec *spec,
                        uint32_t a_log_len, uint32_t shard_count, uint64_t seed);
void k3_pack_parts_done(struct k3_pack_parts *parts);

/* Fills `folder` with k3.trunk.partial and k3.experts.partial of random extents, whose digests go
 * into the tables. The files stay open: the caller closes. */
void k3_pack_parts_write(struct k3_pack_parts *parts, const char *folder, uint64_t seed,
                         struct k3_file *out_trunk, struct k3_file *out_experts);

/* A sealed pack of the toy model. */
void k3_toy_pack_make(const char *folder, uint64_t seed);

/* The bytes of its k3.index, free() them. Needs no folder of the caller's. */
uint8_t *k3_toy_index_make(size_t *out_len);

/* The raw bytes of section `kind` made from the parts, free() them. */
uint8_t *k3_parts_section(const struct k3_pack_parts *parts, enum k3_section_kind kind,
                          size_t *out_len);

/* Makes the digests of an index (or what may be one) agree with its bytes, wherever the section
 * table says that they are; the size and the pack id too. For mutated files that are to be refused
 * by what they say, not by a digest. */
void k3_index_redigest(uint8_t *bytes, size_t len);
/* The superblock alone. */
void k3_superblock_redigest(uint8_t bytes[K3_SUPERBLOCK_BYTES]);

/* Bytes to a section set, whose tail is a copy. */
K3_MUST_CHECK enum k3_code k3_index_parse(const uint8_t *bytes, size_t len,
                                          struct k3_section_set *out_set, struct k3_error *err);

#endif
