/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE /* sync_file_range */
#include "packer/page_cache.h"

#include <fcntl.h>

#define DROP_STEP       (UINT64_C(32) << 20)
#define AHEAD_BYTES     (UINT64_C(64) << 20)
#define AHEAD_PIECE     (1 << 18)
#define WRITE_RANGE_MIN (UINT64_C(1) << 20) /* smaller ones are left to the kernel */

void k3_cache_expect_sequential(const struct k3_file *file)
{
    (void)posix_fadvise(file->fd, 0, 0, POSIX_FADV_SEQUENTIAL);
}

void k3_read_ahead(struct k3_read_ahead *ahead, const struct k3_file *file, uint64_t at)
{
    const uint64_t end = at + AHEAD_BYTES < file->file_bytes ? at + AHEAD_BYTES : file->file_bytes;
    if (at < ahead->asked_to && ahead->asked_to - at > AHEAD_BYTES) {
        ahead->asked_to = at; /* a new pass */
    }
    for (uint64_t from = ahead->asked_to > at ? ahead->asked_to : at; from < end;
         from += AHEAD_PIECE) {
        (void)posix_fadvise(file->fd, (off_t)from, AHEAD_PIECE, POSIX_FADV_WILLNEED);
        ahead->asked_to = from + AHEAD_PIECE;
    }
}

void k3_cache_drop(const struct k3_file *file, uint64_t offset, uint64_t bytes)
{
    if (bytes > 0) {
        (void)posix_fadvise(file->fd, (off_t)offset, (off_t)bytes, POSIX_FADV_DONTNEED);
    }
}

void k3_cache_write_soon(const struct k3_file *file, uint64_t offset, uint64_t bytes)
{
#ifdef __linux__
    if (bytes >= WRITE_RANGE_MIN) {
        (void)sync_file_range(file->fd, (off_t)offset, (off_t)bytes, SYNC_FILE_RANGE_WRITE);
    }
#else
    (void)file, (void)offset, (void)bytes;
#endif
}

void k3_drop_behind(struct k3_drop_behind *behind, const struct k3_file *file, uint64_t read_to)
{
    if (read_to < behind->dropped_to) {
        behind->dropped_to = read_to; /* a new pass */
    } else if (read_to - behind->dropped_to >= DROP_STEP) {
        k3_cache_drop(file, behind->dropped_to, read_to - behind->dropped_to);
        behind->dropped_to = read_to;
    }
}

void k3_write_behind(struct k3_write_behind *behind, const struct k3_file *file, uint64_t offset,
                     uint64_t bytes)
{
    if (bytes < WRITE_RANGE_MIN) {
        return;
    }
    k3_cache_write_soon(file, offset, bytes);
    const unsigned at = behind->next++ % K3_WRITE_BEHIND_RANGES;
    const uint64_t old_offset = behind->ranges[at].offset, old_bytes = behind->ranges[at].bytes;
    if (old_bytes > 0) {
#ifdef __linux__
        (void)sync_file_range(file->fd, (off_t)old_offset, (off_t)old_bytes,
                              SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE |
                                  SYNC_FILE_RANGE_WAIT_AFTER);
#endif
        k3_cache_drop(file, old_offset, old_bytes);
    }
    behind->ranges[at].offset = offset;
    behind->ranges[at].bytes = bytes;
}
