/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE /* fallocate */
#include "format/base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "format/base/ckd.h"

/* One call moves no more than this, well below the kernel's own limit. */
#define IO_CALL_MAX ((size_t)1 << 30)

static enum k3_code adopt(int fd, const char *path, struct k3_file *out_file, struct k3_error *err)
{
    struct stat st;
    if (fstat(fd, &st) != 0) {
        const int reason = errno;
        close(fd);
        return k3_fail_errno(err, K3_ERR_IO, reason, K3_ERROR_NO_OFFSET, "cannot stat '%s'", path);
    }
    if (!S_ISREG(st.st_mode)) {
        close(fd);
        return k3_fail(err, K3_ERR_NO_INPUT, K3_ERROR_NO_OFFSET, "'%s' is not a regular file",
                       path);
    }
    char *copy = strdup(path);
    if (!copy) {
        close(fd);
        return k3_fail_no_memory(err, path);
    }
    *out_file = (struct k3_file){.fd = fd, .path = copy, .file_bytes = (uint64_t)st.st_size};
    return K3_OK;
}

enum k3_code k3_file_open_read(const char *path, struct k3_file *out_file, struct k3_error *err)
{
    /* O_NONBLOCK: opening a FIFO by mistake must fail below, not hang here. */
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) {
        const enum k3_code code = errno == ENOENT || errno == ENOTDIR ? K3_ERR_NO_INPUT : K3_ERR_IO;
        return k3_fail_errno(err, code, errno, K3_ERROR_NO_OFFSET, "cannot open '%s'", path);
    }
    return adopt(fd, path, out_file, err);
}

enum k3_code k3_file_open_write(const char *path, struct k3_file *out_file, struct k3_error *err)
{
    const int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0666);
    if (fd < 0) {
        return k3_fail_errno(err, K3_ERR_CANT_CREATE, errno, K3_ERROR_NO_OFFSET,
                             "cannot create '%s'", path);
    }
    const enum k3_code code = adopt(fd, path, out_file, err);
    return code == K3_ERR_NO_INPUT ? K3_ERR_CANT_CREATE : code; /* an output that is no file */
}

void k3_file_close(struct k3_file *file)
{
    if (file->fd >= 0) {
        close(file->fd);
    }
    free(file->path);
    *file = K3_FILE_CLOSED;
}

enum k3_code k3_file_read(const struct k3_file *file, uint64_t offset, void *out_bytes, size_t len,
                          struct k3_error *err)
{
    uint8_t *p = out_bytes;
    size_t done = 0;
    while (done < len) {
        const size_t want = len - done < IO_CALL_MAX ? len - done : IO_CALL_MAX;
        const ssize_t got = pread(file->fd, p + done, want, (off_t)(offset + done));
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            return k3_fail_errno(err, K3_ERR_IO, errno, offset + done,
                                 "cannot read '%s' at byte %" PRIu64, file->path, offset + done);
        }
        if (got == 0) {
            return k3_fail(err, K3_ERR_IO, offset + done,
                           "'%s' ends at byte %" PRIu64 ", needed up to byte %" PRIu64
                           " (was it truncated?)",
                           file->path, offset + done, offset + len);
        }
        done += (size_t)got;
    }
    return K3_OK;
}

static enum k3_code fail_write(struct k3_error *err, const struct k3_file *file, uint64_t offset)
{
    const char *hint = errno == ENOSPC || errno == EDQUOT ? " (make space and run again)" : "";
    return k3_fail_errno(err, K3_ERR_IO, errno, offset, "cannot write '%s' at byte %" PRIu64 "%s",
                         file->path, offset, hint);
}

enum k3_code k3_file_write(const struct k3_file *file, uint64_t offset, const void *bytes,
                           size_t len, struct k3_error *err)
{
    const uint8_t *p = bytes;
    size_t done = 0;
    while (done < len) {
        const size_t want = len - done < IO_CALL_MAX ? len - done : IO_CALL_MAX;
        const ssize_t put = pwrite(file->fd, p + done, want, (off_t)(offset + done));
        if (put < 0 && errno == EINTR) {
            continue;
        }
        if (put <= 0) {
            return fail_write(err, file, offset + done);
        }
        done += (size_t)put;
    }
    return K3_OK;
}

enum k3_code k3_file_truncate(const struct k3_file *file, uint64_t bytes, struct k3_error *err)
{
    while (ftruncate(file->fd, (off_t)bytes) != 0) {
        if (errno != EINTR) {
            return k3_fail_errno(err, K3_ERR_IO, errno, bytes,
                                 "cannot size '%s' to %" PRIu64 " bytes", file->path, bytes);
        }
    }
    return K3_OK;
}

enum k3_code k3_file_zero_range(const struct k3_file *file, uint64_t offset, uint64_t bytes,
                                struct k3_error *err)
{
    if (bytes == 0) {
        return K3_OK;
    }
#ifdef FALLOC_FL_PUNCH_HOLE
    if (fallocate(file->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)offset,
                  (off_t)bytes) == 0) {
        return K3_OK;
    }
