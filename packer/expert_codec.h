/* SPDX-License-Identifier: Apache-2.0 */
#ifndef K3_PACKER_EXPERT_CODEC_H
#define K3_PACKER_EXPERT_CODEC_H

#include "format/pack/tables.h"

/* The six source tensors of one expert, one after the other in the order of docs/format.md 9.4, to
 * its stored extent and back. Pure. */
struct k3_expert_shape {
    uint64_t part_offset[K3_EXPERT_PARTS]; /* in the source bytes of the whole expert */
    uint64_t part_bytes[K3_EXPERT_PARTS];
    uint64_t part_row_bytes[K3_EXPERT_PARTS];
    uint64_t source_bytes;
    uint32_t rows[3], cols[3]; /* of w1, w2, w3 */
};

struct k3_expert_shape k3_expert_shape_of(const struct k3_model_spec *spec);

/* Only tiles are written: the padding between and behind the matrices must be zero before. */
void k3_expert_encode(const struct k3_expert_shape *shape, const struct k3_expert_layout *layout,
                      const uint8_t *source, uint8_t *out_extent);
void k3_expert_decode(const struct k3_expert_shape *shape, const struct k3_expert_layout *layout,
                      const uint8_t *extent, uint8_t *out_source);

#endif
