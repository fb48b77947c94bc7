/* SPDX-License-Identifier: Apache-2.0 */
#ifndef K3_PACKER_SPARSE_WRITE_H
#define K3_PACKER_SPARSE_WRITE_H

#include "packer/direct_io.h"

/* Writes all but longer runs of zeros: the place must read as zeros before. Holes stay holes, to
 * the 4 KiB block (a run of fewer than four such blocks is not worth another call). */
K3_MUST_CHECK enum k3_code k3_write_sparse(const struct k3_file *file, uint64_t offset,
                                           const uint8_t *bytes, uint64_t len,
                                           struct k3_error *err);

/* The same past the page cache, where offset and bytes start on pages. */
K3_MUST_CHECK enum k3_code k3_write_sparse_direct(const struct k3_direct *direct, uint64_t offset,
                                                  const uint8_t *bytes, uint64_t len,
                                                  struct k3_error *err);

#endif
