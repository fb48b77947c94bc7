/* SPDX-License-Identifier: Apache-2.0 */
#include "format/safetensors/shard_header.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "format/base/bytes.h"
#include "format/base/ckd.h"
#include "format/safetensors/json_walk.h"
#include "format/safetensors/name_table.h"

/* A header being read. `names` has room for header_len bytes, which unescaping never exceeds. */
struct draft {
    struct k3_tensor_entry *entries;
    size_t entry_count;
    size_t entry_room;
    char *names;
    size_t names_bytes;
    struct k3_name_table seen;
};

static void draft_done(struct draft *draft)
{
    free(draft->entries);
    free(draft->names);
    k3_name_table_done(&draft->seen);
}

void k3_shard_header_done(struct k3_shard_header *header)
{
    free(header->entries);
    free(header->names);
    *header = (struct k3_shard_header){0};
}

/* __metadata__ means nothing to us, but must be what the format says: strings by name. */
static enum k3_code skip_metadata(struct k3_json_walk *walk, uint64_t at, bool *seen,
                                  struct k3_error *err)
{
    json_t *value = NULL;
    const enum k3_code code = k3_json_walk_value(walk, K3_SHARD_METADATA_MAX, &value, err);
    if (code != K3_OK) {
        return code;
    }
    bool is_strings = json_is_object(value) && !*seen;
    const char *key;
    json_t *item;
    json_object_foreach(value, key, item)
    {
        is_strings = is_strings && json_is_string(item);
    }
    json_decref(value);
    *seen = true;
    return is_strings
               ? K3_OK
               : k3_fail(err, K3_ERR_MALFORMED, at,
                         "__metadata__ at byte %" PRIu64 " is not one object of strings", at);
}

static bool has_control(const char *name, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        const unsigned char c = (unsigned char)name[i];
        if (c < 0x20 || c == 0x7f) {
            return true;
        }
    }
    return false;
}

/* Appends an entry that has a name and a place only. */
static enum k3_code append_name(struct draft *draft, const char *text, uint64_t name_at,
                                struct k3_error *err)
{
    const size_t len = strlen(text);
    if (has_control(text, len)) {
        return k3_fail(err, K3_ERR_MALFORMED, name_at,
                       "the tensor name at byte %" PRIu64 " holds control characters", name_at);
    }
    if (draft->entry_count == draft->entry_room) {
        const size_t room = draft->entry_room + draft->entry_room / 2 + 64;
        struct k3_tensor_entry *entries = realloc(draft->entries, room * sizeof *entries);
        if (!entries) {
            return k3_fail_no_memory(err, "shard header");
        }
        draft->entries = entries;
        draft->entry_room = room;
    }
    char *name = draft->names + draft->names_bytes;
    memcpy(name, text, len + 1);
    draft->names_bytes += len + 1;
    const size_t index = draft->entry_count;
    draft->entries[index] = (struct k3_tensor_entry){.name = name, .name_at = name_at};
    const struct k3_name_slot *found = NULL;
    const enum k3_code code =
        k3_name_table_insert(&draft->seen, name, 0, (uint32_t)index, &found, err);
    if (code != K3_OK) {
        return code;
    }
    if (found) {
        return k3_fail(err, K3_ERR_MALFORMED, name_at,
                       "tensor '%s' is there twice: at header bytes %" PRIu64 " and %" PRIu64, name,
                       draft->entries[found->entry].name_at, name_at);
    }
    draft->entry_count++;
    return K3_OK;
}

static enum k3_code read_tensor(struct draft *draft, struct k3_json_walk *walk, const char *name,
                                uint64_t name_at, struct k3_error *err)
{
    enum k3_code code = append_name(draft, name, name_at, err);
    if (code != K3_OK) {
        return code;
    }
    json_t *value = NULL;
    code = k3_json_walk_value(walk, K3_SHARD_ENTRY_MAX, &value, err);
    if (code != K3_OK) {
        return k3_error_context(err, code, "tensor '%s'", name);
    }
    code = k3_tensor_entry_read(value, &draft->entries[draft->entry_count - 1], err);
    json_decref(value);
    return code;
}

static enum k3_code read_members(struct draft *draft, struct k3_json_walk *walk,
                                 struct k3_error *err)
{
    bool has_metadata = false;
    for (;;) {
        char name[K3_JSON_WALK_STRING_BYTES];
        uint64_t name_at = 0;
        bool is_end = false;
        enum k3_code code = k3_json_walk_key(walk, name, &name_at, &is_end, err);
        if (code != K3_OK || is_end) {
            return code;
        }
        if (strcmp(name, "__metadata__") == 0) {
            code = skip_metadata(walk, name_at, &has_metadata, err);
        } else {
            code = read_tensor(draft, walk, name, name_at, err);
        }
        if (code != K3_OK) {
            return code;
        }
    }
}

