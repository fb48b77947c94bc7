/* SPDX-License-Identifier: Apache-2.0 */
#include "packer/preflight.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>

#include "format/base/ckd.h"

/* File systems whose files have no holes (statfs(2), f_type). */
#define TYPE_MSDOS 0x4d44
#define TYPE_EXFAT 0x2011bab0

#define FILES_NEEDED 4U

/* Storage of the shards; fewer bytes than their size means holes. Half is the line: compressing
 * file systems save something on any weights, holes of a rehearsal nearly everything. */
static uint64_t allocated_bytes(const struct k3_shard_set *set)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < set->shard_count; i++) {
        struct stat st;
        if (stat(set->shards[i].path, &st) == 0) {
            bytes += (uint64_t)st.st_blocks * 512U;
        }
    }
    return bytes;
}

static bool folder_has_holes(const char *folder)
{
    struct statfs fs;
    return statfs(folder, &fs) != 0 ||
           ((unsigned long)fs.f_type != TYPE_MSDOS && (unsigned long)fs.f_type != TYPE_EXFAT);
}

static enum k3_code check_size_limit(const char *folder, const struct k3_plan *plan,
                                     struct k3_error *err)
{
    struct rlimit limit;
    const uint64_t largest = k3_max_u64(plan->trunk_bytes, plan->experts_bytes);
    if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
        (uint64_t)limit.rlim_cur < largest) {
        return k3_fail(err, K3_ERR_IO, K3_ERROR_NO_OFFSET,
                       "'%s': files may have %" PRIu64 " bytes (ulimit -f), this pack needs one of "
                       "%" PRIu64,
                       folder, (uint64_t)limit.rlim_cur, largest);
    }
    return K3_OK;
}

static enum k3_code check_space(const char *folder, const struct k3_space *space,
                                struct k3_error *err)
{
    if (space->free_bytes >= space->needed_bytes) {
        return K3_OK;
    }
    return k3_fail(
        err, K3_ERR_IO, K3_ERROR_NO_OFFSET,
        "'%s' has %" PRIu64 " bytes free, this pack needs %" PRIu64 " (%" PRIu64
        " more%s); make space and run again",
        folder, space->free_bytes, space->needed_bytes, space->needed_bytes - space->free_bytes,
        space->has_holes ? "" : "; this file system has no holes, one that has needs less");
}

enum k3_code k3_preflight(const char *folder, const struct k3_plan *plan,
                          const struct k3_shard_set *set, uint64_t held_bytes,
                          const struct k3_observer *observer, struct k3_space *out_space,
                          struct k3_error *err)
{
    struct statvfs fs;
    if (statvfs(folder, &fs) != 0) {
        return k3_fail_errno(err, K3_ERR_IO, errno, K3_ERROR_NO_OFFSET,
                             "cannot ask how much space '%s' has", folder);
    }
    struct k3_space space = {.free_bytes = (uint64_t)fs.f_bavail * fs.f_frsize,
                             .has_holes = folder_has_holes(folder)};
    const uint64_t allocated = allocated_bytes(set);
    space.source_has_holes = space.has_holes && allocated < plan->read_bytes / 2;
    const uint64_t total = space.source_has_holes ? allocated
                           : space.has_holes      ? plan->space_bytes
                                                  : plan->apparent_bytes;
    space.needed_bytes = total > held_bytes ? total - held_bytes : 0;
    if (fs.f_files > 0 && fs.f_favail < FILES_NEEDED && held_bytes == 0) {
        return k3_fail(err, K3_ERR_IO, K3_ERROR_NO_OFFSET,
                       "'%s' has room for %" PRIu64 " more files, this pack needs %u", folder,
                       (uint64_t)fs.f_favail, FILES_NEEDED);
    }
    if (space.source_has_holes) {
        k3_note(observer, "the shards are sparse: how much space the pack takes depends on where "
                          "their holes are, at least what they take themselves");
    }
    enum k3_code code = check_size_limit(folder, plan, err);
    if (code == K3_OK) {
        code = check_space(folder, &space, err);
    }
    if (code == K3_OK) {
        *out_space = space;
    }
    return code;
}
