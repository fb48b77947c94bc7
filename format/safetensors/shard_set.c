/* SPDX-License-Identifier: Apache-2.0 */
#include "format/safetensors/shard_set.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "format/base/assert.h"
#include "format/base/ckd.h"
#include "format/safetensors/shard_index.h"

void k3_shard_set_done(struct k3_shard_set *set)
{
    for (size_t i = 0; i < set->shard_count; i++) {
        free(set->shards[i].name);
        free(set->shards[i].path);
        k3_shard_header_done(&set->shards[i].header);
    }
    free(set->shards);
    free(set->folder);
    k3_name_table_done(&set->table);
    *set = (struct k3_shard_set){0};
}

static enum k3_code read_open_shard(const struct k3_file *file, struct k3_shard *shard,
                                    struct k3_error *err)
{
    struct stat st;
    if (fstat(file->fd, &st) != 0) {
        return k3_fail_errno(err, K3_ERR_IO, errno, K3_ERROR_NO_OFFSET, "cannot stat");
    }
    const enum k3_code code = k3_shard_header_read(file, &shard->header, err);
    if (code == K3_OK) {
        shard->file_bytes = file->file_bytes;
        shard->modified_ns =
            (int64_t)st.st_mtim.tv_sec * INT64_C(1000000000) + (int64_t)st.st_mtim.tv_nsec;
        shard->is_read = true;
    }
    return code;
}

static enum k3_code read_shard(struct k3_shard *shard, struct k3_error *err)
{
    struct k3_file file = K3_FILE_CLOSED;
    enum k3_code code = k3_file_open_read(shard->path, &file, err);
    if (code == K3_ERR_NO_INPUT && err->os_errno == ENOENT) {
        return k3_fail(err, code, K3_ERROR_NO_OFFSET,
                       "a link to a file that is not there (copy the file itself)");
    }
    if (code == K3_OK) {
        code = read_open_shard(&file, shard, err);
    }
    k3_file_close(&file);
    return code;
}

/* What is wrong with one shard is a problem; only memory stops the scan. */
static enum k3_code read_shards(struct k3_shard_set *set, struct k3_problems *problems,
                                struct k3_error *err)
{
    for (size_t i = 0; i < set->shard_count; i++) {
        struct k3_shard *shard = &set->shards[i];
        struct k3_error why = {0};
        const enum k3_code code = read_shard(shard, &why);
        if (code == K3_ERR_NO_MEMORY) {
            return k3_fail_no_memory(err, shard->path);
        }
        if (code != K3_OK) {
            k3_problems_add(problems, code, "'%s': %s", shard->name, why.message);
            set->unread_count++;
        }
        shard->first_tensor = set->tensor_count;
        set->tensor_count += shard->header.entry_count;
        if (ckd_add(&set->tensor_bytes, set->tensor_bytes, shard->header.data_bytes)) {
            return k3_fail(err, K3_ERR_MALFORMED, K3_ERROR_NO_OFFSET,
                           "'%s': the shards together have more than 2^64 bytes", set->folder);
        }
    }
    return K3_OK;
}

static enum k3_code name_shards(struct k3_shard_set *set, const struct k3_checkpoint_folder *folder,
                                struct k3_error *err)
{
    set->shards = calloc(folder->shard_count + 1, sizeof *set->shards);
    if (!set->shards) {
        return k3_fail_no_memory(err, "shard list");
    }
    for (size_t i = 0; i < folder->shard_count; i++) {
        struct k3_shard *shard = &set->shards[set->shard_count++];
        shard->name = strdup(folder->shard_names[i]);
        shard->path = k3_path_join(set->folder, folder->shard_names[i]);
        if (!shard->name || !shard->path) {
            return k3_fail_no_memory(err, "shard list");
        }
    }
    return K3_OK;
}

static enum k3_code fill_table(struct k3_shard_set *set, struct k3_problems *problems,
                               struct k3_error *err)
{
    struct k3_problem_kind twice = {.problems = problems,
                                    .code = K3_ERR_MALFORMED,
                                    .what = "tensors are in two shards",
                                    .lines_max = K3_CHECKPOINT_LINES_MAX};
    for (uint32_t i = 0; i < set->shard_count; i++) {
        const struct k3_shard *shard = &set->shards[i];
        for (uint32_t j = 0; j < shard->header.entry_count; j++) {
            const char *name = shard->header.entries[j].name;
            const struct k3_name_slot *found = NULL;
            const enum k3_code code = k3_name_table_insert(&set->table, name, i, j, &found, err);
            if (code != K3_OK) {
                return code;
            }
            if (found) {
                k3_problem_kind_add(&twice, "tensor '%s' is in '%s' and in '%s': remove one", name,
                                    set->shards[found->shard].name, shard->name);
            }
        }
    }
    k3_problem_kind_end(&twice);
    return K3_OK;
}

