/* SPDX-License-Identifier: Apache-2.0 */
#include "packer/source_reader.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "format/base/assert.h"
#include "format/base/bytes.h"
#include "format/base/ckd.h"
#include "packer/hole.h"

/* One read, one report. */
#define STEP_BYTES (UINT64_C(8) << 20)

enum k3_code k3_source_reader_init(struct k3_source_reader *reader, const struct k3_shard_set *set,
                                   const struct k3_observer *observer, struct k3_error *err)
{
    *reader = (struct k3_source_reader){
        .set = set, .observer = observer, .file = K3_FILE_CLOSED, .direct = {.fd = -1}};
    for (size_t i = 0; i < set->shard_count; i++) {
        reader->total_bytes += set->shards[i].file_bytes;
    }
    return k3_digest_stream_create(&reader->whole, err);
}

void k3_source_reader_done(struct k3_source_reader *reader)
{
    if (reader->set) {
        k3_direct_close(&reader->direct);
        k3_file_close(&reader->file);
    }
    k3_buffer_done(&reader->window);
    if (reader->whole) {
        k3_digest_stream_destroy(reader->whole);
    }
    *reader = (struct k3_source_reader){.file = K3_FILE_CLOSED};
}

enum k3_code k3_source_seek(struct k3_source_reader *reader, uint32_t shard, struct k3_error *err)
{
    if (reader->file.fd >= 0 && reader->shard == shard) {
        return K3_OK;
    }
    k3_assert(!reader->is_sequential);
    k3_direct_close(&reader->direct);
    k3_file_close(&reader->file);
    const enum k3_code code = k3_shard_open(&reader->set->shards[shard], &reader->file, err);
    if (code == K3_OK) {
        reader->shard = shard;
        reader->data_from = reader->data_known_at = 0;
        reader->behind = (struct k3_drop_behind){0};
        reader->ahead = (struct k3_read_ahead){0};
    }
    return code;
}

enum k3_code k3_source_begin(struct k3_source_reader *reader, uint32_t shard, struct k3_error *err)
{
    reader->is_sequential = false;
    const enum k3_code code = k3_source_seek(reader, shard, err);
    if (code == K3_OK) {
        reader->is_sequential = true;
        reader->window_bytes = 0;
        k3_direct_close(&reader->direct);
        k3_direct_open(&reader->file, &reader->direct);
        reader->at = 0;
        k3_digest_stream_reset(reader->whole);
        if (reader->sha256) {
            k3_sha256_reset(reader->sha256);
        }
        k3_cache_expect_sequential(&reader->file);
    }
    return code;
}

/* The identity that the census saw, once more after the last byte. */
static enum k3_code check_unchanged(const struct k3_source_reader *reader, struct k3_error *err)
{
    const struct k3_shard *shard = &reader->set->shards[reader->shard];
    struct stat st;
    if (fstat(reader->file.fd, &st) != 0) {
        return k3_fail_errno(err, K3_ERR_IO, errno, K3_ERROR_NO_OFFSET, "cannot stat '%s'",
                             shard->path);
    }
    const int64_t modified_ns =
        (int64_t)st.st_mtim.tv_sec * INT64_C(1000000000) + (int64_t)st.st_mtim.tv_nsec;
    if ((uint64_t)st.st_size != shard->file_bytes || modified_ns != shard->modified_ns) {
        return k3_fail(err, K3_ERR_DAMAGED, K3_ERROR_NO_OFFSET,
                       "'%s' changed while it was read; run again when it is at rest", shard->path);
    }
    return K3_OK;
}

enum k3_code k3_source_end(struct k3_source_reader *reader, struct k3_digest *out_digest,
                           struct k3_error *err)
{
    k3_assert(reader->is_sequential && reader->at == reader->file.file_bytes);
    reader->is_sequential = false;
    k3_cache_drop(&reader->file, 0, reader->at);
    const enum k3_code code = check_unchanged(reader, err);
    if (code == K3_OK) {
        *out_digest = k3_digest_stream_value(reader->whole);
    }
    return code;
}

bool k3_source_is_hole(struct k3_source_reader *reader, uint64_t offset, uint64_t len)
{
    if (offset < reader->data_known_at || offset >= reader->data_from) {
        reader->data_known_at = offset;
        reader->data_from = k3_file_next_data(&reader->file, offset);
    }
    return k3_range_fits(offset, len, reader->data_from);
}

static const uint8_t zeros[16384];

static void update_with_zeros(struct k3_digest_stream *stream, uint64_t len)
{
    for (uint64_t done = 0; done < len; done += sizeof zeros) {
        k3_digest_stream_update(stream, zeros, (size_t)k3_min_u64(sizeof zeros, len - done));
    }
}

