/* SPDX-License-Identifier: Apache-2.0 */
#include "packer/trunk_units.h"

#include "format/base/bytes.h"
#include "format/base/ckd.h"
#include "format/pack/tiles.h"
#include "packer/source_range.h"
#include "packer/transpose.h"

#define TILE_ROWS 16U

static bool is_kv_b(const struct k3_trunk_tensor *t)
{
    return t->role == K3_ROLE_MLA_KV_B_KEY || t->role == K3_ROLE_MLA_KV_B_VALUE;
}

/* Stored bytes of what cannot be made in parts. */
static uint64_t unit_bytes(const struct k3_trunk_tensor *t)
{
    switch ((enum k3_encoding)t->encoding) {
    case K3_ENCODING_F32:
        return 4;
    case K3_ENCODING_ROWS:
        return 2;
    case K3_ENCODING_TAPS:
        return t->stored_bytes;
    case K3_ENCODING_B16:
        break;
    }
    return k3_stored_matrix_bytes(t->encoding, is_kv_b(t) ? t->rows : TILE_ROWS, t->cols);
}

struct k3_unit_range k3_trunk_unit_range(const struct k3_pack_tables *tables,
                                         const struct k3_trunk_tensor *tensor, uint64_t offset,
                                         uint64_t bytes)
{
    const uint64_t unit = unit_bytes(tensor);
    struct k3_unit_range range = {.stored_offset = offset / unit * unit};
    range.stored_bytes = (offset + bytes + unit - 1) / unit * unit - range.stored_offset;
    k3_source_range(tables, tensor, range.stored_offset, range.stored_bytes, &range.source_offset,
                    &range.source_bytes);
    return range;
}

static void make_tiles(uint8_t *out_tiles, const uint8_t *source, uint64_t rows, uint64_t cols)
{
    const uint64_t tile_bytes = k3_stored_matrix_bytes(K3_ENCODING_B16, TILE_ROWS, (uint32_t)cols);
    for (uint64_t row = 0; row < rows; row += TILE_ROWS, out_tiles += tile_bytes) {
        k3_b16_tile_make(out_tiles, source + row * 2 * cols, (size_t)(2 * cols),
                         (size_t)k3_min_u64(TILE_ROWS, rows - row), (size_t)cols);
    }
}

static enum k3_code encode_heads(const struct k3_trunk_tensor *t, const struct k3_unit_range *range,
                                 const uint8_t *source, uint8_t *out, struct k3_buffer *scratch,
                                 struct k3_error *err)
{
    const bool is_key = t->role == K3_ROLE_MLA_KV_B_KEY;
    const struct k3_trunk_tensor *key = is_key ? t : t - 1, *value = key + 1;
    const uint64_t key_bytes = 2 * (uint64_t)key->rows * key->cols;
    const uint64_t head_bytes = key_bytes + 2 * (uint64_t)value->rows * value->cols;
    const uint64_t stored = k3_stored_matrix_bytes(t->encoding, t->rows, t->cols);
    const enum k3_code code = k3_buffer_reserve(scratch, key_bytes, err);
    for (uint64_t done = 0; code == K3_OK && done < range->source_bytes; done += head_bytes) {
        if (is_key) {
            k3_transpose_16(scratch->bytes, source + done, key->cols, key->rows);
            make_tiles(out, scratch->bytes, key->rows, key->cols);
        } else {
            make_tiles(out, source + done + key_bytes, value->rows, value->cols);
        }
        out += stored;
    }
    return code;
}

enum k3_code k3_trunk_units_encode(const struct k3_trunk_tensor *tensor,
                                   const struct k3_unit_range *range, const uint8_t *source,
                                   uint8_t *out_stored, struct k3_buffer *scratch,
                                   struct k3_error *err)
{
    switch ((enum k3_encoding)tensor->encoding) {
    case K3_ENCODING_F32:
        if (tensor->source_dtype == K3_DTYPE_F32) {
            memcpy(out_stored, source, (size_t)range->source_bytes);
            return K3_OK;
        }
        for (size_t i = 0; i < range->source_bytes / 2; i++) {
            k3_le32_put(out_stored + 4 * i, (uint32_t)k3_le16_get(source + 2 * i) << 16);
        }
        return K3_OK;
    case K3_ENCODING_ROWS:
        memcpy(out_stored, source, (size_t)range->source_bytes);
        return K3_OK;
    case K3_ENCODING_TAPS:
        k3_transpose_32(out_stored, source, tensor->cols, tensor->rows);
        return K3_OK;
    case K3_ENCODING_B16:
        break;
    }
    if (is_kv_b(tensor)) {
        return encode_heads(tensor, range, source, out_stored, scratch, err);
    }
    make_tiles(out_stored, source, range->source_bytes / (2 * (uint64_t)tensor->cols),
               tensor->cols);
    return K3_OK;
}
