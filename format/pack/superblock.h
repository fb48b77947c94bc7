/* SPDX-License-Identifier: Apache-2.0 */
#ifndef K3_FORMAT_PACK_SUPERBLOCK_H
#define K3_FORMAT_PACK_SUPERBLOCK_H

#include "format/base/digest.h"
#include "format/base/error.h"
#include "format/pack/layout.h"

/* docs/format.md 3. */
struct k3_superblock {
    enum k3_file_kind file_kind;
    struct k3_digest pack_id;
    uint64_t file_bytes;
    uint64_t section_table_offset;
    uint32_t section_count;
    struct k3_digest section_table_digest;
    uint64_t data_end;
    char writer[K3_WRITER_BYTES + 1];
};

void k3_superblock_encode(const struct k3_superblock *superblock,
                          uint8_t out_bytes[K3_SUPERBLOCK_BYTES]);

/* Checks everything that can be checked without the rest of the file, in the document's order.
 * Errors: MALFORMED (not ours), UNSUPPORTED (newer), DAMAGED (digest), with the offset. */
K3_MUST_CHECK enum k3_code k3_superblock_decode(const uint8_t bytes[K3_SUPERBLOCK_BYTES],
                                                enum k3_file_kind expected_kind,
                                                uint64_t actual_file_bytes,
                                                struct k3_superblock *out_superblock,
                                                struct k3_error *err);

/* "k3.index", ... */
const char *k3_file_kind_name(enum k3_file_kind kind);

#endif
