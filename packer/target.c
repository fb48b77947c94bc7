/* SPDX-License-Identifier: Apache-2.0 */
#include "packer/target.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "format/pack/pack_seal.h"
#include "format/pack/superblock.h"

static enum k3_code path_in(const char *folder, const char *name, char **out_path,
                            struct k3_error *err)
{
    *out_path = k3_path_join(folder, name);
    return *out_path ? K3_OK : k3_fail_no_memory(err, folder);
}

static enum k3_code exists_in(const char *folder, const char *name, bool *out_exists,
                              struct k3_error *err)
{
    char *path = NULL;
    const enum k3_code code = path_in(folder, name, &path, err);
    *out_exists = code == K3_OK && k3_path_exists(path);
    free(path);
    return code;
}

static enum k3_code remove_in(const char *folder, const char *name, struct k3_error *err)
{
    char *path = NULL;
    enum k3_code code = path_in(folder, name, &path, err);
    if (code == K3_OK && unlink(path) != 0 && errno != ENOENT) {
        code = k3_fail_errno(err, K3_ERR_CANT_CREATE, errno, K3_ERROR_NO_OFFSET,
                             "cannot remove '%s'", path);
    }
    free(path);
    return code;
}

/* The lock is only worth something on the file that has the name: its holder may have finished and
 * removed it between our open and our lock. */
static bool still_has_name(const struct k3_file *file)
{
    struct stat ours, named;
    return fstat(file->fd, &ours) == 0 && stat(file->path, &named) == 0 &&
           ours.st_dev == named.st_dev && ours.st_ino == named.st_ino;
}

