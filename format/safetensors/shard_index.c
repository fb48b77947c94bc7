/* SPDX-License-Identifier: Apache-2.0 */
#include "format/safetensors/shard_index.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "format/base/file.h"
#include "format/safetensors/json_walk.h"

#define INDEX_VALUE_MAX 65536U /* bytes of JSON of metadata, or of a stranger's value */

struct check {
    const struct k3_shard_set *set;
    struct k3_problems *problems;
    /* Files that the index names: .shard is the shard's index, or shard_count when it is not in the
     * folder; .entry counts the tensors placed there. Shards of the folder are all in it. */
    struct k3_name_table files;
    char **absent; /* names in `files` that no shard owns */
    size_t absent_count;
    bool *is_listed; /* by tensor of the set */
    bool has_map;
    bool has_metadata;
    bool has_total;
    uint64_t total_bytes;
    struct k3_problem_kind lost;    /* not where the index says      */
    struct k3_problem_kind twice;   /* two entries of one name       */
    struct k3_problem_kind unnamed; /* in a shard, not in the index  */
};

static struct k3_problem_kind kind_of(struct k3_problems *problems, const char *what)
{
    return (struct k3_problem_kind){.problems = problems,
                                    .code = K3_ERR_MALFORMED,
                                    .what = what,
                                    .lines_max = K3_CHECKPOINT_LINES_MAX};
}

static enum k3_code check_init(struct check *check, const struct k3_shard_set *set,
                               struct k3_problems *problems, struct k3_error *err)
{
    *check = (struct check){
        .set = set,
        .problems = problems,
        .is_listed = calloc(set->tensor_count + 1, sizeof(bool)),
        .lost = kind_of(problems, "tensors are not where the index says"),
        .twice = kind_of(problems, "tensors are in the index twice"),
        .unnamed = kind_of(problems, "tensors are not in the index"),
    };
    if (!check->is_listed) {
        return k3_fail_no_memory(err, "index check");
    }
    for (uint32_t i = 0; i < set->shard_count; i++) {
        const struct k3_name_slot *found = NULL;
        const enum k3_code code =
            k3_name_table_insert(&check->files, set->shards[i].name, i, 0, &found, err);
        if (code != K3_OK) {
            return code;
        }
    }
    return K3_OK;
}

static void check_done(struct check *check)
{
    for (size_t i = 0; i < check->absent_count; i++) {
        free(check->absent[i]);
    }
    free(check->absent);
    free(check->is_listed);
    k3_name_table_done(&check->files);
}

static enum k3_code add_absent(struct check *check, const char *file, struct k3_error *err)
{
    if (check->absent_count >= K3_SHARDS_MAX) {
        return k3_fail(err, K3_ERR_MALFORMED, K3_ERROR_NO_OFFSET, "it names more than %u files",
                       K3_SHARDS_MAX);
    }
    if ((check->absent_count & (check->absent_count - 1)) == 0) {
        const size_t room = check->absent_count ? 2 * check->absent_count : 1;
        char **larger = realloc(check->absent, room * sizeof *larger);
        if (!larger) {
            return k3_fail_no_memory(err, "index check");
        }
        check->absent = larger;
    }
    char *copy = strdup(file);
    if (!copy) {
        return k3_fail_no_memory(err, "index check");
    }
    check->absent[check->absent_count++] = copy;
    const struct k3_name_slot *found = NULL;
    return k3_name_table_insert(&check->files, copy, (uint32_t)check->set->shard_count, 0, &found,
                                err);
}

