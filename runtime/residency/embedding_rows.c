/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/residency/embedding_rows.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "format/base/assert.h"
#include "format/base/ckd.h"

#define PIECE_BYTES ((size_t)256 << 10)

static const struct k3_trunk_extent *top_of(const struct k3_pack *pack)
{
    return &pack->tables.extents[pack->tables.extent_count - 1];
}

enum k3_code k3_embedding_rows_open(const struct k3_pack *pack, enum k3_check_policy policy,
                                    struct k3_embedding_rows *out_rows, struct k3_error *err)
{
    struct k3_embedding_rows r = {.pack = pack, .policy = policy, .file = K3_FILE_CLOSED};
    r.row_room = 2 * (size_t)pack->tables.spec.hidden;
    enum k3_code code = k3_file_open_read(pack->trunk.path, &r.file, err);
    if (code == K3_OK) {
        code = k3_digest_stream_create(&r.digest, err);
    }
    if (code == K3_OK) {
        r.is_checked = calloc(k3_extent_block_count(top_of(pack)), 1);
        r.row = malloc(r.row_room);
        r.piece = malloc(PIECE_BYTES);
        code = r.is_checked && r.row && r.piece ? K3_OK : k3_fail_no_memory(err, "embedding");
    }
    if (code != K3_OK) {
        k3_embedding_rows_close(&r);
        return code;
    }
    (void)posix_fadvise(r.file.fd, 0, 0, POSIX_FADV_RANDOM);
    *out_rows = r;
    return K3_OK;
}

void k3_embedding_rows_close(struct k3_embedding_rows *rows)
{
    if (rows->file.path) {
        k3_file_close(&rows->file);
    }
    k3_digest_stream_destroy(rows->digest);
    free(rows->is_checked);
    free(rows->row);
    free(rows->piece);
    *rows = (struct k3_embedding_rows){.file = K3_FILE_CLOSED};
}

static void forget(struct k3_embedding_rows *r, uint64_t offset, uint64_t bytes)
{
    r->read_bytes += bytes;
    (void)posix_fadvise(r->file.fd, (off_t)offset, (off_t)bytes, POSIX_FADV_DONTNEED);
}

/* Copies what [at, at + len) and the row have in common. */
static void keep_common(struct k3_embedding_rows *r, uint64_t row_at, uint64_t row_bytes,
                        uint64_t at, const uint8_t *bytes, uint64_t len)
{
    const uint64_t from = k3_max_u64(row_at, at), to = k3_min_u64(row_at + row_bytes, at + len);
    if (from < to) {
        memcpy(r->row + (from - row_at), bytes + (from - at), (size_t)(to - from));
    }
}

/* The row comes from the very bytes that the digest is made of. */
static enum k3_code read_checked(struct k3_embedding_rows *r, uint32_t block, uint64_t offset,
                                 uint64_t bytes, struct k3_error *err)
{
    const struct k3_trunk_extent *top = top_of(r->pack);
    const uint64_t start = top->file_offset + block * K3_TRUNK_BLOCK_BYTES;
    const uint64_t len =
        k3_min_u64(K3_TRUNK_BLOCK_BYTES, top->file_offset + top->used_bytes - start);
    enum k3_code code = K3_OK;
    k3_digest_stream_reset(r->digest);
    for (uint64_t done = 0; code == K3_OK && done < len; done += PIECE_BYTES) {
        const size_t step = (size_t)k3_min_u64(PIECE_BYTES, len - done);
        code = k3_file_read(&r->file, start + done, r->piece, step, err);
        if (code == K3_OK) {
            k3_digest_stream_update(r->digest, r->piece, step);
            keep_common(r, offset, bytes, start + done, r->piece, step);
        }
    }
    forget(r, start, len);
    if (code != K3_OK) {
        return code;
    }
    const struct k3_digest found = k3_digest_stream_value(r->digest);
    code = k3_check_block(r->pack, r->pack->tables.extent_count - 1, block, &found, err);
    if (code == K3_OK) {
        r->is_checked[block] = 1;
        r->checked_bytes += len;
    }
    return code;
}

static enum k3_code read_part(struct k3_embedding_rows *r, uint32_t block, uint64_t offset,
                              uint64_t bytes, struct k3_error *err)
{
    if (k3_check_is_due(r->policy, r->is_checked[block] != 0)) {
        return read_checked(r, block, offset, bytes, err);
    }
    const uint64_t start = top_of(r->pack)->file_offset + block * K3_TRUNK_BLOCK_BYTES;
    const uint64_t from = k3_max_u64(offset, start);
    const uint64_t to = k3_min_u64(offset + bytes, start + K3_TRUNK_BLOCK_BYTES);
    const enum k3_code code =
        k3_file_read(&r->file, from, r->row + (from - offset), (size_t)(to - from), err);
    forget(r, from, to - from);
    return code;
}

enum k3_code k3_embedding_rows_read(struct k3_embedding_rows *rows, uint64_t offset, uint64_t bytes,
                                    const uint8_t **out_bytes, struct k3_error *err)
{
    const struct k3_trunk_extent *top = top_of(rows->pack);
    k3_assert(bytes > 0 && bytes <= rows->row_room);
    const uint64_t at = offset - top->file_offset;
    enum k3_code code = K3_OK;
    for (uint64_t b = at / K3_TRUNK_BLOCK_BYTES;
         code == K3_OK && b <= (at + bytes - 1) / K3_TRUNK_BLOCK_BYTES; b++) {
        code = read_part(rows, (uint32_t)b, offset, bytes, err);
    }
    if (code == K3_OK) {
        *out_bytes = rows->row;
    }
    return code;
}
