/* SPDX-License-Identifier: Apache-2.0 */
#ifndef K3_FORMAT_PACK_TABLES_H
#define K3_FORMAT_PACK_TABLES_H

#include "format/base/digest.h"
#include "format/pack/role.h"

/* Where everything is: docs/format.md 7 and 8. The tables of a pack follow from its model spec (and
 * the length of each A_log), so there is one function that derives them, used by the writer to plan
 * and by the reader to check: a table that differs from its derivation is refused. */

struct k3_trunk_tensor {
    uint32_t layer; /* or K3_TOP_LEVEL */
    uint16_t role;  /* enum k3_role */
    uint16_t encoding;
    uint16_t source_dtype;
    uint32_t matrix_count;
    uint32_t rows, cols; /* of one matrix, unpadded */
    uint64_t file_offset;
    uint64_t stored_bytes;
    uint32_t extent;
    uint32_t source; /* index among the trunk's source tensors */
};

struct k3_trunk_extent {
    uint32_t layer; /* or K3_TOP_LEVEL */
    uint32_t tensor_first, tensor_count;
    uint32_t block_first; /* index among the block digests */
    uint64_t file_offset;
    uint64_t used_bytes;
};

struct k3_expert_layout {
    uint32_t first_layer, layer_count, expert_count;
    uint64_t data_offset, stride, used_bytes;
    uint64_t w2_offset;      /* inside an extent */
    uint64_t w13_tile_bytes; /* of one w1 or w3 tile; not stored, follows */
    uint64_t w2_tile_bytes;
};

struct k3_pack_tables {
    struct k3_model_spec spec;

    struct k3_trunk_extent *extents; /* by layer; the top level last */
    struct k3_trunk_tensor *tensors;
    struct k3_digest *block_digests;
    uint32_t extent_count, tensor_count, block_count, source_count;

    struct k3_expert_layout layout;
    struct k3_digest *expert_digests; /* layer_count * expert_count, in file order */
};

static inline uint64_t k3_expert_total(const struct k3_expert_layout *layout)
{
    return (uint64_t)layout->layer_count * layout->expert_count;
}
/* Index of an expert in file order. */
static inline uint64_t k3_expert_number(const struct k3_expert_layout *layout, uint32_t layer,
                                        uint32_t expert)
{
    return (uint64_t)(layer - layout->first_layer) * layout->expert_count + expert;
}
static inline uint64_t k3_expert_offset(const struct k3_expert_layout *layout, uint64_t number)
{
    return layout->data_offset + number * layout->stride;
}
/* Ends of the used bytes of the last extents. */
uint64_t k3_trunk_data_end(const struct k3_pack_tables *tables);
uint64_t k3_experts_data_end(const struct k3_pack_tables *tables);

static inline uint32_t k3_extent_block_count(const struct k3_trunk_extent *extent)
{
    return (uint32_t)((extent->used_bytes + K3_TRUNK_BLOCK_BYTES - 1) / K3_TRUNK_BLOCK_BYTES);
}
/* Bytes of one matrix of a stored tensor, padding included. */
uint64_t k3_stored_matrix_bytes(unsigned encoding, uint32_t rows, uint32_t cols);

/* The stored tensor with this role in an extent, NULL where it has none. */
const struct k3_trunk_tensor *k3_trunk_find(const struct k3_pack_tables *tables, uint32_t layer,
                                            unsigned role);

/* Derives all tables of a checked spec. a_log_len[layer] is read for KDA layers only; each must be
 * in kda_heads..K3_A_LOG_MAX. Digests are zero. *out_tables is the caller's: k3_pack_tables_done.
 * Errors: MALFORMED (also a model whose tables outgrow the maxima of a section), NO_MEMORY. */
K3_MUST_CHECK enum k3_code k3_pack_tables_derive(const struct k3_model_spec *spec,
                                                 const uint32_t *a_log_len,
                                                 struct k3_pack_tables *out_tables,
                                                 struct k3_error *err);
void k3_pack_tables_done(struct k3_pack_tables *tables);

/* Raw bytes of the sections 1..6 (docs/format.md). Encoded size, then bytes. */
size_t k3_table_section_bytes(const struct k3_pack_tables *tables, enum k3_section_kind kind);
void k3_table_section_encode(const struct k3_pack_tables *tables, enum k3_section_kind kind,
                             uint8_t *out_bytes);

/* The inverse: raw bytes of sections 1..6, indexed by kind; [0] is not used. Everything is derived
 * anew and compared. A section may be missing (NULL): those of the trunk (2..4) together, or those
 * of the experts (5, 6) together; their digests are then zero, and A_log lengths are taken to be
 * kda_heads where the trunk's tensor table is missing. */
struct k3_section_bytes {
    const uint8_t *bytes;
    size_t len;
};
K3_MUST_CHECK enum k3_code
k3_pack_tables_decode(const struct k3_section_bytes sections[K3_SECTION_EXPERT_DIGESTS + 1],
                      struct k3_pack_tables *out_tables, struct k3_error *err);

#endif