/* One tensor that the index places in a shard that could be read. */
static void check_place(struct check *check, const char *tensor, const struct k3_shard *shard)
{
    struct k3_tensor_place place;
    if (!k3_shard_set_find(check->set, tensor, &place)) {
        k3_problem_kind_add(&check->lost, "tensor '%s' is not in '%s', where the index places it",
                            tensor, shard->name);
        return;
    }
    if (place.shard != shard) {
        k3_problem_kind_add(&check->lost, "tensor '%s' is in '%s', but the index places it in '%s'",
                            tensor, place.shard->name, shard->name);
    }
    const size_t index =
        place.shard->first_tensor + (size_t)(place.entry - place.shard->header.entries);
    if (check->is_listed[index]) {
        k3_problem_kind_add(&check->twice, "tensor '%s' is in the index twice", tensor);
    }
    check->is_listed[index] = true;
}

static enum k3_code check_tensor(struct check *check, const char *tensor, const char *file,
                                 struct k3_error *err)
{
    struct k3_name_slot *slot = k3_name_table_find(&check->files, file);
    if (!slot) {
        const enum k3_code code = add_absent(check, file, err);
        if (code != K3_OK) {
            return code;
        }
        slot = k3_name_table_find(&check->files, file);
    }
    slot->entry++;
    if (slot->shard < check->set->shard_count && check->set->shards[slot->shard].is_read) {
        check_place(check, tensor, &check->set->shards[slot->shard]);
    }
    return K3_OK;
}

static enum k3_code read_weight_map(struct check *check, struct k3_json_walk *walk,
                                    struct k3_error *err)
{
    enum k3_code code = k3_json_walk_enter(walk, err);
    while (code == K3_OK) {
        char tensor[K3_JSON_WALK_STRING_BYTES];
        char file[K3_JSON_WALK_STRING_BYTES];
        uint64_t at = 0;
        bool is_end = false;
        code = k3_json_walk_key(walk, tensor, &at, &is_end, err);
        if (code != K3_OK || is_end) {
            break;
        }
        code = k3_json_walk_string(walk, file, err);
        if (code == K3_OK) {
            code = check_tensor(check, tensor, file, err);
        }
    }
    return code;
}

static enum k3_code read_metadata(struct check *check, const json_t *metadata, struct k3_error *err)
{
    if (!json_is_object(metadata)) {
        return k3_fail(err, K3_ERR_MALFORMED, K3_ERROR_NO_OFFSET, "metadata is not an object");
    }
    const json_t *total = json_object_get(metadata, "total_size");
    if (!total) {
        return K3_OK;
    }
    if (!json_is_integer(total) || json_integer_value(total) < 0) {
        return k3_fail(err, K3_ERR_MALFORMED, K3_ERROR_NO_OFFSET,
                       "metadata.total_size is not a whole number from 0");
    }
    check->has_total = true;
    check->total_bytes = (uint64_t)json_integer_value(total);
    return K3_OK;
}

/* One member of the root; others than the two known ones are passed over. */
static enum k3_code read_member(struct check *check, struct k3_json_walk *walk, const char *key,
                                struct k3_error *err)
{
    const bool is_map = strcmp(key, "weight_map") == 0;
    const bool is_metadata = strcmp(key, "metadata") == 0;
    if ((is_map && check->has_map) || (is_metadata && check->has_metadata)) {
        return k3_fail(err, K3_ERR_MALFORMED, K3_ERROR_NO_OFFSET, "'%s' is there twice", key);
    }
    if (is_map) {
        check->has_map = true;
        return read_weight_map(check, walk, err);
    }
    json_t *value = NULL;
    enum k3_code code = k3_json_walk_value(walk, INDEX_VALUE_MAX, &value, err);
    if (code == K3_OK && is_metadata) {
        check->has_metadata = true;
        code = read_metadata(check, value, err);
    }
    json_decref(value);
    return code;
}

static enum k3_code read_index(struct check *check, struct k3_json_walk *walk, struct k3_error *err)
{
    enum k3_code code = k3_json_walk_enter(walk, err);
    while (code == K3_OK) {
        char key[K3_JSON_WALK_STRING_BYTES];
        uint64_t at = 0;
        bool is_end = false;
        code = k3_json_walk_key(walk, key, &at, &is_end, err);
        if (code != K3_OK || is_end) {
            break;
        }
        code = read_member(check, walk, key, err);
    }
    if (code == K3_OK) {
        code = k3_json_walk_end(walk, " \t\r\n", err);
    }
    if (code == K3_OK && !check->has_map) {
        code = k3_fail(err, K3_ERR_MALFORMED, K3_ERROR_NO_OFFSET, "it has no weight_map");
    }
    return code;
}

