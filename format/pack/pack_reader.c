/* SPDX-License-Identifier: Apache-2.0 */
#include "format/pack/pack_reader.h"

#include <inttypes.h>
#include <stdlib.h>

#include "format/base/bytes.h"

static enum k3_code open_file(const char *folder, enum k3_file_kind kind, struct k3_file *out_file,
                              struct k3_error *err)
{
    char *path = k3_path_join(folder, k3_file_kind_name(kind));
    if (!path) {
        return k3_fail_no_memory(err, folder);
    }
    const enum k3_code code = k3_file_open_read(path, out_file, err);
    free(path);
    return code;
}

/* Says why there is no index: nothing there, or packing not finished. */
static enum k3_code explain_no_index(const char *folder, struct k3_error *err)
{
    char *journal = k3_path_join(folder, K3_JOURNAL_NAME);
    const bool is_begun = journal && k3_path_exists(journal);
    free(journal);
    if (is_begun) {
        return k3_fail(err, K3_ERR_NO_INPUT, K3_ERROR_NO_OFFSET,
                       "'%s' holds a pack that is not finished; run k3pack again to resume",
                       folder);
    }
    if (!k3_path_exists(folder)) {
        return k3_fail(err, K3_ERR_NO_INPUT, K3_ERROR_NO_OFFSET, "'%s': no such folder", folder);
    }
    return k3_fail(err, K3_ERR_NO_INPUT, K3_ERROR_NO_OFFSET,
                   "'%s' is not a pack: it has no %s (make one with k3pack)", folder,
                   K3_INDEX_NAME);
}

static enum k3_code decode_tables(const struct k3_section_set *set,
                                  struct k3_pack_tables *out_tables, struct k3_error *err)
{
    struct k3_section_bytes raw[K3_SECTION_EXPERT_DIGESTS + 1] = {{0}};
    for (unsigned kind = 1; kind <= K3_SECTION_EXPERT_DIGESTS; kind++) {
        /* These are stored raw: used in place. */
        const struct k3_section *s = k3_section_find(set, (enum k3_section_kind)kind);
        if (s) {
            raw[kind].bytes = k3_section_stored(set, s);
            raw[kind].len = (size_t)s->raw_bytes;
        }
    }
    return k3_pack_tables_decode(raw, out_tables, err);
}

static enum k3_code decode_files(const struct k3_section_set *set, struct k3_file_bundle *out_files,
                                 struct k3_digest *out_raw_digest, struct k3_error *err)
{
    uint8_t *raw = NULL;
    size_t len = 0;
    enum k3_code code = k3_section_raw(set, K3_SECTION_FILES, &raw, &len, err);
    if (code != K3_OK) {
        return code;
    }
    *out_raw_digest = k3_digest_of(raw, len);
    code = k3_file_bundle_decode(raw, len, out_files, err);
    free(raw);
    return code;
}

/* docs/format.md 10; sections 1..6 are stored raw, so their stored digest is the raw one. */
static bool pack_id_is_right(const struct k3_section_set *set, const struct k3_digest *files_digest)
{
    uint8_t records[K3_SECTION_CONTENT_LAST * (4 + K3_DIGEST_BYTES)];
    uint8_t *p = records;
    for (unsigned kind = 1; kind <= K3_SECTION_CONTENT_LAST; kind++) {
        const struct k3_section *s = k3_section_find(set, (enum k3_section_kind)kind);
        const struct k3_digest *digest =
            kind == K3_SECTION_FILES ? files_digest : &s->stored_digest;
        k3_le32_put(p, kind);
        memcpy(p + 4, digest->bytes, K3_DIGEST_BYTES);
        p += 4 + K3_DIGEST_BYTES;
    }
    const struct k3_digest id = k3_digest_of(records, sizeof records);
    return k3_digest_equal(&id, &set->superblock.pack_id);
}

enum k3_code k3_index_decode(const struct k3_section_set *set, struct k3_pack_tables *out_tables,
                             struct k3_file_bundle *out_files, struct k3_error *err)
{
    struct k3_pack_tables tables = {0};
    struct k3_file_bundle files = {0};
    struct k3_digest files_digest;
    enum k3_code code = decode_tables(set, &tables, err);
    if (code == K3_OK) {
        code = decode_files(set, &files, &files_digest, err);
    }
    if (code == K3_OK && !pack_id_is_right(set, &files_digest)) {
        code = k3_fail(err, K3_ERR_DAMAGED, 24, "%s: pack id is not that of the sections",
                       K3_INDEX_NAME);
    }
    if (code != K3_OK) {
        k3_pack_tables_done(&tables);
        k3_file_bundle_done(&files);
        return code == K3_ERR_MALFORMED ? k3_error_context(err, code, "%s", K3_INDEX_NAME) : code;
    }
    *out_tables = tables;
    *out_files = files;
    return K3_OK;
}

