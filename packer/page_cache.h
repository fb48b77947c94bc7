/* SPDX-License-Identifier: Apache-2.0 */
#ifndef K3_PACKER_PAGE_CACHE_H
#define K3_PACKER_PAGE_CACHE_H

#include "format/base/file.h"

/* Packing moves far more bytes than there is memory; what passed through must not push out the
 * machine's other work, and written bytes must not pile up until one long sync. All of this is
 * advice: failures are ignored. */

/* Will be read from start to end. */
void k3_cache_expect_sequential(const struct k3_file *file);

/* A reader that stands at `at` will go on to `at` + some 64 MiB: asks for what was not asked for
 * yet, in pieces that the kernel does not cut short, so that the disk always has work. Zeroed; one
 * per pass. */
struct k3_read_ahead {
    uint64_t asked_to;
};
void k3_read_ahead(struct k3_read_ahead *ahead, const struct k3_file *file, uint64_t at);

/* These bytes are not needed again. */
void k3_cache_drop(const struct k3_file *file, uint64_t offset, uint64_t bytes);

/* These bytes can go to the disk now, so that a later sync finds little to do. */
void k3_cache_write_soon(const struct k3_file *file, uint64_t offset, uint64_t bytes);

/* Drops what a sequential reader has passed, in large steps. Zeroed; one per pass. */
struct k3_drop_behind {
    uint64_t dropped_to;
};
void k3_drop_behind(struct k3_drop_behind *behind, const struct k3_file *file, uint64_t read_to);

/* Starts writing each range at once; waits for and drops the range of K3_WRITE_BEHIND_RANGES writes
 * ago. Zeroed is empty. */
#define K3_WRITE_BEHIND_RANGES 8U
struct k3_write_behind {
    struct {
        uint64_t offset, bytes;
    } ranges[K3_WRITE_BEHIND_RANGES];
    unsigned next;
};
void k3_write_behind(struct k3_write_behind *behind, const struct k3_file *file, uint64_t offset,
                     uint64_t bytes);

#endif
