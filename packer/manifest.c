/* SPDX-License-Identifier: Apache-2.0 */
#include "packer/manifest.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "format/base/json.h"
#include "packer/sha256.h"

#define HEX_DIGITS (2U * K3_SHA256_BYTES)

/* While it is read. */
struct reading {
    struct k3_manifest manifest;
    size_t room;
    const char *name; /* of the file, for messages */
    size_t item;      /* line or element, from 1   */
};

static int hex_value(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

static bool parse_hex(const char *text, uint8_t out_bytes[K3_SHA256_BYTES])
{
    for (unsigned i = 0; i < K3_SHA256_BYTES; i++) {
        const int high = hex_value(text[2 * i]);
        const int low = high < 0 ? -1 : hex_value(text[2 * i + 1]);
        if (low < 0) {
            return false;
        }
        out_bytes[i] = (uint8_t)(high << 4 | low);
    }
    return true;
}

static enum k3_code fail_item(const struct reading *r, const char *what, struct k3_error *err)
{
    return k3_fail(err, K3_ERR_MALFORMED, K3_ERROR_NO_OFFSET, "'%s' item %zu: %s", r->name, r->item,
                   what);
}

/* `entry` without its name is complete; path is not NUL-terminated. */
static enum k3_code add_entry(struct reading *r, const char *path, size_t path_len,
                              struct k3_manifest_entry entry, struct k3_error *err)
{
    for (size_t i = path_len; i > 0; i--) {
        if (path[i - 1] == '/') {
            path += i;
            path_len -= i;
            break;
        }
    }
    if (path_len == 0 || memchr(path, '\0', path_len)) {
        return fail_item(r, "a name is missing", err);
    }
    if (r->manifest.count == r->room) {
        const size_t room = r->room ? 2 * r->room : 128;
        struct k3_manifest_entry *entries = realloc(r->manifest.entries, room * sizeof *entries);
        if (!entries) {
            return k3_fail_no_memory(err, r->name);
        }
        r->manifest.entries = entries;
        r->room = room;
    }
    entry.name = strndup(path, path_len);
    if (!entry.name) {
        return k3_fail_no_memory(err, r->name);
    }
    r->manifest.entries[r->manifest.count++] = entry;
    return K3_OK;
}

/* "<64 digits> *name" or "<64 digits>  name". */
static enum k3_code parse_line(struct reading *r, const char *line, size_t len,
                               struct k3_error *err)
{
    struct k3_manifest_entry entry = {0};
    while (len > 0 && (line[len - 1] == '\r' || line[len - 1] == ' ')) {
        len--;
    }
    if (len == 0 || line[0] == '#') {
        return K3_OK;
    }
    if (len < HEX_DIGITS + 3 || line[HEX_DIGITS] != ' ' ||
        (line[HEX_DIGITS + 1] != ' ' && line[HEX_DIGITS + 1] != '*') ||
        !parse_hex(line, entry.sha256)) {
        return fail_item(r, "not a line of sha256sum: 64 hexadecimal digits, two spaces, a name",
                         err);
    }
    return add_entry(r, line + HEX_DIGITS + 2, len - HEX_DIGITS - 2, entry, err);
}

static enum k3_code parse_lines(struct reading *r, const char *text, size_t len,
                                struct k3_error *err)
{
    enum k3_code code = K3_OK;
    for (size_t at = 0; code == K3_OK && at < len;) {
        const char *end = memchr(text + at, '\n', len - at);
        const size_t line_len = end ? (size_t)(end - text) - at : len - at;
        r->item++;
        code = parse_line(r, text + at, line_len, err);
        at += line_len + 1;
    }
    return code;
}

/* A listing also has folders and files without a SHA-256: those vouch for nothing. */
static enum k3_code parse_element(struct reading *r, const json_t *item, struct k3_error *err)
{
    const json_t *path = json_object_get(item, "path");
    const json_t *size = json_object_get(item, "size");
    const json_t *sha256 = json_object_get(item, "sha256");
    struct k3_manifest_entry entry = {0};
    if (!sha256) {
        sha256 = json_object_get(json_object_get(item, "lfs"), "oid");
    }
    if (!json_is_object(item) || !json_is_string(path)) {
        return fail_item(r, "not an object with a \"path\"", err);
    }
    if (!sha256) {
        return K3_OK;
    }
    const char *hex = json_string_value(sha256);
    if (hex && strncmp(hex, "sha256:", 7) == 0) {
        hex += 7;
    }
    if (!hex || strlen(hex) != HEX_DIGITS || !parse_hex(hex, entry.sha256)) {
        return fail_item(r, "\"sha256\" is not 64 hexadecimal digits", err);
    }
    if (size && (!json_is_integer(size) || json_integer_value(size) < 0)) {
        return fail_item(r, "\"size\" is not a number of bytes", err);
    }
    entry.has_size = size != NULL;
    entry.size = size ? (uint64_t)json_integer_value(size) : 0;
    return add_entry(r, json_string_value(path), json_string_length(path), entry, err);
}

static enum k3_code parse_json(struct reading *r, const uint8_t *bytes, size_t len,
                               struct k3_error *err)
{
    json_t *root = NULL;
    enum k3_code code = k3_json_parse(bytes, len, K3_MANIFEST_BYTES_MAX, &root, err);
    if (code != K3_OK) {
        return k3_error_context(err, code, "'%s'", r->name);
    }
    if (!json_is_array(root)) {
        code = fail_item(r, "a listing is an array", err);
    }
    for (size_t i = 0; code == K3_OK && i < json_array_size(root); i++) {
        r->item++;
        code = parse_element(r, json_array_get(root, i), err);
    }
    json_decref(root);
    return code;
}

static int compare_entries(const void *a, const void *b)
{
    return strcmp(((const struct k3_manifest_entry *)a)->name,
                  ((const struct k3_manifest_entry *)b)->name);
}

static enum k3_code sort_entries(struct reading *r, struct k3_error *err)
{
    struct k3_manifest *m = &r->manifest;
    if (m->count == 0) {
        return k3_fail(err, K3_ERR_MALFORMED, K3_ERROR_NO_OFFSET, "'%s' lists no SHA-256 at all",
                       r->name);
    }
    qsort(m->entries, m->count, sizeof *m->entries, compare_entries);
    for (size_t i = 1; i < m->count; i++) {
        if (strcmp(m->entries[i - 1].name, m->entries[i].name) == 0) {
            return k3_fail(err, K3_ERR_MALFORMED, K3_ERROR_NO_OFFSET, "'%s' lists '%s' twice",
                           r->name, m->entries[i].name);
        }
    }
    return K3_OK;
}

enum k3_code k3_manifest_parse(const uint8_t *bytes, size_t len, const char *name,
                               struct k3_manifest *out_manifest, struct k3_error *err)
{
    struct reading r = {.name = name};
    size_t first = 0;
    while (first < len && strchr(" \t\r\n", bytes[first]) && bytes[first]) {
        first++;
    }
    const bool is_json = first < len && (bytes[first] == '[' || bytes[first] == '{');
    enum k3_code code =
        is_json ? parse_json(&r, bytes, len, err) : parse_lines(&r, (const char *)bytes, len, err);
    if (code == K3_OK) {
        code = sort_entries(&r, err);
    }
    if (code != K3_OK) {
        k3_manifest_done(&r.manifest);
        return code;
    }
    *out_manifest = r.manifest;
    return K3_OK;
}

enum k3_code k3_manifest_read(const char *path, struct k3_manifest *out_manifest,
                              struct k3_error *err)
{
    uint8_t *bytes = NULL;
    size_t len = 0;
    enum k3_code code = k3_file_read_all(path, K3_MANIFEST_BYTES_MAX, &bytes, &len, err);
    if (code == K3_OK) {
        code = k3_manifest_parse(bytes, len, path, out_manifest, err);
    }
    free(bytes);
    return code;
}

void k3_manifest_done(struct k3_manifest *manifest)
{
    for (size_t i = 0; i < manifest->count; i++) {
        free(manifest->entries[i].name);
    }
    free(manifest->entries);
    *manifest = (struct k3_manifest){0};
}

const struct k3_manifest_entry *k3_manifest_find(const struct k3_manifest *manifest,
                                                 const char *name)
{
    size_t low = 0, high = manifest->count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        const int order = strcmp(name, manifest->entries[middle].name);
        if (order == 0) {
            return &manifest->entries[middle];
        }
        low = order > 0 ? middle + 1 : low;
        high = order > 0 ? high : middle;
    }
    return NULL;
}

