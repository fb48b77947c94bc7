/* SPDX-License-Identifier: Apache-2.0 */
#ifndef K3_FORMAT_PACK_TILES_H
#define K3_FORMAT_PACK_TILES_H

#include <stddef.h>
#include <stdint.h>

#include "format/base/error.h"

/* Source rows to tiles and back: docs/format.md 7.4 and 8.1. Pure and exactly invertible. */

/* One B16 tile of 2 * 16 * round_up(cols, 128) bytes from `rows` (1..16) source rows of bf16,
 * row_stride bytes apart. Missing rows and columns become zero bits. */
void k3_b16_tile_make(uint8_t *out_tile, const uint8_t *source, size_t row_stride, size_t rows,
                      size_t cols);
void k3_b16_tile_unmake(uint8_t *out_rows, size_t row_stride, size_t rows, size_t cols,
                        const uint8_t *tile);

/* One M4 tile of 1088 * round_up(cols, 128) / 128 bytes. cols is a multiple of 32.
 *   packed [rows][cols/2], scales [rows][cols/32], dense */
void k3_m4_tile_make(uint8_t *out_tile, const uint8_t *packed, const uint8_t *scales, size_t rows,
                     size_t cols);
void k3_m4_tile_unmake(uint8_t *out_packed, uint8_t *out_scales, size_t rows, size_t cols,
                       const uint8_t *tile);

/* What a pack never holds. Each returns the index of the first offending element (or group of 32),
 * SIZE_MAX when there is none. */
size_t k3_bf16_find_nonfinite(const uint8_t *bf16, size_t count);
size_t k3_f32_find_nonfinite(const uint8_t *f32, size_t count);
size_t k3_mxfp4_find_forbidden(const uint8_t *packed, const uint8_t *scales, size_t groups);

#endif
