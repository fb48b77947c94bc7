/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE /* O_DIRECT, readahead, mlock2 */
#include "runtime/residency/backing.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "format/base/assert.h"
#include "format/base/ckd.h"

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#endif
#ifndef MLOCK_ONFAULT
#define MLOCK_ONFAULT 1
#endif

#define PAGE        UINT64_C(4096)
#define FOLIO       (UINT64_C(2) << 20)
#define DIRECT_CALL (UINT64_C(4) << 20)
#define PROBE_BYTES ((size_t)256 << 10)

const char *k3_io_name(enum k3_io_kind kind)
{
    switch (kind) {
    case K3_IO_AUTO:
        return "auto";
    case K3_IO_MMAP:
        return "mmap";
    case K3_IO_READ:
        return "read";
    case K3_IO_DIRECT:
        return "direct";
    }
    k3_assert_failed("unknown kind of input", __FILE__, __LINE__);
}

static void count_hint(struct k3_backing *backing, int result)
{
    if (result != 0) {
        atomic_fetch_add_explicit(&backing->failed_hints, 1, memory_order_relaxed);
    }
}

static size_t queue_value(dev_t device, const char *name)
{
    /* A partition has no queue of its own; its disk has. */
    static const char *const places[] = {"queue", "../queue"};
    unsigned long kib = 0;
    for (size_t i = 0; i < 2; i++) {
        char path[160];
        snprintf(path, sizeof path, "/sys/dev/block/%u:%u/%s/%s", major(device), minor(device),
                 places[i], name);
        FILE *file = fopen(path, "re");
        if (file) {
            const bool is_number = fscanf(file, "%lu", &kib) == 1;
            fclose(file);
            return is_number ? kib : 0;
        }
    }
    return 0;
}

/* The kernel reads no more than this for one call and says success all the same. */
static size_t hint_bytes_of(const struct k3_file *file)
{
    struct stat st;
    size_t kib = 0;
    if (fstat(file->fd, &st) == 0) {
        const size_t ahead = queue_value(st.st_dev, "read_ahead_kb");
        const size_t sectors = queue_value(st.st_dev, "max_sectors_kb");
        kib = ahead > sectors ? ahead : sectors;
    }
    return (kib > 0 ? kib : 128) * 1024;
}

static enum k3_code map_file(struct k3_backing *b, enum k3_access access, struct k3_error *err)
{
    b->reserved = mmap(NULL, (size_t)b->len, PROT_READ, MAP_SHARED, b->file->fd, 0);
    if (b->reserved == MAP_FAILED) {
        b->reserved = NULL;
        return k3_fail_errno(err, K3_ERR_IO, errno, 0, "cannot map '%s'", b->file->path);
    }
    b->reserved_bytes = (size_t)b->len;
    b->base = b->reserved;
    if (b->has_folios) {
        count_hint(b, madvise(b->base, (size_t)b->len, MADV_HUGEPAGE));
    }
    /* Exactly what is asked for. Never without HUGEPAGE where populating is to read: every page
     * would be a read of its own; parts without folios are read by readahead. */
    if (access == K3_ACCESS_RANDOM || !b->has_folios) {
        count_hint(b, madvise(b->base, (size_t)b->len, MADV_RANDOM));
    }
    b->hint_bytes = hint_bytes_of(b->file);
    return K3_OK;
}

/* Addresses without memory: the kernel gives pages only to what is filled. */
static enum k3_code reserve_memory(struct k3_backing *b, struct k3_error *err)
{
    b->reserved_bytes = (size_t)(k3_round_up(b->len, FOLIO) + FOLIO);
    b->reserved = mmap(NULL, b->reserved_bytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (b->reserved == MAP_FAILED) {
        b->reserved = NULL;
        return k3_fail_errno(err, K3_ERR_NO_MEMORY, errno, K3_ERROR_NO_OFFSET,
                             "no address space for '%s' (%" PRIu64 " bytes); try --io mmap",
                             b->file->path, b->len);
    }
    const uintptr_t at = (uintptr_t)b->reserved;
    b->base = (uint8_t *)b->reserved + (k3_round_up(at, FOLIO) - at);
    if (b->has_folios) {
        count_hint(b, madvise(b->base, (size_t)b->len, MADV_HUGEPAGE));
    }
    /* No readahead: it would read 10 % more, for nobody. */
    count_hint(b, posix_fadvise(b->file->fd, 0, 0, POSIX_FADV_RANDOM));
    return K3_OK;
}

/* Opens the same file past the page cache; -1 where its file system cannot. */
static int open_direct(const struct k3_file *file)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", file->fd);
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_DIRECT);
    void *page = NULL;
    if (fd >= 0 && posix_memalign(&page, (size_t)PAGE, (size_t)PAGE) == 0) {
        const ssize_t got = pread(fd, page, (size_t)PAGE, 0);
        free(page);
        if (got >= 0) {
            return fd;
        }
    }
    if (fd >= 0) {
        close(fd);
    }
    return -1;
}

