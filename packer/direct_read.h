/* SPDX-License-Identifier: Apache-2.0 */
#ifndef K3_PACKER_DIRECT_READ_H
#define K3_PACKER_DIRECT_READ_H

#include "format/base/file.h"

/* Reads of an open file that come from the device and leave the page cache alone (O_DIRECT). Where
 * the file system has no such thing, ordinary reads take their place. May be used by several
 * threads at once. */
#define K3_DIRECT_ALIGN 4096U

struct k3_direct {
    const struct k3_file *file; /* borrowed */
    int fd;                     /* -1: ordinary reads */
};

void k3_direct_open(const struct k3_file *file, struct k3_direct *out_direct);
void k3_direct_close(struct k3_direct *direct);

/* As k3_file_read. Direct where offset, address and length are multiples of K3_DIRECT_ALIGN. */
K3_MUST_CHECK enum k3_code k3_direct_read(const struct k3_direct *direct, uint64_t offset,
                                          uint8_t *out_bytes, uint64_t len, struct k3_error *err);

#endif
