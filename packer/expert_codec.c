/* SPDX-License-Identifier: Apache-2.0 */
#include "packer/expert_codec.h"

#include "format/base/ckd.h"
#include "format/pack/tiles.h"

#define TILE_ROWS 16U

struct k3_expert_shape k3_expert_shape_of(const struct k3_model_spec *spec)
{
    struct k3_expert_shape s = {0};
    for (unsigned part = 0; part < K3_EXPERT_PARTS; part++) {
        uint64_t shape[2];
        k3_expert_part_shape(spec, part, shape);
        s.part_offset[part] = s.source_bytes;
        s.part_row_bytes[part] = shape[1];
        s.part_bytes[part] = shape[0] * shape[1];
        s.source_bytes += s.part_bytes[part];
        if (part % 2 == 0) {
            s.rows[part / 2] = (uint32_t)shape[0];
            s.cols[part / 2] = (uint32_t)(shape[1] * 2);
        }
    }
    return s;
}

/* Where tile `tile` of matrix w1, w2 or w3 (0..2) lies in the extent. */
static uint64_t tile_at(const struct k3_expert_layout *layout, unsigned matrix, uint64_t tile)
{
    if (matrix == 1) {
        return layout->w2_offset + tile * layout->w2_tile_bytes;
    }
    return (2 * tile + (matrix == 2)) * layout->w13_tile_bytes;
}

void k3_expert_encode(const struct k3_expert_shape *shape, const struct k3_expert_layout *layout,
                      const uint8_t *source, uint8_t *out_extent)
{
    for (unsigned m = 0; m < 3; m++) {
        const uint8_t *packed = source + shape->part_offset[2 * m];
        const uint8_t *scales = source + shape->part_offset[2 * m + 1];
        for (uint64_t row = 0; row < shape->rows[m]; row += TILE_ROWS) {
            k3_m4_tile_make(out_extent + tile_at(layout, m, row / TILE_ROWS),
                            packed + row * shape->part_row_bytes[2 * m],
                            scales + row * shape->part_row_bytes[2 * m + 1],
                            (size_t)k3_min_u64(TILE_ROWS, shape->rows[m] - row), shape->cols[m]);
        }
    }
}

void k3_expert_decode(const struct k3_expert_shape *shape, const struct k3_expert_layout *layout,
                      const uint8_t *extent, uint8_t *out_source)
{
    for (unsigned m = 0; m < 3; m++) {
        uint8_t *packed = out_source + shape->part_offset[2 * m];
        uint8_t *scales = out_source + shape->part_offset[2 * m + 1];
        for (uint64_t row = 0; row < shape->rows[m]; row += TILE_ROWS) {
            k3_m4_tile_unmake(packed + row * shape->part_row_bytes[2 * m],
                              scales + row * shape->part_row_bytes[2 * m + 1],
                              (size_t)k3_min_u64(TILE_ROWS, shape->rows[m] - row), shape->cols[m],
                              extent + tile_at(layout, m, row / TILE_ROWS));
        }
    }
}