static void update_sha256(struct k3_source_reader *reader, const uint8_t *bytes, uint64_t len,
                          bool is_hole)
{
    for (uint64_t done = 0; is_hole && done < len; done += sizeof zeros) {
        k3_sha256_update(reader->sha256, zeros, (size_t)k3_min_u64(sizeof zeros, len - done));
    }
    if (!is_hole) {
        k3_sha256_update(reader->sha256, bytes, (size_t)len);
    }
}

static enum k3_code read_plain(struct k3_source_reader *reader, uint64_t offset, uint8_t *bytes,
                               uint64_t len, struct k3_error *err)
{
    if (reader->is_sequential) {
        k3_read_ahead(&reader->ahead, &reader->file, offset);
    }
    return k3_file_read(&reader->file, offset, bytes, (size_t)len, err);
}

/* Tensors start anywhere, direct reads on pages: the file goes through a window of whole pages. */
static enum k3_code read_windows(struct k3_source_reader *reader, uint64_t offset, uint8_t *bytes,
                                 uint64_t len, struct k3_error *err)
{
    enum k3_code code = k3_buffer_reserve(&reader->window, STEP_BYTES, err);
    while (code == K3_OK && len > 0) {
        const uint64_t into = offset - reader->window_at;
        if (offset >= reader->window_at && into < reader->window_bytes) {
            const uint64_t count = k3_min_u64(len, reader->window_bytes - into);
            memcpy(bytes, reader->window.bytes + into, (size_t)count);
            bytes += count;
            offset += count;
            len -= count;
            continue;
        }
        reader->window_at = offset / K3_DIRECT_ALIGN * K3_DIRECT_ALIGN;
        reader->window_bytes = k3_min_u64(STEP_BYTES, reader->file.file_bytes - reader->window_at);
        code = k3_direct_read(&reader->direct, reader->window_at, reader->window.bytes,
                              reader->window_bytes, err);
        reader->window_bytes = code == K3_OK ? reader->window_bytes : 0;
    }
    return code;
}

/* One step: read or recognise, digest, report. */
static enum k3_code read_step(struct k3_source_reader *reader, uint64_t offset, uint8_t *bytes,
                              uint64_t len, struct k3_digest_stream *digest, bool *out_is_hole,
                              struct k3_error *err)
{
    *out_is_hole = k3_source_is_hole(reader, offset, len);
    if (!*out_is_hole) {
        const enum k3_code code = reader->is_sequential && reader->direct.fd >= 0
                                      ? read_windows(reader, offset, bytes, len, err)
                                      : read_plain(reader, offset, bytes, len, err);
        if (code != K3_OK) {
            return code;
        }
    }
    struct k3_digest_stream *streams[2] = {digest, reader->is_sequential ? reader->whole : NULL};
    for (unsigned i = 0; i < 2; i++) {
        if (streams[i] && *out_is_hole) {
            update_with_zeros(streams[i], len);
        } else if (streams[i]) {
            k3_digest_stream_update(streams[i], bytes, (size_t)len);
        }
    }
    if (reader->is_sequential && reader->sha256) {
        update_sha256(reader, bytes, len, *out_is_hole);
    }
    if (reader->is_sequential) {
        k3_assert(offset == reader->at);
        reader->at += len;
        reader->done_bytes += len;
        k3_drop_behind(&reader->behind, &reader->file, reader->at);
    }
    const char *name = reader->set->shards[reader->shard].name;
    if (!k3_report(reader->observer, "pack", name, reader->done_bytes, reader->total_bytes)) {
        return k3_fail(err, K3_ERR_INTERRUPTED, K3_ERROR_NO_OFFSET, "stopped while packing '%s'",
                       name);
    }
    return K3_OK;
}

enum k3_code k3_source_read(struct k3_source_reader *reader, uint64_t offset, uint8_t *out_bytes,
                            uint64_t len, struct k3_digest_stream *digest, bool *out_is_zero,
                            struct k3_error *err)
{
    bool was_read = false, holes_skipped = false;
    for (uint64_t done = 0; done < len;) {
        const uint64_t step = k3_min_u64(STEP_BYTES, len - done);
        bool hole = false;
        const enum k3_code code =
            read_step(reader, offset + done, out_bytes + done, step, digest, &hole, err);
        if (code != K3_OK) {
            return code;
        }
        if (!hole && holes_skipped) {
            memset(out_bytes, 0, (size_t)done);
            holes_skipped = false;
        }
        if (hole && was_read) {
            memset(out_bytes + done, 0, (size_t)step);
        }
        was_read = was_read || !hole;
        holes_skipped = holes_skipped || (hole && !was_read);
        done += step;
    }
    *out_is_zero = !was_read || k3_bytes_are_zero(out_bytes, (size_t)len);
    return K3_OK;
}
