/* SPDX-License-Identifier: Apache-2.0 */
#include "packer/export.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>

#include "format/base/bytes.h"
#include "format/tool/json_out.h"
#include "packer/export_shard.h"
#include "packer/page_cache.h"
#include "packer/restore.h"
#include "packer/sparse_write.h"

#define SHARD_SUFFIX ".safetensors"

struct export_run {
    const struct k3_pack *pack;
    const struct k3_provenance *provenance;
    const char *folder;
    const struct k3_observer *observer;
    struct k3_restorer restorer;
    struct k3_digest_stream *digest; /* owned */
    struct k3_export_report report;
    uint64_t done_bytes, total_bytes;
    struct k3_json_out index; /* model.safetensors.index.json, as it grows */
    /* The file that is being written. */
    struct k3_file file;
    const char *name;
    uint64_t at;
    struct k3_write_behind behind;
};

static enum k3_code check_folder(const char *folder, struct k3_error *err)
{
    enum k3_code code = k3_folder_make(folder, err);
    if (code != K3_OK) {
        return code;
    }
    DIR *dir = opendir(folder);
    if (!dir) {
        return k3_fail_errno(err, K3_ERR_CANT_CREATE, errno, K3_ERROR_NO_OFFSET, "cannot open '%s'",
                             folder);
    }
    for (const struct dirent *e = readdir(dir); code == K3_OK && e; e = readdir(dir)) {
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0) {
            code = k3_fail(err, K3_ERR_CANT_CREATE, K3_ERROR_NO_OFFSET,
                           "'%s' is not empty; export to a new folder", folder);
        }
    }
    closedir(dir);
    return code;
}

/* Opens "<name>.partial", to be published under its name. */
static enum k3_code begin_file(struct export_run *run, const char *name, struct k3_error *err)
{
    char partial[K3_SHARD_NAME_MAX + 16];
    snprintf(partial, sizeof partial, "%s.partial", name);
    char *path = k3_path_join(run->folder, partial);
    const enum k3_code code =
        path ? k3_file_open_write(path, &run->file, err) : k3_fail_no_memory(err, name);
    free(path);
    run->name = name;
    run->at = 0;
    run->behind = (struct k3_write_behind){0};
    return code;
}

static enum k3_code end_file(struct export_run *run, enum k3_code code, struct k3_error *err)
{
    if (code == K3_OK) {
        code = k3_file_sync(&run->file, err);
    }
    if (code == K3_OK) {
        char *path = k3_path_join(run->folder, run->name);
        code = path ? k3_file_publish(run->folder, run->file.path, path, err)
                    : k3_fail_no_memory(err, run->name);
        free(path);
    }
    k3_file_close(&run->file);
    return code;
}

static enum k3_code write_small(struct export_run *run, const char *name, const uint8_t *bytes,
                                size_t len, struct k3_error *err)
{
    enum k3_code code = begin_file(run, name, err);
    if (code == K3_OK) {
        code = k3_file_write(&run->file, 0, bytes, len, err);
        code = end_file(run, code, err);
    }
    return code;
}

/* Restored bytes, in order, to the end of the file; zeros stay holes. */
static enum k3_code write_sink(void *user, const uint8_t *bytes, uint64_t len, struct k3_error *err)
{
    struct export_run *run = user;
    k3_digest_stream_update(run->digest, bytes, (size_t)len);
    if (!k3_bytes_are_zero(bytes, (size_t)len)) {
        const enum k3_code code = k3_write_sparse(&run->file, run->at, bytes, (size_t)len, err);
        if (code != K3_OK) {
            return code;
        }
        k3_write_behind(&run->behind, &run->file, run->at, len);
    }
    run->at += len;
    run->done_bytes += len;
    if (!k3_report(run->observer, "export", run->name, run->done_bytes, run->total_bytes)) {
        return k3_fail(err, K3_ERR_INTERRUPTED, K3_ERROR_NO_OFFSET,
                       "stopped while exporting; remove '%s' and start over", run->folder);
    }
    return K3_OK;
}

