/* SPDX-License-Identifier: Apache-2.0 */
#include "format/safetensors/checkpoint_folder.h"

#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "format/base/file.h"

#define SHARD_SUFFIX ".safetensors"
#define HUB_FOLDER   ".cache/huggingface/download"
#define ARIA2_SUFFIX ".aria2"
#define HUB_SUFFIX   ".incomplete"

static const char *const leftover_suffixes[] = {
    ARIA2_SUFFIX, HUB_SUFFIX, ".part", ".partial", ".crdownload", ".download", ".tmp", ".!ut",
};

static bool ends_with(const char *name, const char *suffix)
{
    const size_t len = strlen(name);
    const size_t suffix_len = strlen(suffix);
    return len >= suffix_len && strcmp(name + len - suffix_len, suffix) == 0;
}

static bool is_leftover(const char *name)
{
    if (!strstr(name, SHARD_SUFFIX ".")) {
        return false;
    }
    for (size_t i = 0; i < sizeof leftover_suffixes / sizeof leftover_suffixes[0]; i++) {
        if (ends_with(name, leftover_suffixes[i])) {
            return true;
        }
    }
    return false;
}

static enum k3_code append(char ***names, size_t *count, const char *name, struct k3_error *err)
{
    if (*count >= K3_SHARDS_MAX) {
        return k3_fail(err, K3_ERR_MALFORMED, K3_ERROR_NO_OFFSET,
                       "more than %u safetensors files in one folder", K3_SHARDS_MAX);
    }
    /* Powers of two: full exactly when the count is one. */
    if ((*count & (*count - 1)) == 0) {
        const size_t room = *count ? 2 * *count : 1;
        char **larger = realloc(*names, room * sizeof *larger);
        if (!larger) {
            return k3_fail_no_memory(err, "file names");
        }
        *names = larger;
    }
    char *copy = strdup(name);
    if (!copy) {
        return k3_fail_no_memory(err, "file names");
    }
    (*names)[(*count)++] = copy;
    return K3_OK;
}

static enum k3_code sort_in(struct k3_checkpoint_folder *folder, const char *name,
                            struct k3_error *err)
{
    if (name[0] == '.') {
        return K3_OK;
    }
    if (ends_with(name, SHARD_SUFFIX)) {
        return append(&folder->shard_names, &folder->shard_count, name, err);
    }
    if (is_leftover(name)) {
        return append(&folder->leftover_names, &folder->leftover_count, name, err);
    }
    return K3_OK;
}

static enum k3_code read_names(DIR *dir, const char *path, struct k3_checkpoint_folder *folder,
                               struct k3_error *err)
{
    for (;;) {
        errno = 0;
        const struct dirent *entry = readdir(dir);
        if (!entry) {
            return errno == 0 ? K3_OK
                              : k3_fail_errno(err, K3_ERR_IO, errno, K3_ERROR_NO_OFFSET,
                                              "cannot list '%s'", path);
        }
        const enum k3_code code = sort_in(folder, entry->d_name, err);
        if (code != K3_OK) {
            return code;
        }
    }
}

/* The hub client keeps unfinished files under hashed names: worth a hint, so errors do not count.
 */
static size_t count_hub_leftovers(const char *path)
{
    char *hub = k3_path_join(path, HUB_FOLDER);
    DIR *dir = hub ? opendir(hub) : NULL;
    free(hub);
    if (!dir) {
        return 0;
    }
    size_t count = 0;
    for (const struct dirent *entry = readdir(dir); entry; entry = readdir(dir)) {
        count += ends_with(entry->d_name, HUB_SUFFIX);
    }
    closedir(dir);
    return count;
}

static int by_name(const void *left, const void *right)
{
    const char *const *a = left;
    const char *const *b = right;
    return strcmp(*a, *b);
}

static void sort_names(char **names, size_t count)
{
    if (count > 0) {
        qsort(names, count, sizeof *names, by_name);
    }
}

enum k3_code k3_checkpoint_folder_list(const char *path, struct k3_checkpoint_folder *out_folder,
                                       struct k3_error *err)
{
    DIR *dir = opendir(path);
    if (!dir) {
        const enum k3_code code = errno == ENOENT || errno == ENOTDIR ? K3_ERR_NO_INPUT : K3_ERR_IO;
        return k3_fail_errno(err, code, errno, K3_ERROR_NO_OFFSET, "cannot open folder '%s'", path);
    }
    struct k3_checkpoint_folder folder = {0};
    const enum k3_code code = read_names(dir, path, &folder, err);
    closedir(dir);
    if (code != K3_OK) {
        k3_checkpoint_folder_done(&folder);
        return code;
    }
    sort_names(folder.shard_names, folder.shard_count);
    sort_names(folder.leftover_names, folder.leftover_count);
    folder.hub_leftover_count = count_hub_leftovers(path);
    *out_folder = folder;
    return K3_OK;
}

static void free_names(char **names, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        free(names[i]);
    }
    free(names);
}

void k3_checkpoint_folder_done(struct k3_checkpoint_folder *folder)
{
    free_names(folder->shard_names, folder->shard_count);
    free_names(folder->leftover_names, folder->leftover_count);
    *folder = (struct k3_checkpoint_folder){0};
}

void k3_checkpoint_folder_report_leftovers(const struct k3_checkpoint_folder *folder,
                                           struct k3_problems *problems)
{
    struct k3_problem_kind kind = {.problems = problems,
                                   .code = K3_ERR_MALFORMED,
                                   .what = "unfinished downloads",
                                   .lines_max = K3_CHECKPOINT_LINES_MAX};
    for (size_t i = 0; i < folder->leftover_count; i++) {
        const char *name = folder->leftover_names[i];
        const char *end = strstr(name, SHARD_SUFFIX ".") + strlen(SHARD_SUFFIX);
        const int len = (int)(end - name);
        if (ends_with(name, ARIA2_SUFFIX)) {
            /* aria2 gives the file its final size first: sizes prove nothing while this is there.
             */
            k3_problem_kind_add(&kind,
                                "'%s': aria2 has not finished '%.*s', whose size may be right and"
                                " bytes wrong: run the download again",
                                name, len, name);
        } else {
            k3_problem_kind_add(&kind,
                                "'%s' is an unfinished download: finish it, or remove it if '%.*s'"
                                " is complete",
                                name, len, name);
        }
    }
    k3_problem_kind_end(&kind);
}