enum k3_code k3_backing_open(const struct k3_file *file, enum k3_io_kind kind,
                             enum k3_access access, uint64_t part_align,
                             struct k3_backing *out_backing, struct k3_error *err)
{
    k3_assert(kind != K3_IO_AUTO);
    struct k3_backing b = {.file = file,
                           .kind = kind,
                           .len = file->file_bytes,
                           .direct_fd = -1,
                           .has_folios = part_align % FOLIO == 0};
    if (b.len == 0 || b.len > SIZE_MAX / 4) {
        return k3_fail(err, K3_ERR_MALFORMED, 0, "'%s' is empty or too large", file->path);
    }
    if (kind == K3_IO_DIRECT) {
        b.direct_fd = open_direct(file);
        b.kind = b.direct_fd >= 0 ? K3_IO_DIRECT : K3_IO_READ;
    }
    const enum k3_code code =
        kind == K3_IO_MMAP ? map_file(&b, access, err) : reserve_memory(&b, err);
    if (code != K3_OK) {
        if (b.direct_fd >= 0) {
            close(b.direct_fd);
        }
        return code;
    }
    /* The budget starts from zero: what others left in the cache is not ours to count on. */
    count_hint(&b, posix_fadvise(file->fd, 0, 0, POSIX_FADV_DONTNEED));
    *out_backing = b;
    return K3_OK;
}

void k3_backing_close(struct k3_backing *backing)
{
    if (backing->reserved) {
        munmap(backing->reserved, backing->reserved_bytes);
        if (backing->direct_fd >= 0) {
            close(backing->direct_fd);
        }
    }
    *backing = (struct k3_backing){.direct_fd = -1};
}

static enum k3_code fail_read(const struct k3_backing *b, uint64_t at, int reason,
                              struct k3_error *err)
{
    return k3_fail_errno(err, K3_ERR_IO, reason, at,
                         "cannot read '%s' at byte %" PRIu64
                         "; check the disk, then the pack with k3pack --verify",
                         b->file->path, at);
}

static enum k3_code fail_short(const struct k3_backing *b, uint64_t at, struct k3_error *err)
{
    struct stat st;
    const uint64_t now = fstat(b->file->fd, &st) == 0 ? (uint64_t)st.st_size : at;
    return k3_fail(err, K3_ERR_IO, at,
                   "cannot read '%s' at byte %" PRIu64 ": the file shrank to %" PRIu64
                   " bytes while it was in use",
                   b->file->path, at, now);
}

/* pread of everything, `call` bytes at a time. */
static enum k3_code read_all(const struct k3_backing *b, int fd, uint64_t offset, uint8_t *out,
                             uint64_t bytes, uint64_t call, struct k3_error *err)
{
    for (uint64_t done = 0; done < bytes;) {
        const size_t want = (size_t)k3_min_u64(bytes - done, call);
        const ssize_t got = pread(fd, out + done, want, (off_t)(offset + done));
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            return fail_read(b, offset + done, errno, err);
        }
        if (got == 0) {
            return fail_short(b, offset + done, err);
        }
        done += (uint64_t)got;
    }
    return K3_OK;
}

/* Reads the range into a small buffer and forgets it: fills the page cache, finds the byte that
 * cannot be read. */
static enum k3_code read_through(const struct k3_backing *b, uint64_t offset, uint64_t bytes,
                                 size_t call, struct k3_error *err)
{
    uint8_t *buffer = malloc(call);
    if (!buffer) {
        return k3_fail_no_memory(err, "reading");
    }
    enum k3_code code = K3_OK;
    for (uint64_t done = 0; code == K3_OK && done < bytes; done += call) {
        const uint64_t step = k3_min_u64(call, bytes - done);
        code = read_all(b, b->file->fd, offset + done, buffer, step, step, err);
    }
    free(buffer);
    return code;
}