static int by_place(const void *left, const void *right)
{
    const struct k3_tensor_entry *a = left;
    const struct k3_tensor_entry *b = right;
    if (a->begin != b->begin) {
        return a->begin < b->begin ? -1 : 1;
    }
    if (a->end != b->end) {
        return a->end < b->end ? -1 : 1;
    }
    return a->name_at < b->name_at ? -1 : a->name_at > b->name_at;
}

/* Sorted entries must follow each other without overlap or gap, and end where the file ends. */
static enum k3_code check_cover(const struct draft *draft, uint64_t data_start, uint64_t data_bytes,
                                struct k3_error *err)
{
    uint64_t end = 0;
    const char *before = "the header";
    for (size_t i = 0; i < draft->entry_count; i++) {
        const struct k3_tensor_entry *entry = &draft->entries[i];
        if (entry->begin != end) {
            return k3_fail(err, K3_ERR_MALFORMED, entry->name_at,
                           "tensor '%s' (header byte %" PRIu64 ") begins at data byte %" PRIu64
                           ", which %s '%s', ending at %" PRIu64,
                           entry->name, entry->name_at, entry->begin,
                           entry->begin < end ? "overlaps" : "leaves a gap after", before, end);
        }
        end = entry->end;
        before = entry->name;
    }
    const uint64_t have = data_start + data_bytes;
    const uint64_t need = data_start + end;
    if (data_bytes < end) {
        return k3_fail(err, K3_ERR_MALFORMED, have,
                       "the file has %" PRIu64 " bytes, its tensors need %" PRIu64 ": %" PRIu64
                       " are missing (truncated? download it again)",
                       have, need, need - have);
    }
    if (data_bytes > end) {
        return k3_fail(err, K3_ERR_MALFORMED, need,
                       "the file has %" PRIu64 " bytes, its tensors need %" PRIu64 ": %" PRIu64
                       " are too many (download it again)",
                       have, need, have - need);
    }
    return K3_OK;
}

/* Hands the draft over, in memory of its exact size. */
static enum k3_code settle(struct draft *draft, struct k3_shard_header *out_header,
                           struct k3_error *err)
{
    char *names = malloc(draft->names_bytes + 1);
    if (!names) {
        return k3_fail_no_memory(err, "shard header");
    }
    memcpy(names, draft->names, draft->names_bytes);
    for (size_t i = 0; i < draft->entry_count; i++) {
        draft->entries[i].name = names + (draft->entries[i].name - draft->names);
    }
    struct k3_tensor_entry *exact = realloc(draft->entries, draft->entry_count * sizeof *exact + 1);
    if (!exact) {
        free(names);
        return k3_fail_no_memory(err, "shard header");
    }
    draft->entries = NULL;
    *out_header = (struct k3_shard_header){
        .entries = exact, .entry_count = draft->entry_count, .names = names};
    return K3_OK;
}

static enum k3_code read_draft(struct draft *draft, struct k3_json_walk *walk, uint64_t data_bytes,
                               struct k3_error *err)
{
    /* The format wants '{' first, without white space before it. */
    if (walk->len == 0 || walk->bytes[0] != '{') {
        return k3_fail(err, K3_ERR_MALFORMED, walk->text_at,
                       "the header does not start with '{': not a safetensors file");
    }
    enum k3_code code = k3_json_walk_enter(walk, err);
    if (code == K3_OK) {
        code = read_members(draft, walk, err);
    }
    if (code == K3_OK) {
        code = k3_json_walk_end(walk, " ", err);
    }
    if (code != K3_OK) {
        return code;
    }
    if (draft->entry_count > 0) {
        qsort(draft->entries, draft->entry_count, sizeof *draft->entries, by_place);
    }
    return check_cover(draft, walk->text_at + walk->len, data_bytes, err);
}

