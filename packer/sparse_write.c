/* SPDX-License-Identifier: Apache-2.0 */
#include "packer/sparse_write.h"

#include "format/base/bytes.h"
#include "format/base/ckd.h"

#define BLOCK_BYTES UINT64_C(4096)
#define RUN_BYTES   (4 * BLOCK_BYTES) /* zeros that are worth leaving out */

/* Where the block at `at` ends: blocks are those of the file, the first may be cut. */
static uint64_t block_end(uint64_t offset, uint64_t at, uint64_t len)
{
    return k3_min_u64(at + BLOCK_BYTES - (offset + at) % BLOCK_BYTES, len);
}

/* From `at` on: past all blocks that are zero (or, with wanted false, are not). */
static uint64_t skip_blocks(uint64_t offset, const uint8_t *bytes, uint64_t at, uint64_t len,
                            bool wanted)
{
    while (at < len) {
        const uint64_t end = block_end(offset, at, len);
        if (k3_bytes_are_zero(bytes + at, (size_t)(end - at)) != wanted) {
            break;
        }
        at = end;
    }
    return at;
}

enum k3_code k3_write_sparse_direct(const struct k3_direct *direct, uint64_t offset,
                                    const uint8_t *bytes, uint64_t len, struct k3_error *err)
{
    uint64_t at = skip_blocks(offset, bytes, 0, len, true);
    while (at < len) {
        const uint64_t start = at;
        uint64_t data_end = 0;
        do { /* data, and zeros too few to end the run */
            data_end = skip_blocks(offset, bytes, at, len, false);
            at = skip_blocks(offset, bytes, data_end, len, true);
        } while (at < len && at - data_end < RUN_BYTES);
        const enum k3_code code =
            k3_direct_write(direct, offset + start, bytes + start, data_end - start, err);
        if (code != K3_OK) {
            return code;
        }
    }
    return K3_OK;
}

enum k3_code k3_write_sparse(const struct k3_file *file, uint64_t offset, const uint8_t *bytes,
                             uint64_t len, struct k3_error *err)
{
    const struct k3_direct ordinary = {.file = file, .fd = -1};
    return k3_write_sparse_direct(&ordinary, offset, bytes, len, err);
}