static enum k3_code check_complete(struct k3_shard_set *set,
                                   const struct k3_checkpoint_folder *folder,
                                   struct k3_problems *problems, struct k3_error *err)
{
    const size_t before = problems->total;
    size_t missing = 0;
    char *path = k3_path_join(set->folder, K3_SHARD_INDEX_NAME);
    if (!path) {
        return k3_fail_no_memory(err, "path");
    }
    enum k3_code code = K3_OK;
    set->has_index = k3_path_exists(path);
    if (set->has_index) {
        code = k3_shard_index_check(path, set, problems, &missing, err);
    } else {
        k3_checkpoint_folder_report_gaps(folder, problems);
        missing = problems->total - before;
    }
    free(path);
    if (code == K3_OK && set->shard_count == 0 && missing == 0) {
        k3_problems_add(problems, K3_ERR_NO_INPUT, "'%s' holds no .safetensors file", set->folder);
        missing = 1;
    }
    if (missing > 0 && folder->hub_leftover_count > 0) {
        k3_problems_add(problems, K3_ERR_NO_INPUT,
                        "'%s/.cache/huggingface/download' holds %zu unfinished files: run the same"
                        " download command again",
                        set->folder, folder->hub_leftover_count);
    }
    return code;
}

static enum k3_code scan(struct k3_shard_set *set, const struct k3_checkpoint_folder *folder,
                         const char *path, struct k3_problems *problems, struct k3_error *err)
{
    set->folder = strdup(path);
    if (!set->folder) {
        return k3_fail_no_memory(err, path);
    }
    enum k3_code code = name_shards(set, folder, err);
    if (code == K3_OK) {
        k3_checkpoint_folder_report_leftovers(folder, problems);
        code = read_shards(set, problems, err);
    }
    if (code == K3_OK) {
        code = fill_table(set, problems, err);
    }
    if (code == K3_OK) {
        code = check_complete(set, folder, problems, err);
    }
    return code;
}

enum k3_code k3_shard_set_scan(const char *folder, struct k3_shard_set *out_set,
                               struct k3_problems *problems, struct k3_error *err)
{
    struct k3_checkpoint_folder names = {0};
    struct k3_shard_set set = {0};
    enum k3_code code = k3_checkpoint_folder_list(folder, &names, err);
    if (code == K3_OK) {
        code = scan(&set, &names, folder, problems, err);
    }
    if (code == K3_OK && problems->code == K3_ERR_NO_MEMORY) {
        code = k3_fail_no_memory(err, "list of problems");
    }
    if (code == K3_OK) {
        *out_set = set;
    } else {
        k3_shard_set_done(&set);
    }
    k3_checkpoint_folder_done(&names);
    return code;
}

enum k3_code k3_shard_set_open(const char *folder, struct k3_shard_set *out_set,
                               struct k3_problems *problems, struct k3_error *err)
{
    const size_t before = problems->total;
    struct k3_shard_set set;
    enum k3_code code = k3_shard_set_scan(folder, &set, problems, err);
    if (code != K3_OK) {
        return code;
    }
    if (problems->total > before) {
        code = k3_problems_result(problems, folder, err);
        k3_shard_set_done(&set);
        return code;
    }
    *out_set = set;
    return K3_OK;
}

struct k3_tensor_place k3_shard_set_place(const struct k3_shard_set *set, size_t shard_index,
                                          size_t entry_index)
{
    k3_assert(shard_index < set->shard_count);
    const struct k3_shard *shard = &set->shards[shard_index];
    k3_assert(entry_index < shard->header.entry_count);
    const struct k3_tensor_entry *entry = &shard->header.entries[entry_index];
    return (struct k3_tensor_place){.shard_index = shard_index,
                                    .shard = shard,
                                    .entry = entry,
                                    .file_offset = shard->header.data_start + entry->begin,
                                    .bytes = entry->end - entry->begin};
}

bool k3_shard_set_find(const struct k3_shard_set *set, const char *name,
                       struct k3_tensor_place *out_place)
{
    const struct k3_name_slot *slot = k3_name_table_find(&set->table, name);
    if (!slot) {
        return false;
    }
    *out_place = k3_shard_set_place(set, slot->shard, slot->entry);
    return true;
}

enum k3_code k3_shard_open(const struct k3_shard *shard, struct k3_file *out_file,
                           struct k3_error *err)
{
    struct k3_file file = K3_FILE_CLOSED;
    const enum k3_code code = k3_file_open_read(shard->path, &file, err);
    if (code != K3_OK) {
        return code;
    }
    if (file.file_bytes != shard->file_bytes) {
        const enum k3_code changed = k3_fail(
            err, K3_ERR_MALFORMED, k3_min_u64(file.file_bytes, shard->file_bytes),
            "'%s' has %" PRIu64 " bytes now and had %" PRIu64 ": it changed while it was in use",
            shard->path, file.file_bytes, shard->file_bytes);
        k3_file_close(&file);
        return changed;
    }
    *out_file = file;
    return K3_OK;
}
