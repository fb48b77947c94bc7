/* SPDX-License-Identifier: Apache-2.0 */
#include "packer/source_range.h"

#include "format/base/ckd.h"
#include "format/pack/provenance.h"

#define TILE_ROWS 16U

/* Units `first`..`last` of unit_bytes each, inside `total`. */
static void set_range(uint64_t first, uint64_t last, uint64_t unit_bytes, uint64_t total,
                      uint64_t *out_offset, uint64_t *out_bytes)
{
    *out_offset = k3_min_u64(first * unit_bytes, total);
    *out_bytes = k3_min_u64((last + 1) * unit_bytes, total) - *out_offset;
}

void k3_source_range(const struct k3_pack_tables *tables, const struct k3_trunk_tensor *tensor,
                     uint64_t offset, uint64_t bytes, uint64_t *out_offset, uint64_t *out_bytes)
{
    const struct k3_source_shape shape = k3_tensor_source_shape(tables, tensor);
    const uint64_t total = k3_source_bytes(&shape), last = offset + bytes - 1;
    const uint64_t item = tensor->source_dtype == K3_DTYPE_F32 ? 4 : 2;
    switch ((enum k3_encoding)tensor->encoding) {
    case K3_ENCODING_F32:
        set_range(offset / 4, last / 4, item, total, out_offset, out_bytes);
        return;
    case K3_ENCODING_ROWS:
        set_range(offset / item, last / item, item, total, out_offset, out_bytes);
        return;
    case K3_ENCODING_TAPS:
        set_range(0, 0, total, total, out_offset, out_bytes);
        return;
    case K3_ENCODING_B16:
        break;
    }
    if (tensor->role == K3_ROLE_MLA_KV_B_KEY || tensor->role == K3_ROLE_MLA_KV_B_VALUE) {
        const uint64_t head = k3_stored_matrix_bytes(tensor->encoding, tensor->rows, tensor->cols);
        set_range(offset / head, last / head, total / tensor->matrix_count, total, out_offset,
                  out_bytes);
        return;
    }
    const uint64_t tile = k3_stored_matrix_bytes(tensor->encoding, TILE_ROWS, tensor->cols);
    set_range(offset / tile, last / tile, (uint64_t)TILE_ROWS * tensor->cols * item, total,
              out_offset, out_bytes);
}