enum k3_code k3_shard_header_parse(const uint8_t *bytes, size_t header_len, uint64_t data_bytes,
                                   struct k3_shard_header *out_header, struct k3_error *err)
{
    if (header_len > K3_SHARD_HEADER_MAX) {
        return k3_fail(err, K3_ERR_MALFORMED, 0,
                       "a header of %zu bytes, more than the %u that the format allows", header_len,
                       K3_SHARD_HEADER_MAX);
    }
    struct draft draft = {.names = malloc(header_len + 1)};
    struct k3_json_walk walk = {
        .bytes = bytes, .len = header_len, .text_at = K3_SHARD_PREFIX_BYTES};
    enum k3_code code = draft.names ? read_draft(&draft, &walk, data_bytes, err)
                                    : k3_fail_no_memory(err, "shard header");
    if (code == K3_OK) {
        code = settle(&draft, out_header, err);
    }
    if (code == K3_OK) {
        out_header->data_start = K3_SHARD_PREFIX_BYTES + (uint64_t)header_len;
        out_header->data_bytes = data_bytes;
    }
    draft_done(&draft);
    return code;
}

/* What people have where a shard should be, by its first bytes. */
static const struct {
    const char *start;
    const char *what;
} impostors[] = {
    {"version https://git-lfs", "a git-lfs pointer, not the data: fetch it with 'git lfs pull'"},
    {"<!DOCTYPE", "a web page: the download was refused or redirected"},
    {"<!doctype", "a web page: the download was refused or redirected"},
    {"<html", "a web page: the download was refused or redirected"},
    {"{\"error", "a server's error message: the download was refused"},
    {"Access to", "a server's error message: the download was refused"},
    {"Entry not", "a server's error message: the file was not there"},
    {"GGUF", "a GGUF file, not safetensors"},
    {"PK\003\004", "a zip archive (a PyTorch file?), not safetensors"},
};

#define IMPOSTOR_BYTES 32U

static enum k3_code refuse_impostor(const struct k3_file *file, struct k3_error *err)
{
    char start[IMPOSTOR_BYTES] = {0};
    const size_t len = (size_t)k3_min_u64(sizeof start, file->file_bytes);
    const enum k3_code code = k3_file_read(file, 0, start, len, err);
    if (code != K3_OK) {
        return code;
    }
    for (size_t i = 0; i < sizeof impostors / sizeof impostors[0]; i++) {
        const size_t need = strlen(impostors[i].start);
        if (len >= need && memcmp(start, impostors[i].start, need) == 0) {
            return k3_fail(err, K3_ERR_MALFORMED, 0, "the file is %s", impostors[i].what);
        }
    }
    return K3_OK;
}

/* The length prefix, bounded by the file and by the cap. */
static enum k3_code read_length(const struct k3_file *file, uint64_t *out_len, struct k3_error *err)
{
    if (file->file_bytes == 0) {
        return k3_fail(err, K3_ERR_MALFORMED, 0, "the file is empty (download it again)");
    }
    enum k3_code code = refuse_impostor(file, err);
    if (code != K3_OK) {
        return code;
    }
    if (file->file_bytes < K3_SHARD_PREFIX_BYTES) {
        return k3_fail(err, K3_ERR_MALFORMED, 0,
                       "the file has %" PRIu64 " bytes, a shard needs at least 8 (truncated?)",
                       file->file_bytes);
    }
    uint8_t prefix[K3_SHARD_PREFIX_BYTES];
    code = k3_file_read(file, 0, prefix, sizeof prefix, err);
    if (code != K3_OK) {
        return code;
    }
    const uint64_t len = k3_le64_get(prefix);
    if (len > K3_SHARD_HEADER_MAX) {
        return k3_fail(err, K3_ERR_MALFORMED, 0,
                       "its first 8 bytes give a header of %" PRIu64
                       " bytes, at most %u are allowed"
                       ": not a safetensors file",
                       len, K3_SHARD_HEADER_MAX);
    }
    if (len > file->file_bytes - K3_SHARD_PREFIX_BYTES) {
        return k3_fail(err, K3_ERR_MALFORMED, 0,
                       "the file has %" PRIu64 " bytes, its header alone needs %" PRIu64
                       " (truncated? download it again)",
                       file->file_bytes, K3_SHARD_PREFIX_BYTES + len);
    }
    *out_len = len;
    return K3_OK;
}

enum k3_code k3_shard_header_read(const struct k3_file *file, struct k3_shard_header *out_header,
                                  struct k3_error *err)
{
    uint64_t len = 0;
    enum k3_code code = read_length(file, &len, err);
    if (code != K3_OK) {
        return code;
    }
    uint8_t *bytes = malloc((size_t)len + 1);
    if (!bytes) {
        return k3_fail_no_memory(err, file->path);
    }
    code = k3_file_read(file, K3_SHARD_PREFIX_BYTES, bytes, (size_t)len, err);
    if (code == K3_OK) {
        code = k3_shard_header_parse(
            bytes, (size_t)len, file->file_bytes - K3_SHARD_PREFIX_BYTES - len, out_header, err);
    }
    free(bytes);
    return code;
}