static void check_shards(const struct k3_manifest *manifest, const struct k3_shard_set *set,
                         struct k3_problems *problems)
{
    for (size_t i = 0; i < set->shard_count; i++) {
        const struct k3_shard *shard = &set->shards[i];
        const struct k3_manifest_entry *e = k3_manifest_find(manifest, shard->name);
        if (!e) {
            k3_problems_add(problems, K3_ERR_MALFORMED,
                            "'%s' is not listed in the file of --sha256", shard->name);
        } else if (e->has_size && e->size != shard->file_bytes) {
            k3_problems_add(problems, K3_ERR_MALFORMED,
                            "'%s' has %" PRIu64 " bytes, the file of --sha256 says %" PRIu64
                            ": download it again",
                            shard->name, shard->file_bytes, e->size);
        }
    }
}

static void check_present(const struct k3_manifest *manifest, const struct k3_shard_set *set,
                          struct k3_problems *problems)
{
    static const char suffix[] = ".safetensors";
    for (size_t i = 0; i < manifest->count; i++) {
        const char *name = manifest->entries[i].name;
        const size_t len = strlen(name);
        bool is_there = len < sizeof suffix || strcmp(name + len - (sizeof suffix - 1), suffix);
        for (size_t j = 0; !is_there && j < set->shard_count; j++) {
            is_there = strcmp(set->shards[j].name, name) == 0;
        }
        if (!is_there) {
            k3_problems_add(problems, K3_ERR_NO_INPUT,
                            "'%s' is listed in the file of --sha256 and is not there: download it",
                            name);
        }
    }
}