static enum k3_code write_tensor(struct export_run *run, const struct k3_export_tensor *t,
                                 struct k3_error *err)
{
    k3_digest_stream_reset(run->digest);
    const enum k3_code code = k3_restore_source(&run->restorer, t->source, write_sink, run, err);
    if (code != K3_OK) {
        return k3_error_context(err, code, "tensor '%s'", t->name);
    }
    const struct k3_digest found = k3_digest_stream_value(run->digest);
    const struct k3_source_record *record =
        k3_source_at(&run->pack->tables, run->provenance, t->source);
    if (!k3_digest_equal(&found, &record->digest)) {
        return k3_fail(err, K3_ERR_DAMAGED, K3_ERROR_NO_OFFSET,
                       "tensor '%s' is not what was packed (see k3pack --verify)", t->name);
    }
    k3_json_string(&run->index, t->name, run->name);
    run->report.tensors++;
    return K3_OK;
}

static enum k3_code fill_shard(struct export_run *run, const struct k3_export_shard *shard,
                               struct k3_error *err)
{
    uint8_t prefix[8];
    k3_le64_put(prefix, shard->header_len);
    enum k3_code code = k3_file_truncate(&run->file, shard->file_bytes, err);
    if (code == K3_OK) {
        code = k3_file_write(&run->file, 0, prefix, sizeof prefix, err);
    }
    if (code == K3_OK) {
        code = k3_file_write(&run->file, 8, shard->header, shard->header_len, err);
    }
    run->at = 8 + shard->header_len;
    for (size_t i = 0; code == K3_OK && i < shard->count; i++) {
        code = write_tensor(run, &shard->tensors[i], err);
    }
    return code;
}

static enum k3_code export_shard(struct export_run *run, uint32_t number, struct k3_error *err)
{
    const char *name = run->provenance->shards[number].name;
    const size_t len = strlen(name), suffix = sizeof SHARD_SUFFIX - 1;
    struct k3_export_shard shard = {0};
    enum k3_code code =
        k3_export_shard_make(&run->pack->tables, run->provenance, number, &shard, err);
    if (code == K3_OK && shard.count > 0) {
        if (len <= suffix || name[0] == '.' || strcmp(name + len - suffix, SHARD_SUFFIX) != 0) {
            code = k3_fail(err, K3_ERR_MALFORMED, K3_ERROR_NO_OFFSET,
                           "'%.200s' is not a name that a shard can have", name);
        } else {
            code = begin_file(run, name, err);
        }
        if (code == K3_OK) {
            code = fill_shard(run, &shard, err);
            code = end_file(run, code, err);
        }
        run->report.shards++;
        run->report.bytes += shard.file_bytes;
    }
    k3_export_shard_done(&shard);
    return code;
}

static enum k3_code write_shards(struct export_run *run, char **index, size_t *index_len,
                                 struct k3_error *err)
{
    run->index = (struct k3_json_out){.stream = open_memstream(index, index_len)};
    struct k3_json_out *out = &run->index;
    if (!out->stream) {
        return k3_fail_no_memory(err, "tensor index");
    }
    k3_json_object_begin(out, NULL);
    k3_json_object_begin(out, "metadata");
    k3_json_u64(out, "total_size", run->total_bytes);
    k3_json_object_end(out);
    k3_json_object_begin(out, "weight_map");
    enum k3_code code = K3_OK;
    for (uint32_t i = 0; code == K3_OK && i < run->provenance->shard_count; i++) {
        code = export_shard(run, i, err);
    }
    k3_json_object_end(out);
    k3_json_object_end(out);
    if (code == K3_OK) {
        code = k3_json_out_finish(out, err);
    }
    if (fclose(out->stream) != 0 && code == K3_OK) {
        code = k3_fail_no_memory(err, "tensor index");
    }
    return code;
}

