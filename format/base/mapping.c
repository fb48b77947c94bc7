/* SPDX-License-Identifier: Apache-2.0 */
#include "format/base/mapping.h"

#include <errno.h>
#include <stddef.h>
#include <sys/mman.h>

enum k3_code k3_mapping_map(const struct k3_file *file, struct k3_mapping *out_mapping,
                            struct k3_error *err)
{
    if (file->file_bytes == 0 || file->file_bytes > SIZE_MAX / 2) {
        return k3_fail(err, K3_ERR_MALFORMED, 0, "'%s' is empty or too large to map", file->path);
    }
    void *base = mmap(NULL, (size_t)file->file_bytes, PROT_READ, MAP_SHARED, file->fd, 0);
    if (base == MAP_FAILED) {
        return k3_fail_errno(err, K3_ERR_IO, errno, 0, "cannot map '%s'", file->path);
    }
    *out_mapping = (struct k3_mapping){.bytes = base, .len = file->file_bytes};
    return K3_OK;
}

void k3_mapping_unmap(struct k3_mapping *mapping)
{
    if (mapping->bytes) {
        union {
            const uint8_t *in;
            void *out;
        } base = {.in = mapping->bytes};
        munmap(base.out, (size_t)mapping->len);
    }
    *mapping = (struct k3_mapping){0};
}
