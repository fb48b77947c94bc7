/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE /* SEEK_DATA */
#include "packer/hole.h"

#include <errno.h>
#include <sys/types.h>
#include <unistd.h>

uint64_t k3_file_next_data(const struct k3_file *file, uint64_t offset)
{
#ifdef SEEK_DATA
    const off_t found = lseek(file->fd, (off_t)offset, SEEK_DATA);
    if (found >= 0) {
        return (uint64_t)found;
    }
    if (errno == ENXIO) { /* nothing but a hole up to the end */
        const off_t end = lseek(file->fd, 0, SEEK_END);
        return end >= 0 && (uint64_t)end > offset ? (uint64_t)end : offset;
    }
#else
    (void)file;
#endif
    return offset;
}

uint64_t k3_file_next_hole(const struct k3_file *file, uint64_t offset)
{
#ifdef SEEK_DATA
    const off_t found = lseek(file->fd, (off_t)offset, SEEK_HOLE);
    if (found > (off_t)offset) {
        return (uint64_t)found;
    }
#endif
    const off_t end = lseek(file->fd, 0, SEEK_END);
    return end > (off_t)offset ? (uint64_t)end : offset + 1;
}
