/* SPDX-License-Identifier: Apache-2.0 */
#ifndef K3_RUNTIME_MODEL_EXPERT_WEIGHTS_H
#define K3_RUNTIME_MODEL_EXPERT_WEIGHTS_H

#include "format/pack/tables.h"
#include "runtime/kernels/kernels.h"

/* An expert's w1 (gate), w3 (up) and w2 (down): views of its extent, valid while it is held. */
struct k3_expert_weights {
    struct k3_tile_run gate, up, down;
};

struct k3_expert_weights k3_expert_weights_view(const struct k3_pack_tables *tables,
                                                const uint8_t *expert_bytes);

#endif
