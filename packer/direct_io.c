/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE /* O_DIRECT */
#include "packer/direct_io.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "format/base/ckd.h"

#define STEP_BYTES (UINT64_C(32) << 20)

void k3_direct_open(const struct k3_file *file, struct k3_direct *out_direct)
{
    *out_direct = (struct k3_direct){.file = file, .fd = -1};
#ifdef O_DIRECT
    const int access = fcntl(file->fd, F_GETFL);
    char path[64]; /* the file that is open, whatever its name is by now */
    snprintf(path, sizeof path, "/proc/self/fd/%d", file->fd);
    out_direct->fd =
        open(path, (access < 0 ? O_RDONLY : access & O_ACCMODE) | O_CLOEXEC | O_DIRECT);
#endif
}

void k3_direct_close(struct k3_direct *direct)
{
    if (direct->file && direct->fd >= 0) {
        close(direct->fd);
    }
    *direct = (struct k3_direct){.fd = -1};
}

enum k3_code k3_direct_read(const struct k3_direct *direct, uint64_t offset, uint8_t *out_bytes,
                            uint64_t len, struct k3_error *err)
{
    uint64_t done = 0;
    const bool is_aligned = (offset | len | (uint64_t)(uintptr_t)out_bytes) % K3_DIRECT_ALIGN == 0;
    while (direct->fd >= 0 && is_aligned && done < len && done % K3_DIRECT_ALIGN == 0) {
        const ssize_t got =
            pread(direct->fd, out_bytes + done, (size_t)k3_min_u64(STEP_BYTES, len - done),
                  (off_t)(offset + done));
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            break; /* the ordinary read says what is wrong, or does better */
        }
        done += (uint64_t)got;
    }
    return done == len ? K3_OK
                       : k3_file_read(direct->file, offset + done, out_bytes + done,
                                      (size_t)(len - done), err);
}

enum k3_code k3_direct_write(const struct k3_direct *direct, uint64_t offset, const uint8_t *bytes,
                             uint64_t len, struct k3_error *err)
{
    uint64_t done = 0;
    const bool is_aligned = (offset | len | (uint64_t)(uintptr_t)bytes) % K3_DIRECT_ALIGN == 0;
    while (direct->fd >= 0 && is_aligned && done < len && done % K3_DIRECT_ALIGN == 0) {
        const ssize_t put =
            pwrite(direct->fd, bytes + done, (size_t)k3_min_u64(STEP_BYTES, len - done),
                   (off_t)(offset + done));
        if (put < 0 && errno == EINTR) {
            continue;
        }
        if (put <= 0) {
            break; /* the ordinary write says what is wrong, or does better */
        }
        done += (uint64_t)put;
    }
    return done == len ? K3_OK
                       : k3_file_write(direct->file, offset + done, bytes + done,
                                       (size_t)(len - done), err);
}
