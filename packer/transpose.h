/* SPDX-License-Identifier: Apache-2.0 */
#ifndef K3_PACKER_TRANSPOSE_H
#define K3_PACKER_TRANSPOSE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* [rows][cols] to [cols][rows], of items of 2 or 4 bytes, not overlapping. */
static inline void k3_transpose_16(uint8_t *out, const uint8_t *in, size_t rows, size_t cols)
{
    for (size_t r = 0; r < rows; r++) {
        for (size_t c = 0; c < cols; c++) {
            memcpy(out + 2 * (c * rows + r), in + 2 * (r * cols + c), 2);
        }
    }
}

static inline void k3_transpose_32(uint8_t *out, const uint8_t *in, size_t rows, size_t cols)
{
    for (size_t r = 0; r < rows; r++) {
        for (size_t c = 0; c < cols; c++) {
            memcpy(out + 4 * (c * rows + r), in + 4 * (r * cols + c), 4);
        }
    }
}

#endif
