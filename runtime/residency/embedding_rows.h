/* SPDX-License-Identifier: Apache-2.0 */
#ifndef K3_RUNTIME_RESIDENCY_EMBEDDING_ROWS_H
#define K3_RUNTIME_RESIDENCY_EMBEDDING_ROWS_H

#include "runtime/residency/integrity.h"

/* Rows of the embedding: a few kilobytes here and there in gigabytes, so they are read one by one
 * into a small buffer and nothing of them stays. A block whose digest is due is read as a whole
 * once and forgotten. One row at a time, from one thread. */
struct k3_embedding_rows {
    const struct k3_pack *pack; /* borrowed */
    enum k3_check_policy policy;
    struct k3_file file; /* of its own, so that its access pattern is its own */
    uint8_t *is_checked; /* owned: by block of the top level */
    struct k3_digest_stream *digest;
    uint8_t *row, *piece; /* owned */
    size_t row_room;
    uint64_t read_bytes, checked_bytes;
};

K3_MUST_CHECK enum k3_code k3_embedding_rows_open(const struct k3_pack *pack,
                                                  enum k3_check_policy policy,
                                                  struct k3_embedding_rows *out_rows,
                                                  struct k3_error *err);
void k3_embedding_rows_close(struct k3_embedding_rows *rows);

/* *out_bytes is valid until the next call. Errors: IO, DAMAGED. */
K3_MUST_CHECK enum k3_code k3_embedding_rows_read(struct k3_embedding_rows *rows, uint64_t offset,
                                                  uint64_t bytes, const uint8_t **out_bytes,
                                                  struct k3_error *err);

#endif
