/* SPDX-License-Identifier: Apache-2.0 */
#ifndef K3_TESTS_UNIT_RUNTIME_RESIDENCY_RELEASED_TABLES_H
#define K3_TESTS_UNIT_RUNTIME_RESIDENCY_RELEASED_TABLES_H

#include "format/pack/tables.h"
#include "tests/unit/format/pack/released_spec.h"

/* The tables of a pack of the released model; needs no pack. */
static inline enum k3_code k3_released_tables(struct k3_pack_tables *out_tables,
                                              struct k3_error *err)
{
    const struct k3_model_spec spec = k3_released_spec();
    uint32_t a_log[K3_LAYERS_MAX];
    for (uint32_t layer = 0; layer < spec.layers; layer++) {
        a_log[layer] = K3_RELEASED_A_LOG_LEN;
    }
    return k3_pack_tables_derive(&spec, a_log, out_tables, err);
}

#endif