static enum k3_code lock_journal(struct k3_target *target, struct k3_error *err)
{
    char *path = NULL;
    enum k3_code code = path_in(target->folder, K3_JOURNAL_NAME, &path, err);
    if (code == K3_OK) {
        code = k3_file_open_write(path, &target->journal, err);
    }
    free(path);
    if (code != K3_OK) {
        return code;
    }
    if (flock(target->journal.fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
        return k3_fail(err, K3_ERR_BUSY, K3_ERROR_NO_OFFSET, "another k3pack is writing to '%s'",
                       target->folder);
    } /* else: a file system without locks; nothing more can be done there */
    if (!still_has_name(&target->journal)) {
        return k3_fail(err, K3_ERR_BUSY, K3_ERROR_NO_OFFSET,
                       "another k3pack has just finished in '%s'; look there", target->folder);
    }
    return k3_file_size(&target->journal, &target->journal.file_bytes, err);
}

/* A crash between the renames of the seal leaves a data file with its final name and no index. */
static enum k3_code take_back(struct k3_target *target, enum k3_file_kind kind, bool had_journal,
                              struct k3_error *err)
{
    bool has_final = false;
    enum k3_code code = exists_in(target->folder, k3_file_kind_name(kind), &has_final, err);
    if (code != K3_OK || !has_final) {
        return code;
    }
    char *partial = k3_partial_path(target->folder, kind);
    char *final = k3_path_join(target->folder, k3_file_kind_name(kind));
    if (!partial || !final) {
        code = k3_fail_no_memory(err, target->folder);
    } else if (!had_journal || k3_path_exists(partial)) {
        code = k3_fail(err, K3_ERR_CANT_CREATE, K3_ERROR_NO_OFFSET,
                       "'%s' is there without an index and without a journal of ours: the rest of "
                       "another pack? move it away or remove it first",
                       final);
    } else {
        code = k3_file_publish(target->folder, final, partial, err);
    }
    free(partial);
    free(final);
    return code;
}

enum k3_code k3_target_check_apart(const char *folder, const char *checkpoint, struct k3_error *err)
{
    struct stat a, b;
    if (stat(folder, &a) == 0 && stat(checkpoint, &b) == 0 && a.st_dev == b.st_dev &&
        a.st_ino == b.st_ino) {
        return k3_fail(err, K3_ERR_USAGE, K3_ERROR_NO_OFFSET,
                       "the pack cannot go into the checkpoint's own folder '%s'; name another one",
                       folder);
    }
    return K3_OK;
}

static enum k3_code open_unfinished(struct k3_target *target, struct k3_error *err)
{
    enum k3_code code = lock_journal(target, err);
    if (code == K3_OK) {
        code = exists_in(target->folder, K3_INDEX_NAME, &target->has_pack, err);
    }
    /* An empty journal explains nothing: it is ours, made just now, or from a run that wrote none.
     */
    const bool had_journal = code == K3_OK && target->journal.file_bytes > 0;
    if (code == K3_OK && target->has_pack) {
        if (!had_journal) {
            k3_target_forget(target); /* sealed by another while we waited for the lock */
        }
        return K3_OK;
    }
    if (code == K3_OK) {
        code = take_back(target, K3_FILE_TRUNK, had_journal, err);
    }
    if (code == K3_OK) {
        code = take_back(target, K3_FILE_EXPERTS, had_journal, err);
    }
    if (code != K3_OK && code != K3_ERR_BUSY && !had_journal) {
        k3_target_forget(target);
    }
    return code;
}

enum k3_code k3_target_open(const char *folder, struct k3_target *out_target, struct k3_error *err)
{
    struct k3_target target = {
        .journal = K3_FILE_CLOSED, .trunk = K3_FILE_CLOSED, .experts = K3_FILE_CLOSED};
    target.folder = strdup(folder);
    if (!target.folder) {
        return k3_fail_no_memory(err, folder);
    }
    enum k3_code code = k3_folder_make(folder, err);
    if (code == K3_OK) {
        code = exists_in(folder, K3_INDEX_NAME, &target.has_pack, err);
    }
    if (code == K3_OK && !target.has_pack) {
        code = open_unfinished(&target, err);
    }
    if (code != K3_OK) {
        k3_target_close(&target);
        return code;
    }
    *out_target = target;
    return K3_OK;
}

void k3_target_close(struct k3_target *target)
{
    if (target->folder) {
        k3_file_close(&target->trunk);
        k3_file_close(&target->experts);
        k3_file_close(&target->journal);
    }
    free(target->folder);
    target->folder = NULL;
}

static enum k3_code open_partial(const char *folder, enum k3_file_kind kind, bool restart,
                                 uint64_t bytes, struct k3_file *out_file, struct k3_error *err)
{
    char *path = k3_partial_path(folder, kind);
    enum k3_code code =
        path ? k3_file_open_write(path, out_file, err) : k3_fail_no_memory(err, folder);
    free(path);
    if (code == K3_OK && restart) {
        code = k3_file_truncate(out_file, 0, err);
    }
    if (code == K3_OK) {
        code = k3_file_truncate(out_file, bytes, err);
    }
    if (code == K3_ERR_IO && err && err->os_errno == EFBIG) {
        return k3_error_context(err, code, "files of this size are not allowed there");
    }
    return code;
}

enum k3_code k3_target_open_data(struct k3_target *target, bool restart, uint64_t trunk_bytes,
                                 uint64_t experts_bytes, struct k3_error *err)
{
    enum k3_code code =
        open_partial(target->folder, K3_FILE_TRUNK, restart, trunk_bytes, &target->trunk, err);
    if (code == K3_OK) {
        code = open_partial(target->folder, K3_FILE_EXPERTS, restart, experts_bytes,
                            &target->experts, err);
    }
    return code == K3_OK ? k3_folder_sync(target->folder, err) : code;
}

enum k3_code k3_target_remove_journal(struct k3_target *target, struct k3_error *err)
{
    enum k3_code code = remove_in(target->folder, K3_JOURNAL_NAME, err);
    if (code == K3_OK) {
        code = k3_folder_sync(target->folder, err);
    }
    return code;
}

void k3_target_forget(struct k3_target *target)
{
    if (target->journal.fd >= 0 && target->journal.file_bytes == 0) {
        (void)unlink(target->journal.path);
    }
}

uint64_t k3_target_held_bytes(const struct k3_target *target)
{
    static const enum k3_file_kind kinds[] = {K3_FILE_TRUNK, K3_FILE_EXPERTS};
    uint64_t held = 0;
    for (unsigned i = 0; i < 2; i++) {
        char *path = k3_partial_path(target->folder, kinds[i]);
        struct stat st;
        if (path && stat(path, &st) == 0) {
            held += (uint64_t)st.st_blocks * 512U;
        }
        free(path);
    }
    return held;
}