static enum k3_code write_all(struct export_run *run, struct k3_error *err)
{
    char *index = NULL;
    size_t index_len = 0;
    const struct k3_file_bundle *files = &run->pack->files;
    enum k3_code code = write_shards(run, &index, &index_len, err);
    for (unsigned i = 0; code == K3_OK && i < K3_BUNDLED_COUNT; i++) {
        if (files->files[i].bytes) {
            code = write_small(run, k3_bundled_name((enum k3_bundled_file)i), files->files[i].bytes,
                               files->files[i].len, err);
        }
    }
    if (code == K3_OK) {
        code = write_small(run, K3_SHARD_INDEX_NAME, (const uint8_t *)index, index_len, err);
    }
    free(index);
    return code;
}

static uint64_t count_bytes(const struct k3_pack_tables *tables, const struct k3_provenance *p)
{
    const uint32_t total = k3_expert_source(tables, k3_expert_total(&tables->layout), 0);
    uint64_t bytes = 0;
    for (uint32_t source = 0; source < total; source++) {
        bytes += k3_source_at(tables, p, source)->bytes;
    }
    return bytes;
}

/* A sparse pack (a rehearsal) exports to a sparse checkpoint: what it takes is what counts. */
static enum k3_code check_space(const struct export_run *run, struct k3_error *err)
{
    struct statvfs fs;
    uint64_t trunk = 0, experts = 0;
    enum k3_code code = k3_file_allocated(&run->pack->trunk, &trunk, err);
    if (code == K3_OK) {
        code = k3_file_allocated(&run->pack->experts, &experts, err);
    }
    if (code != K3_OK || statvfs(run->folder, &fs) != 0) {
        return code;
    }
    const uint64_t free_bytes = (uint64_t)fs.f_bavail * fs.f_frsize;
    const uint64_t needed =
        trunk + experts < run->total_bytes / 2 ? trunk + experts : run->total_bytes;
    if (free_bytes < needed) {
        return k3_fail(err, K3_ERR_IO, K3_ERROR_NO_OFFSET,
                       "'%s' has %" PRIu64 " bytes free, the checkpoint needs %" PRIu64,
                       run->folder, free_bytes, needed);
    }
    return K3_OK;
}

static enum k3_code export_pack(const struct k3_pack *pack, const struct k3_provenance *provenance,
                                const char *folder, const struct k3_observer *observer,
                                struct k3_export_report *out_report, struct k3_error *err)
{
    struct export_run run = {.pack = pack,
                             .provenance = provenance,
                             .folder = folder,
                             .observer = observer,
                             .file = K3_FILE_CLOSED};
    run.total_bytes = count_bytes(&pack->tables, provenance);
    k3_restorer_init(&run.restorer, &pack->tables, &pack->trunk, &pack->experts);
    enum k3_code code = k3_digest_stream_create(&run.digest, err);
    if (code == K3_OK) {
        code = check_space(&run, err);
    }
    if (code == K3_OK) {
        code = write_all(&run, err);
    }
    if (code == K3_OK) {
        *out_report = run.report;
    }
    if (run.digest) {
        k3_digest_stream_destroy(run.digest);
    }
    k3_restorer_done(&run.restorer);
    return code;
}

enum k3_code k3_export(const char *pack_folder, const char *folder,
                       const struct k3_observer *observer, struct k3_export_report *out_report,
                       struct k3_error *err)
{
    struct k3_pack pack;
    struct k3_provenance provenance = {0};
    enum k3_code code = k3_pack_open(pack_folder, &pack, err);
    if (code != K3_OK) {
        return code;
    }
    code = k3_index_provenance(&pack.sections, &pack.tables, &provenance, err);
    if (code == K3_OK) {
        code = check_folder(folder, err);
    }
    if (code == K3_OK) {
        code = export_pack(&pack, &provenance, folder, observer, out_report, err);
    }
    k3_provenance_done(&provenance);
    k3_pack_close(&pack);
    return code;
}
