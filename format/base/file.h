/* SPDX-License-Identifier: Apache-2.0 */
#ifndef K3_FORMAT_BASE_FILE_H
#define K3_FORMAT_BASE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "format/base/error.h"

/* Regular files read and written exactly: every call moves all bytes or fails. Short reads and
 * writes, EINTR and the kernel's limit of 2,147,479,552 bytes a call are handled here and nowhere
 * else. Messages quote the path. A zeroed struct with fd < 0 is closed; use K3_FILE_CLOSED. */
struct k3_file {
    int fd;
    char *path;          /* owned, for messages */
    uint64_t file_bytes; /* size when opened    */
};

#define K3_FILE_CLOSED                                                                             \
    (struct k3_file)                                                                               \
    {                                                                                              \
        .fd = -1                                                                                   \
    }

/* Refuses what is not a regular file. Errors: NO_INPUT (absent), IO. */
K3_MUST_CHECK enum k3_code k3_file_open_read(const char *path, struct k3_file *out_file,
                                             struct k3_error *err);

/* Opens for reading and writing; makes the file (0666 & ~umask) where it is absent, keeps its
 * bytes where it is not. Errors: CANT_CREATE. */
K3_MUST_CHECK enum k3_code k3_file_open_write(const char *path, struct k3_file *out_file,
                                              struct k3_error *err);

void k3_file_close(struct k3_file *file);

/* Reading past the end is an error: IO, with the offset and have/need. */
K3_MUST_CHECK enum k3_code k3_file_read(const struct k3_file *file, uint64_t offset,
                                        void *out_bytes, size_t len, struct k3_error *err);

K3_MUST_CHECK enum k3_code k3_file_write(const struct k3_file *file, uint64_t offset,
                                         const void *bytes, size_t len, struct k3_error *err);

K3_MUST_CHECK enum k3_code k3_file_truncate(const struct k3_file *file, uint64_t bytes,
                                            struct k3_error *err);

/* Makes [offset, offset + bytes) read as zeros, as a hole where the file system has holes. */
K3_MUST_CHECK enum k3_code k3_file_zero_range(const struct k3_file *file, uint64_t offset,
                                              uint64_t bytes, struct k3_error *err);

K3_MUST_CHECK enum k3_code k3_file_sync(const struct k3_file *file, struct k3_error *err);

/* Current size. */
K3_MUST_CHECK enum k3_code k3_file_size(const struct k3_file *file, uint64_t *out_bytes,
                                        struct k3_error *err);

/* Bytes of storage in use (holes are not counted). */
K3_MUST_CHECK enum k3_code k3_file_allocated(const struct k3_file *file, uint64_t *out_bytes,
                                             struct k3_error *err);

/* Whole small file into fresh memory, NUL-terminated beyond its length; *out_bytes is the
 * caller's to free. A file above max_bytes is MALFORMED. */
K3_MUST_CHECK enum k3_code k3_file_read_all(const char *path, size_t max_bytes, uint8_t **out_bytes,
                                            size_t *out_len, struct k3_error *err);

/* rename(2) and fsync of the folder: the moment at which a file exists under its name. */
K3_MUST_CHECK enum k3_code k3_file_publish(const char *folder, const char *temporary_path,
                                           const char *final_path, struct k3_error *err);

/* fsync of a folder: makes creations, renames and removals in it durable. */
K3_MUST_CHECK enum k3_code k3_folder_sync(const char *folder, struct k3_error *err);

/* mkdir that accepts an existing folder; a new one is durable. */
K3_MUST_CHECK enum k3_code k3_folder_make(const char *folder, struct k3_error *err);

bool k3_path_exists(const char *path);

/* "folder/name" in fresh memory, NULL when there is none left. The caller frees. */
char *k3_path_join(const char *folder, const char *name);

#endif
