/* SPDX-License-Identifier: Apache-2.0 */
#include "format/pack/pack_seal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "format/pack/sections.h"

char *k3_partial_path(const char *folder, enum k3_file_kind kind)
{
    char name[64];
    snprintf(name, sizeof name, "%s%s", k3_file_kind_name(kind), K3_PARTIAL_SUFFIX);
    return k3_path_join(folder, name);
}

static enum k3_code put_tables(struct k3_section_builder *builder,
                               const struct k3_pack_tables *tables, struct k3_error *err)
{
    for (unsigned kind = 1; kind <= K3_SECTION_EXPERT_DIGESTS; kind++) {
        const size_t len = k3_table_section_bytes(tables, (enum k3_section_kind)kind);
        uint8_t *raw = malloc(len);
        if (!raw) {
            return k3_fail_no_memory(err, k3_section_name((enum k3_section_kind)kind));
        }
        k3_table_section_encode(tables, (enum k3_section_kind)kind, raw);
        const enum k3_code code =
            k3_section_builder_put(builder, (enum k3_section_kind)kind, raw, len, err);
        free(raw);
        if (code != K3_OK) {
            return code;
        }
    }
    return K3_OK;
}

static enum k3_code put_files(struct k3_section_builder *builder,
                              const struct k3_file_bundle *files, struct k3_error *err)
{
    uint8_t *raw = NULL;
    size_t len = 0;
    enum k3_code code = k3_file_bundle_encode(files, &raw, &len, err);
    if (code == K3_OK) {
        code = k3_section_builder_put(builder, K3_SECTION_FILES, raw, len, err);
    }
    free(raw);
    return code;
}

static enum k3_code put_provenance(struct k3_section_builder *builder,
                                   const struct k3_pack_tables *tables,
                                   const struct k3_provenance *provenance, struct k3_error *err)
{
    for (unsigned kind = K3_SECTION_SHARDS; kind <= K3_SECTION_EXPERT_SOURCES; kind++) {
        uint8_t *raw = NULL;
        size_t len = 0;
        enum k3_code code =
            k3_provenance_encode(provenance, tables, (enum k3_section_kind)kind, &raw, &len, err);
        if (code == K3_OK) {
            code = k3_section_builder_put(builder, (enum k3_section_kind)kind, raw, len, err);
        }
        free(raw);
        if (code != K3_OK) {
            return code;
        }
    }
    return K3_OK;
}

/* Is the open file the one at `path`? */
static bool is_at(const struct k3_file *file, const char *path)
{
    struct stat open_st;
    struct stat path_st;
    return fstat(file->fd, &open_st) == 0 && stat(path, &path_st) == 0 &&
           open_st.st_dev == path_st.st_dev && open_st.st_ino == path_st.st_ino;
}

/* Removes the index of a pack that is about to be replaced: from here on the folder is no pack. */
static enum k3_code remove_index(const char *folder, struct k3_error *err)
{
    char *path = k3_path_join(folder, K3_INDEX_NAME);
    if (!path) {
        return k3_fail_no_memory(err, folder);
    }
    enum k3_code code = K3_OK;
    if (unlink(path) == 0) {
        code = k3_folder_sync(folder, err);
    } else if (errno != ENOENT) {
        code = k3_fail_errno(err, K3_ERR_CANT_CREATE, errno, K3_ERROR_NO_OFFSET,
                             "cannot remove '%s'", path);
    }
    free(path);
    return code;
}

/* Gives an open trunk or experts file its name, unless an earlier seal already did. */
static enum k3_code publish_data(const char *folder, enum k3_file_kind kind,
                                 const struct k3_file *file, struct k3_error *err)
{
    char *partial = k3_partial_path(folder, kind);
    char *final = k3_path_join(folder, k3_file_kind_name(kind));
    enum k3_code code = K3_OK;
    if (!partial || !final) {
        code = k3_fail_no_memory(err, folder);
    } else if (is_at(file, final)) {
        code = k3_folder_sync(folder, err);
    } else {
        code = remove_index(folder, err);
        if (code == K3_OK) {
            code = k3_file_publish(folder, partial, final, err);
        }
    }
    free(partial);
    free(final);
    return code;
}

static enum k3_code publish_index(const char *folder, struct k3_error *err)
{
    char *partial = k3_partial_path(folder, K3_FILE_INDEX);
    char *final = k3_path_join(folder, K3_INDEX_NAME);
    const enum k3_code code = partial && final ? k3_file_publish(folder, partial, final, err)
                                               : k3_fail_no_memory(err, folder);
    free(partial);
    free(final);
    return code;
}

static enum k3_code write_index(const char *folder, const struct k3_section_builder *builder,
                                const struct k3_digest *pack_id, struct k3_error *err)
{
    char *path = k3_partial_path(folder, K3_FILE_INDEX);
    if (!path) {
        return k3_fail_no_memory(err, folder);
    }
    struct k3_file file = K3_FILE_CLOSED;
    enum k3_code code = k3_file_open_write(path, &file, err);
    if (code == K3_OK) {
        code = k3_section_builder_write(builder, &file, K3_FILE_INDEX, 0, pack_id, err);
    }
    if (code == K3_OK) {
        code = k3_file_sync(&file, err);
    }
    k3_file_close(&file);
    free(path);
    return code;
}

static enum k3_code write_and_publish(const char *folder, const struct k3_file *trunk,
                                      const struct k3_file *experts,
                                      const struct k3_pack_tables *tables,
                                      const struct k3_section_builder *builder,
                                      const struct k3_digest *pack_id, struct k3_error *err)
{
    enum k3_code code = k3_section_builder_write(builder, trunk, K3_FILE_TRUNK,
                                                 k3_trunk_data_end(tables), pack_id, err);
    if (code == K3_OK) {
        code = k3_section_builder_write(builder, experts, K3_FILE_EXPERTS,
                                        k3_experts_data_end(tables), pack_id, err);
    }
    if (code == K3_OK) {
        code = k3_file_sync(trunk, err);
    }
    if (code == K3_OK) {
        code = k3_file_sync(experts, err);
    }
    if (code == K3_OK) {
        code = write_index(folder, builder, pack_id, err);
    }
    if (code == K3_OK) {
        code = publish_data(folder, K3_FILE_TRUNK, trunk, err);
    }
    if (code == K3_OK) {
        code = publish_data(folder, K3_FILE_EXPERTS, experts, err);
    }
    return code == K3_OK ? publish_index(folder, err) : code;
}

enum k3_code k3_pack_seal(const char *folder, const struct k3_file *trunk,
                          const struct k3_file *experts, const struct k3_pack_tables *tables,
                          const struct k3_file_bundle *files,
                          const struct k3_provenance *provenance, struct k3_digest *out_pack_id,
                          struct k3_error *err)
{
    struct k3_section_builder builder = {0};
    enum k3_code code = put_tables(&builder, tables, err);
    if (code == K3_OK) {
        code = put_files(&builder, files, err);
    }
    if (code == K3_OK) {
        code = put_provenance(&builder, tables, provenance, err);
    }
    if (code == K3_OK) {
        const struct k3_digest pack_id = k3_section_builder_pack_id(&builder);
        code = write_and_publish(folder, trunk, experts, tables, &builder, &pack_id, err);
        if (code == K3_OK) {
            *out_pack_id = pack_id;
        }
    }
    k3_section_builder_done(&builder);
    return code;
}
