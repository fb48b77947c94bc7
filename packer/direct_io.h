/* SPDX-License-Identifier: Apache-2.0 */
#ifndef K3_PACKER_DIRECT_IO_H
#define K3_PACKER_DIRECT_IO_H

#include "format/base/file.h"

/* Reads and writes of an open file that go to the device and leave the page cache alone (O_DIRECT):
 * a third of the CPU time, and nothing of the machine's other work is pushed out. Where the file
 * system has no such thing, ordinary calls take their place. May be used by several threads. */
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

/* As k3_file_write; the file must be open for writing. */
K3_MUST_CHECK enum k3_code k3_direct_write(const struct k3_direct *direct, uint64_t offset,
                                           const uint8_t *bytes, uint64_t len,
                                           struct k3_error *err);

#endif
