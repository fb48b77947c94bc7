/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE /* fallocate64, off64_t and the like */
#include "tests/support/failing.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/types.h>
#include <unistd.h>

static atomic_bool is_armed;
static atomic_bool has_hit;
static atomic_ullong calls[K3_FAILING_KINDS];
static enum k3_failing_kind armed_kind;
static enum k3_failing_mode armed_mode;
static uint64_t armed_nth;

static const int reasons[K3_FAILING_KINDS] = {
    [K3_FAILING_ALLOC] = ENOMEM, [K3_FAILING_READ] = EIO,        [K3_FAILING_WRITE] = ENOSPC,
    [K3_FAILING_SYNC] = EIO,     [K3_FAILING_TRUNCATE] = ENOSPC, [K3_FAILING_RENAME] = EIO,
    [K3_FAILING_OPEN] = EMFILE,  [K3_FAILING_LIST] = EIO,        [K3_FAILING_MAP] = ENOMEM,
};

/* Counts a call; true when it is to be disturbed in the armed mode. */
static bool is_hit(enum k3_failing_kind kind)
{
    const uint64_t nth = atomic_fetch_add(&calls[kind], 1) + 1;
    if (!atomic_load(&is_armed) || kind != armed_kind) {
        return false;
    }
    const bool lasts = armed_mode == K3_FAILING_FROM || armed_mode == K3_FAILING_SHORT;
    const bool hit = lasts ? nth >= armed_nth : nth == armed_nth;
    if (hit) {
        atomic_store(&has_hit, true);
    }
    return hit;
}

/* True, with errno, when the call must fail. */
static bool fails(enum k3_failing_kind kind)
{
    if (!is_hit(kind) || armed_mode == K3_FAILING_SHORT) {
        return false;
    }
    errno = armed_mode == K3_FAILING_EINTR ? EINTR : reasons[kind];
    return true;
}

/* The same of a call that moves *len bytes, which a short one halves. */
static bool fails_moving(enum k3_failing_kind kind, size_t *len)
{
    if (!is_hit(kind)) {
        return false;
    }
    if (armed_mode == K3_FAILING_SHORT) {
        *len = *len > 1 ? *len / 2 : *len;
        return false;
    }
    errno = armed_mode == K3_FAILING_EINTR ? EINTR : reasons[kind];
    return true;
}

/* What -Wl,--wrap=NAME makes of each call (NAME becomes __wrap_NAME, __real_NAME is the original).
 * With 64-bit file offsets glibc renames some of them, so both names are wrapped. */
#define WRAP(type, name, parameters)                                                               \
    type __real_##name parameters;                                                                 \
    type __wrap_##name parameters;                                                                 \
    type __wrap_##name parameters

WRAP(void *, malloc, (size_t size))
{
    return fails(K3_FAILING_ALLOC) ? NULL : __real_malloc(size);
}

WRAP(void *, calloc, (size_t count, size_t size))
{
    return fails(K3_FAILING_ALLOC) ? NULL : __real_calloc(count, size);
}

WRAP(void *, realloc, (void *old, size_t size))
{
    return fails(K3_FAILING_ALLOC) ? NULL : __real_realloc(old, size);
}

WRAP(char *, strdup, (const char *text))
{
    return fails(K3_FAILING_ALLOC) ? NULL : __real_strdup(text);
}

#define WRAP_READ(name)                                                                            \
    WRAP(ssize_t, name, (int fd, void *bytes, size_t len, off_t offset))                           \
    {                                                                                              \
        return fails_moving(K3_FAILING_READ, &len) ? -1 : __real_##name(fd, bytes, len, offset);   \
    }
WRAP_READ(pread)
WRAP_READ(pread64)

#define WRAP_WRITE(name)                                                                           \
    WRAP(ssize_t, name, (int fd, const void *bytes, size_t len, off_t offset))                     \
    {                                                                                              \
        return fails_moving(K3_FAILING_WRITE, &len) ? -1 : __real_##name(fd, bytes, len, offset);  \
    }
WRAP_WRITE(pwrite)
WRAP_WRITE(pwrite64)

#define WRAP_FALLOCATE(name)                                                                       \
    WRAP(int, name, (int fd, int mode, off_t offset, off_t len))                                   \
    {                                                                                              \
        return fails(K3_FAILING_WRITE) ? -1 : __real_##name(fd, mode, offset, len);                \
    }
WRAP_FALLOCATE(fallocate)
WRAP_FALLOCATE(fallocate64)

#define WRAP_TRUNCATE(name)                                                                        \
    WRAP(int, name, (int fd, off_t len))                                                           \
    {                                                                                              \
        return fails(K3_FAILING_TRUNCATE) ? -1 : __real_##name(fd, len);                           \
    }
WRAP_TRUNCATE(ftruncate)
WRAP_TRUNCATE(ftruncate64)

#define WRAP_OPEN(name)                                                                            \
    WRAP(int, name, (const char *path, int flags, ...))                                            \
    {                                                                                              \
        mode_t mode = 0;                                                                           \
        if (flags & O_CREAT) {                                                                     \
            va_list args;                                                                          \
            va_start(args, flags);                                                                 \
            mode = va_arg(args, mode_t);                                                           \
            va_end(args);                                                                          \
        }                                                                                          \
        return fails(K3_FAILING_OPEN) ? -1 : __real_##name(path, flags, mode);                     \
    }
WRAP_OPEN(open)
WRAP_OPEN(open64)

#define WRAP_MAP(name)                                                                             \
    WRAP(void *, name, (void *at, size_t len, int protection, int flags, int fd, off_t offset))    \
    {                                                                                              \
        return fails(K3_FAILING_MAP) ? MAP_FAILED                                                  \
                                     : __real_##name(at, len, protection, flags, fd, offset);      \
    }
WRAP_MAP(mmap)
WRAP_MAP(mmap64)

#define WRAP_LIST(name)                                                                            \
    WRAP(struct dirent *, name, (DIR * dir))                                                       \
    {                                                                                              \
        return fails(K3_FAILING_LIST) ? NULL : __real_##name(dir);                                 \
    }
WRAP_LIST(readdir)
WRAP_LIST(readdir64)

WRAP(DIR *, opendir, (const char *path))
{
    return fails(K3_FAILING_OPEN) ? NULL : __real_opendir(path);
}

WRAP(int, fsync, (int fd))
{
    return fails(K3_FAILING_SYNC) ? -1 : __real_fsync(fd);
}

WRAP(int, rename, (const char *from, const char *to))
{
    return fails(K3_FAILING_RENAME) ? -1 : __real_rename(from, to);
}

void k3_failing_arm(enum k3_failing_kind kind, enum k3_failing_mode mode, uint64_t nth)
{
    atomic_store(&is_armed, false);
    for (size_t i = 0; i < K3_FAILING_KINDS; i++) {
        atomic_store(&calls[i], 0);
    }
    atomic_store(&has_hit, false);
    armed_kind = kind;
    armed_mode = mode;
    armed_nth = nth;
    atomic_store(&is_armed, true);
}

bool k3_failing_disarm(void)
{
    atomic_store(&is_armed, false);
    return atomic_load(&has_hit);
}

uint64_t k3_failing_calls(enum k3_failing_kind kind)
{
    return atomic_load(&calls[kind]);
}