/* Linux before 5.14: reads, then maps by touching. */
static enum k3_code touch(const struct k3_backing *b, uint64_t offset, uint64_t bytes,
                          struct k3_error *err)
{
    const enum k3_code code = read_through(b, offset, bytes, PROBE_BYTES, err);
    const volatile uint8_t *p = b->base + offset;
    for (uint64_t at = 0; code == K3_OK && at < bytes; at += PAGE) {
        (void)p[at];
    }
    return code;
}

static int populate_errno(const struct k3_backing *b, uint64_t offset, uint64_t bytes)
{
    int reason = 0;
    do {
        reason = madvise(b->base + offset, (size_t)bytes, MADV_POPULATE_READ) == 0 ? 0 : errno;
    } while (reason == EINTR || reason == EAGAIN);
    return reason;
}

static enum k3_code populate(struct k3_backing *b, uint64_t offset, uint64_t bytes,
                             struct k3_error *err)
{
    if (bytes == 0) {
        return K3_OK;
    }
    for (int attempt = 0; !atomic_load_explicit(&b->cannot_populate, memory_order_relaxed);
         attempt++) {
        const int reason = populate_errno(b, offset, bytes);
        if (reason == 0) {
            return K3_OK;
        }
        if (reason == EINVAL) {
            atomic_store(&b->cannot_populate, true);
            break;
        }
        /* EFAULT says neither which byte nor why; reading does. When all of it can be read, the
         * trouble has passed: once more. */
        const enum k3_code code = read_through(b, offset, bytes, (size_t)PAGE, err);
        if (code != K3_OK) {
            return code;
        }
        if (attempt > 0) {
            return fail_read(b, offset, reason, err);
        }
    }
    return touch(b, offset, bytes, err);
}

/* A part that does not end on a folio would drag in the rest of its last one: that end comes by
 * readahead, in small pages, and is only mapped by populating. */
static enum k3_code fetch_mapped(struct k3_backing *b, uint64_t offset, uint64_t bytes,
                                 struct k3_error *err)
{
    const uint64_t whole = b->has_folios ? bytes / FOLIO * FOLIO : 0, tail = bytes - whole;
    for (uint64_t done = 0; done < tail; done += b->hint_bytes) {
        const uint64_t step = k3_min_u64(b->hint_bytes, tail - done);
        count_hint(b, readahead(b->file->fd, (off_t)(offset + whole + done), (size_t)step) != 0);
    }
    const enum k3_code code = populate(b, offset, whole, err);
    return code == K3_OK ? populate(b, offset + whole, tail, err) : code;
}

enum k3_code k3_backing_fetch(struct k3_backing *b, uint64_t offset, uint64_t bytes,
                              struct k3_error *err)
{
    k3_assert(offset % PAGE == 0 && bytes % PAGE == 0 && k3_range_fits(offset, bytes, b->len));
    if (b->kind == K3_IO_MMAP) {
        return fetch_mapped(b, offset, bytes, err);
    }
    if (b->kind == K3_IO_DIRECT) {
        return read_all(b, b->direct_fd, offset, b->base + offset, bytes, DIRECT_CALL, err);
    }
    const enum k3_code code =
        read_all(b, b->file->fd, offset, b->base + offset, bytes, DIRECT_CALL, err);
    count_hint(b, posix_fadvise(b->file->fd, (off_t)offset, (off_t)bytes, POSIX_FADV_DONTNEED));
    return code;
}

void k3_backing_drop(struct k3_backing *b, uint64_t offset, uint64_t bytes)
{
    /* Half a folio cannot be dropped; what follows a part up to the next 2 MiB is its gap. */
    const uint64_t end =
        b->has_folios ? k3_min_u64(k3_round_up(offset + bytes, FOLIO), k3_round_up(b->len, PAGE))
                      : offset + bytes;
    const size_t len = (size_t)(end - offset);
    count_hint(b, madvise(b->base + offset, len, MADV_DONTNEED));
    if (b->kind == K3_IO_MMAP) {
        /* After unmapping: a page that is mapped stays cached. */
        count_hint(b, posix_fadvise(b->file->fd, (off_t)offset, (off_t)len, POSIX_FADV_DONTNEED));
    }
}

bool k3_backing_lock(struct k3_backing *b, uint64_t offset, uint64_t bytes)
{
    return mlock2(b->base + offset, (size_t)bytes, MLOCK_ONFAULT) == 0;
}