static enum k3_code check_files(const struct k3_manifest *manifest,
                                const struct k3_file_bundle *files, struct k3_problems *problems,
                                struct k3_error *err)
{
    struct k3_sha256 *sha256 = NULL;
    enum k3_code code = k3_sha256_create(&sha256, err);
    for (unsigned i = 0; code == K3_OK && i < K3_BUNDLED_COUNT; i++) {
        const char *name = k3_bundled_name((enum k3_bundled_file)i);
        const struct k3_manifest_entry *e = k3_manifest_find(manifest, name);
        uint8_t found[K3_SHA256_BYTES];
        if (!e || !files->files[i].bytes) {
            continue;
        }
        k3_sha256_reset(sha256);
        k3_sha256_update(sha256, files->files[i].bytes, files->files[i].len);
        k3_sha256_value(sha256, found);
        if (memcmp(found, e->sha256, sizeof found) != 0) {
            k3_problems_add(problems, K3_ERR_DAMAGED,
                            "'%s' does not have the SHA-256 that the file of --sha256 lists: "
                            "download it again",
                            name);
        }
    }
    k3_sha256_destroy(sha256);
    return code;
}

enum k3_code k3_manifest_check(const struct k3_manifest *manifest, const struct k3_census *census,
                               struct k3_problems *problems, struct k3_error *err)
{
    check_shards(manifest, &census->set, problems);
    check_present(manifest, &census->set, problems);
    return check_files(manifest, &census->files, problems, err);
}
