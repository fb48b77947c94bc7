/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/model/expert_weights.h"

#include "runtime/model/compute.h"

struct k3_expert_weights k3_expert_weights_view(const struct k3_pack_tables *tables,
                                                const uint8_t *expert_bytes)
{
    const struct k3_expert_layout *layout = &tables->layout;
    const struct k3_model_spec *spec = &tables->spec;
    const size_t w13 = (size_t)layout->w13_tile_bytes;
    struct k3_expert_weights w;
    /* w1 and w3 alternate tile by tile (docs/format.md 8.1). */
    w.gate = (struct k3_tile_run){
        .tiles = expert_bytes,
        .tile_stride_bytes = 2 * w13,
        .tile_count = (spec->expert_intermediate + K3_TILE_ROWS - 1) / K3_TILE_ROWS,
        .cols_padded = k3_padded(spec->latent),
    };
    w.up = w.gate;
    w.up.tiles += w13;
    w.down = (struct k3_tile_run){
        .tiles = expert_bytes + layout->w2_offset,
        .tile_stride_bytes = (size_t)layout->w2_tile_bytes,
        .tile_count = (spec->latent + K3_TILE_ROWS - 1) / K3_TILE_ROWS,
        .cols_padded = k3_padded(spec->expert_intermediate),
    };
    return w;
}