enum k3_code k3_index_provenance(const struct k3_section_set *set,
                                 const struct k3_pack_tables *tables,
                                 struct k3_provenance *out_provenance, struct k3_error *err)
{
    uint8_t *raw[3] = {NULL, NULL, NULL};
    struct k3_section_bytes sections[3];
    enum k3_code code = K3_OK;
    for (unsigned i = 0; i < 3 && code == K3_OK; i++) {
        size_t len = 0;
        code =
            k3_section_raw(set, (enum k3_section_kind)(K3_SECTION_SHARDS + i), &raw[i], &len, err);
        sections[i] = (struct k3_section_bytes){.bytes = raw[i], .len = len};
    }
    if (code == K3_OK) {
        code = k3_provenance_decode(sections, tables, out_provenance, err);
    }
    for (unsigned i = 0; i < 3; i++) {
        free(raw[i]);
    }
    return code == K3_ERR_MALFORMED ? k3_error_context(err, code, "%s", K3_INDEX_NAME) : code;
}

enum k3_code k3_pack_open_data(const char *folder, enum k3_file_kind kind,
                               const struct k3_digest *pack_id, uint64_t expected_data_end,
                               struct k3_file *out_file, struct k3_error *err)
{
    struct k3_file file = K3_FILE_CLOSED;
    enum k3_code code = open_file(folder, kind, &file, err);
    if (code != K3_OK) {
        return code;
    }
    uint8_t bytes[K3_SUPERBLOCK_BYTES];
    struct k3_superblock s;
    if (file.file_bytes < sizeof bytes) {
        code = k3_fail(err, K3_ERR_DAMAGED, 0, "%s: %" PRIu64 " bytes are too few for a pack file",
                       k3_file_kind_name(kind), file.file_bytes);
    } else {
        code = k3_file_read(&file, 0, bytes, sizeof bytes, err);
    }
    if (code == K3_OK) {
        code = k3_superblock_decode(bytes, kind, file.file_bytes, &s, err);
    }
    if (code == K3_OK && !k3_digest_equal(&s.pack_id, pack_id)) {
        code = k3_fail(err, K3_ERR_MALFORMED, 24,
                       "%s belongs to another pack than %s (their pack ids differ)",
                       k3_file_kind_name(kind), K3_INDEX_NAME);
    }
    if (code == K3_OK && s.data_end != expected_data_end) {
        code = k3_fail(err, K3_ERR_MALFORMED, 88,
                       "%s: data ends at byte %" PRIu64 ", the index says %" PRIu64,
                       k3_file_kind_name(kind), s.data_end, expected_data_end);
    }
    if (code != K3_OK) {
        k3_file_close(&file);
        return code;
    }
    *out_file = file;
    return K3_OK;
}

enum k3_code k3_pack_open(const char *folder, struct k3_pack *out_pack, struct k3_error *err)
{
    struct k3_pack pack = {.folder = strdup(folder),
                           .index = K3_FILE_CLOSED,
                           .trunk = K3_FILE_CLOSED,
                           .experts = K3_FILE_CLOSED};
    if (!pack.folder) {
        return k3_fail_no_memory(err, folder);
    }
    enum k3_code code = open_file(folder, K3_FILE_INDEX, &pack.index, err);
    if (code == K3_ERR_NO_INPUT) {
        code = explain_no_index(folder, err);
    }
    if (code == K3_OK) {
        code = k3_section_set_read(&pack.index, K3_FILE_INDEX, &pack.sections, err);
    }
    if (code == K3_OK) {
        pack.superblock = pack.sections.superblock;
        code = k3_index_decode(&pack.sections, &pack.tables, &pack.files, err);
    }
    if (code == K3_OK) {
        code = k3_pack_open_data(folder, K3_FILE_TRUNK, &pack.superblock.pack_id,
                                 k3_trunk_data_end(&pack.tables), &pack.trunk, err);
    }
    if (code == K3_OK) {
        code = k3_pack_open_data(folder, K3_FILE_EXPERTS, &pack.superblock.pack_id,
                                 k3_experts_data_end(&pack.tables), &pack.experts, err);
    }
    if (code != K3_OK) {
        k3_pack_close(&pack);
        return code;
    }
    *out_pack = pack;
    return K3_OK;
}

void k3_pack_close(struct k3_pack *pack)
{
    if (!pack->folder) {
        return; /* zeroed: its file descriptors mean nothing */
    }
    k3_file_close(&pack->index);
    k3_file_close(&pack->trunk);
    k3_file_close(&pack->experts);
    k3_pack_tables_done(&pack->tables);
    k3_file_bundle_done(&pack->files);
    k3_section_set_done(&pack->sections);
    free(pack->folder);
    *pack = (struct k3_pack){0};
}
