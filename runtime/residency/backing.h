/* SPDX-License-Identifier: Apache-2.0 */
#ifndef K3_RUNTIME_RESIDENCY_BACKING_H
#define K3_RUNTIME_RESIDENCY_BACKING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "format/base/file.h"

/* A file seen as one range of addresses, byte o of the file at base + o, whose parts are brought in
 * and thrown out explicitly and are never faulted in by whoever reads them. Three ways:
 *   mmap    the file itself, mapped; the page cache is the memory
 *   read    anonymous memory, filled by pread; the page cache is emptied behind it
 *   direct  anonymous memory, filled by O_DIRECT, past the page cache
 * Why these calls and no others: docs/memory.md. Safe from any thread, for parts that do not
 * overlap. Hints may fail: counted, never fatal. */
enum k3_io_kind { K3_IO_AUTO, K3_IO_MMAP, K3_IO_READ, K3_IO_DIRECT };

/* "mmap", ... */
const char *k3_io_name(enum k3_io_kind kind);

struct k3_backing {
    const struct k3_file *file; /* borrowed */
    enum k3_io_kind kind;       /* never AUTO; DIRECT becomes READ where the file system refuses */
    uint8_t *base;
    uint64_t len;
    void *reserved; /* what is unmapped at the end */
    size_t reserved_bytes;
    int direct_fd;
    bool has_folios;   /* parts start on 2 MiB and are dropped in units of it */
    size_t hint_bytes; /* what one readahead call brings in                   */
    _Atomic uint64_t failed_hints;
    _Atomic bool cannot_populate; /* no MADV_POPULATE_READ: Linux before 5.14 */
};

enum k3_access { K3_ACCESS_SEQUENTIAL, K3_ACCESS_RANDOM };

/* part_align: on what the parts start. Errors: IO, NO_MEMORY (no address space). */
K3_MUST_CHECK enum k3_code k3_backing_open(const struct k3_file *file, enum k3_io_kind kind,
                                           enum k3_access access, uint64_t part_align,
                                           struct k3_backing *out_backing, struct k3_error *err);
void k3_backing_close(struct k3_backing *backing);

/* Brings [offset, offset + bytes) in (both multiples of 4096): afterwards it can be read at
 * base + offset without a fault. Errors: IO, with the byte that cannot be read. */
K3_MUST_CHECK enum k3_code k3_backing_fetch(struct k3_backing *backing, uint64_t offset,
                                            uint64_t bytes, struct k3_error *err);

/* Frees the memory of a part. */
void k3_backing_drop(struct k3_backing *backing, uint64_t offset, uint64_t bytes);

/* Locks what was fetched; false where the system refuses. */
bool k3_backing_lock(struct k3_backing *backing, uint64_t offset, uint64_t bytes);

#endif