#endif
    static const uint8_t zeros[65536];
    for (uint64_t done = 0; done < bytes;) {
        const size_t step = (size_t)k3_min_u64(sizeof zeros, bytes - done);
        const enum k3_code code = k3_file_write(file, offset + done, zeros, step, err);
        if (code != K3_OK) {
            return code;
        }
        done += step;
    }
    return K3_OK;
}

enum k3_code k3_file_sync(const struct k3_file *file, struct k3_error *err)
{
    while (fsync(file->fd) != 0) {
        if (errno != EINTR) {
            return k3_fail_errno(err, K3_ERR_IO, errno, K3_ERROR_NO_OFFSET, "cannot sync '%s'",
                                 file->path);
        }
    }
    return K3_OK;
}

static enum k3_code stat_file(const struct k3_file *file, struct stat *out_st, struct k3_error *err)
{
    if (fstat(file->fd, out_st) != 0) {
        return k3_fail_errno(err, K3_ERR_IO, errno, K3_ERROR_NO_OFFSET, "cannot stat '%s'",
                             file->path);
    }
    return K3_OK;
}

enum k3_code k3_file_size(const struct k3_file *file, uint64_t *out_bytes, struct k3_error *err)
{
    struct stat st;
    const enum k3_code code = stat_file(file, &st, err);
    if (code == K3_OK) {
        *out_bytes = (uint64_t)st.st_size;
    }
    return code;
}

enum k3_code k3_file_allocated(const struct k3_file *file, uint64_t *out_bytes,
                               struct k3_error *err)
{
    struct stat st;
    const enum k3_code code = stat_file(file, &st, err);
    if (code == K3_OK) {
        *out_bytes = (uint64_t)st.st_blocks * 512U;
    }
    return code;
}

enum k3_code k3_file_read_all(const char *path, size_t max_bytes, uint8_t **out_bytes,
                              size_t *out_len, struct k3_error *err)
{
    struct k3_file file = K3_FILE_CLOSED;
    enum k3_code code = k3_file_open_read(path, &file, err);
    if (code != K3_OK) {
        return code;
    }
    uint8_t *bytes = NULL;
    const uint64_t len = file.file_bytes;
    if (len > max_bytes) {
        code = k3_fail(err, K3_ERR_MALFORMED, 0,
                       "'%s' has %" PRIu64 " bytes, more than the %zu"
                       " that such a file may have",
                       path, len, max_bytes);
        goto out;
    }
    bytes = malloc((size_t)len + 1);
    if (!bytes) {
        code = k3_fail_no_memory(err, path);
        goto out;
    }
    code = k3_file_read(&file, 0, bytes, (size_t)len, err);
    if (code != K3_OK) {
        goto out;
    }
    bytes[len] = 0;
    *out_bytes = bytes;
    *out_len = (size_t)len;
    bytes = NULL;
out:
    free(bytes);
    k3_file_close(&file);
    return code;
}

enum k3_code k3_folder_sync(const char *folder, struct k3_error *err)
{
    const int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) {
        return k3_fail_errno(err, K3_ERR_IO, errno, K3_ERROR_NO_OFFSET, "cannot open '%s'", folder);
    }
    int failed = 0;
    do {
        failed = fsync(fd) != 0;
    } while (failed && errno == EINTR);
    const int reason = errno;
    close(fd);
    /* EINVAL: a file system that cannot sync folders; nothing more can be done there. */
    if (failed && reason != EINVAL) {
        return k3_fail_errno(err, K3_ERR_IO, reason, K3_ERROR_NO_OFFSET, "cannot sync '%s'",
                             folder);
    }
    return K3_OK;
}

enum k3_code k3_file_publish(const char *folder, const char *temporary_path, const char *final_path,
                             struct k3_error *err)
{
    if (rename(temporary_path, final_path) != 0) {
        return k3_fail_errno(err, K3_ERR_CANT_CREATE, errno, K3_ERROR_NO_OFFSET,
                             "cannot rename '%s' to '%s'", temporary_path, final_path);
    }
    return k3_folder_sync(folder, err);
}

/* The folder in which a path's last name stands. */
static enum k3_code sync_parent(const char *path, struct k3_error *err)
{
    char *copy = strdup(path);
    if (!copy) {
        return k3_fail_no_memory(err, path);
    }
    const enum k3_code code = k3_folder_sync(dirname(copy), err);
    free(copy);
    return code;
}

enum k3_code k3_folder_make(const char *folder, struct k3_error *err)
{
    if (mkdir(folder, 0777) == 0) {
        return sync_parent(folder, err);
    }
    const int reason = errno;
    struct stat st;
    if (reason == EEXIST && stat(folder, &st) == 0 && S_ISDIR(st.st_mode)) {
        return K3_OK;
    }
    return k3_fail_errno(err, K3_ERR_CANT_CREATE, reason, K3_ERROR_NO_OFFSET,
                         "cannot create folder '%s'", folder);
}

bool k3_path_exists(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0;
}

char *k3_path_join(const char *folder, const char *name)
{
    const size_t folder_len = strlen(folder);
    const size_t total = folder_len + strlen(name) + 2;
    char *path = malloc(total);
    if (path) {
        const bool has_slash = folder_len > 0 && folder[folder_len - 1] == '/';
        snprintf(path, total, "%s%s%s", folder, has_slash ? "" : "/", name);
    }
    return path;
}