static void report_absent(const struct check *check)
{
    struct k3_problem_kind kind = kind_of(check->problems, "files are missing");
    kind.code = K3_ERR_NO_INPUT;
    for (size_t i = 0; i < check->absent_count; i++) {
        const char *name = check->absent[i];
        const struct k3_name_slot *slot = k3_name_table_find(&check->files, name);
        k3_problem_kind_add(
            &kind, "'%s' is missing: the index places %" PRIu32 " tensors there: download it", name,
            slot->entry);
    }
    k3_problem_kind_end(&kind);
}

static void report_unlisted(struct check *check)
{
    struct k3_problem_kind whole = kind_of(check->problems, "shards are not in the index");
    for (size_t i = 0; i < check->set->shard_count; i++) {
        const struct k3_shard *shard = &check->set->shards[i];
        if (k3_name_table_find(&check->files, shard->name)->entry == 0 &&
            shard->header.entry_count > 0) {
            k3_problem_kind_add(&whole,
                                "'%s' is not in the index (%zu tensors): remove one of the"
                                " two, or fetch the right index",
                                shard->name, shard->header.entry_count);
            continue;
        }
        for (size_t j = 0; j < shard->header.entry_count; j++) {
            if (!check->is_listed[shard->first_tensor + j]) {
                k3_problem_kind_add(&check->unnamed, "tensor '%s' of '%s' is not in the index",
                                    shard->header.entries[j].name, shard->name);
            }
        }
    }
    k3_problem_kind_end(&whole);
    k3_problem_kind_end(&check->unnamed);
}

static void report(struct check *check)
{
    report_absent(check);
    k3_problem_kind_end(&check->lost);
    k3_problem_kind_end(&check->twice);
    report_unlisted(check);
    const bool is_whole = check->absent_count == 0 && check->set->unread_count == 0;
    if (is_whole && check->has_total && check->total_bytes != check->set->tensor_bytes) {
        k3_problems_add(check->problems, K3_ERR_MALFORMED,
                        "'" K3_SHARD_INDEX_NAME "': metadata.total_size is %" PRIu64
                        ", the tensors have %" PRIu64 " bytes",
                        check->total_bytes, check->set->tensor_bytes);
    }
}

/* The text is read whole and walked: no tree of half a million strings is built. */
static enum k3_code check_text(struct check *check, const char *path, struct k3_error *err)
{
    uint8_t *bytes = NULL;
    size_t len = 0;
    enum k3_code code = k3_file_read_all(path, K3_SHARD_INDEX_MAX, &bytes, &len, err);
    if (code != K3_OK) {
        return code;
    }
    struct k3_json_walk walk = {.bytes = bytes, .len = len};
    code = read_index(check, &walk, err);
    free(bytes);
    return code;
}

enum k3_code k3_shard_index_check(const char *path, const struct k3_shard_set *set,
                                  struct k3_problems *problems, size_t *out_missing_files,
                                  struct k3_error *err)
{
    struct check check;
    enum k3_code code = check_init(&check, set, problems, err);
    if (code == K3_OK) {
        struct k3_error why = {0};
        const enum k3_code text_code = check_text(&check, path, &why);
        if (text_code == K3_ERR_NO_MEMORY) {
            code = k3_fail_no_memory(err, path);
        } else if (text_code == K3_OK) {
            report(&check);
        } else {
            k3_problems_add(problems, text_code, "'" K3_SHARD_INDEX_NAME "': %s", why.message);
        }
        *out_missing_files = check.absent_count;
    }
    check_done(&check);
    return code;
}
