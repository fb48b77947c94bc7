/* SPDX-License-Identifier: Apache-2.0 */
#include "packer/restore.h"

#include <inttypes.h>

#include "format/base/bytes.h"
#include "format/base/ckd.h"
#include "format/pack/provenance.h"
#include "format/pack/superblock.h"
#include "format/pack/tiles.h"
#include "packer/transpose.h"

#define PIECE_BYTES (UINT64_C(8) << 20)
#define TILE_ROWS   16U

/* One source tensor on its way back. */
struct job {
    struct k3_restorer *r;
    const struct k3_trunk_tensor *tensor; /* the first stored one */
    k3_bytes_sink sink;
    void *user;
};

void k3_restorer_init(struct k3_restorer *restorer, const struct k3_pack_tables *tables,
                      const struct k3_file *trunk, const struct k3_file *experts)
{
    *restorer = (struct k3_restorer){.tables = tables, .trunk = trunk, .experts = experts};
    restorer->shape = k3_expert_shape_of(&tables->spec);
}

void k3_restorer_done(struct k3_restorer *restorer)
{
    k3_buffer_done(&restorer->stored);
    k3_buffer_done(&restorer->source);
    k3_buffer_done(&restorer->again);
    *restorer = (struct k3_restorer){0};
}

static enum k3_code fail_padding(enum k3_file_kind kind, uint64_t offset, struct k3_error *err)
{
    return k3_fail(err, K3_ERR_DAMAGED, offset, "%s: padding near byte %" PRIu64 " is not zero",
                   k3_file_kind_name(kind), offset);
}

static enum k3_code read_stored(struct k3_restorer *r, uint64_t offset, uint64_t len,
                                struct k3_error *err)
{
    enum k3_code code = k3_buffer_reserve(&r->stored, len, err);
    if (code == K3_OK) {
        code = k3_file_read(r->trunk, offset, r->stored.bytes, (size_t)len, err);
    }
    return code;
}

static enum k3_code restore_vector(const struct job *job, struct k3_error *err)
{
    struct k3_restorer *r = job->r;
    const struct k3_trunk_tensor *t = job->tensor;
    enum k3_code code = read_stored(r, t->file_offset, t->stored_bytes, err);
    if (code != K3_OK) {
        return code;
    }
    if (t->source_dtype == K3_DTYPE_F32) {
        return job->sink(job->user, r->stored.bytes, t->stored_bytes, err);
    }
    code = k3_buffer_reserve(&r->source, 2 * (uint64_t)t->cols, err);
    for (size_t i = 0; code == K3_OK && i < t->cols; i++) {
        const uint32_t bits = k3_le32_get(r->stored.bytes + 4 * i);
        if ((bits & 0xffff) != 0) {
            return fail_padding(K3_FILE_TRUNK, t->file_offset + 4 * i, err);
        }
        k3_le16_put(r->source.bytes + 2 * i, (uint16_t)(bits >> 16));
    }
    return code == K3_OK ? job->sink(job->user, r->source.bytes, 2 * (uint64_t)t->cols, err) : code;
}

static enum k3_code restore_taps(const struct job *job, struct k3_error *err)
{
    struct k3_restorer *r = job->r;
    const struct k3_trunk_tensor *t = job->tensor;
    enum k3_code code = read_stored(r, t->file_offset, t->stored_bytes, err);
    if (code == K3_OK) {
        code = k3_buffer_reserve(&r->source, t->stored_bytes, err);
    }
    if (code == K3_OK) {
        k3_transpose_32(r->source.bytes, r->stored.bytes, t->rows, t->cols);
        code = job->sink(job->user, r->source.bytes, t->stored_bytes, err);
    }
    return code;
}

static enum k3_code restore_rows(const struct job *job, struct k3_error *err)
{
    enum k3_code code = K3_OK;
    for (uint64_t done = 0; code == K3_OK && done < job->tensor->stored_bytes;) {
        const uint64_t len = k3_min_u64(PIECE_BYTES, job->tensor->stored_bytes - done);
        code = read_stored(job->r, job->tensor->file_offset + done, len, err);
        if (code == K3_OK) {
            code = job->sink(job->user, job->r->stored.bytes, len, err);
        }
        done += len;
    }
    return code;
}

/* Tiles at `tiles`, which lie at `offset` in the trunk, to rows; makes each again to see that it
 * held nothing else. */
static enum k3_code unmake_tiles(struct k3_restorer *r, const uint8_t *tiles, uint64_t offset,
                                 uint64_t rows, uint64_t cols, uint8_t *out_rows,
                                 struct k3_error *err)
{
    const uint64_t tile_bytes = k3_stored_matrix_bytes(K3_ENCODING_B16, TILE_ROWS, (uint32_t)cols);
    const enum k3_code code = k3_buffer_reserve(&r->again, tile_bytes, err);
    if (code != K3_OK) {
        return code;
    }
    for (uint64_t row = 0, at = 0; row < rows; row += TILE_ROWS, at += tile_bytes) {
        const size_t count = (size_t)k3_min_u64(TILE_ROWS, rows - row);
        uint8_t *out = out_rows + row * 2 * cols;
        k3_b16_tile_unmake(out, (size_t)(2 * cols), count, (size_t)cols, tiles + at);
        if (count < TILE_ROWS || cols % 128 != 0) {
            k3_b16_tile_make(r->again.bytes, out, (size_t)(2 * cols), count, (size_t)cols);
            if (memcmp(r->again.bytes, tiles + at, (size_t)tile_bytes) != 0) {
                return fail_padding(K3_FILE_TRUNK, offset + at, err);
            }
        }
    }
    return K3_OK;
}

static enum k3_code restore_matrix(const struct job *job, struct k3_error *err)
{
    struct k3_restorer *r = job->r;
    const struct k3_trunk_tensor *t = job->tensor;
    const uint64_t tile_bytes = k3_stored_matrix_bytes(K3_ENCODING_B16, TILE_ROWS, t->cols);
    const uint64_t rows_max = k3_max_u64(1, PIECE_BYTES / tile_bytes) * TILE_ROWS;
    enum k3_code code = k3_buffer_reserve(&r->source, rows_max * 2 * t->cols, err);
    for (uint64_t row = 0; code == K3_OK && row < t->rows; row += rows_max) {
        const uint64_t rows = k3_min_u64(rows_max, t->rows - row);
        const uint64_t offset = t->file_offset + row / TILE_ROWS * tile_bytes;
        code = read_stored(r, offset, (rows + TILE_ROWS - 1) / TILE_ROWS * tile_bytes, err);
        if (code == K3_OK) {
            code = unmake_tiles(r, r->stored.bytes, offset, rows, t->cols, r->source.bytes, err);
        }
        if (code == K3_OK) {
            code = job->sink(job->user, r->source.bytes, rows * 2 * t->cols, err);
        }
    }
    return code;
}

/* One head of kv_b_proj: `out_rows` gets its key rows and then its value rows. */
static enum k3_code restore_head(struct k3_restorer *r, const struct k3_trunk_tensor *key,
                                 uint64_t head, uint8_t *out_rows, struct k3_error *err)
{
    const struct k3_trunk_tensor *value = key + 1;
    const uint64_t key_bytes = k3_stored_matrix_bytes(K3_ENCODING_B16, key->rows, key->cols);
    const uint64_t value_bytes = k3_stored_matrix_bytes(K3_ENCODING_B16, value->rows, value->cols);
    const uint64_t dn_bytes = 2 * (uint64_t)key->rows * key->cols;
    uint8_t *turned = out_rows + dn_bytes + 2 * (uint64_t)value->rows * value->cols;
    uint64_t offset = key->file_offset + head * key_bytes;
    enum k3_code code = read_stored(r, offset, key_bytes, err);
    if (code == K3_OK) {
        code = unmake_tiles(r, r->stored.bytes, offset, key->rows, key->cols, turned, err);
    }
    if (code != K3_OK) {
        return code;
    }
    k3_transpose_16(out_rows, turned, key->rows, key->cols);
    offset = value->file_offset + head * value_bytes;
    code = read_stored(r, offset, value_bytes, err);
    if (code == K3_OK) {
        code = unmake_tiles(r, r->stored.bytes, offset, value->rows, value->cols,
                            out_rows + dn_bytes, err);
    }
    return code;
}

static enum k3_code restore_kv_b(const struct job *job, struct k3_error *err)
{
    const struct k3_trunk_tensor *key = job->tensor, *value = key + 1;
    const uint64_t dn_bytes = 2 * (uint64_t)key->rows * key->cols;
    const uint64_t head_bytes = dn_bytes + 2 * (uint64_t)value->rows * value->cols;
    enum k3_code code = k3_buffer_reserve(&job->r->source, head_bytes + dn_bytes, err);
    for (uint64_t head = 0; code == K3_OK && head < key->matrix_count; head++) {
        code = restore_head(job->r, key, head, job->r->source.bytes, err);
        if (code == K3_OK) {
            code = job->sink(job->user, job->r->source.bytes, head_bytes, err);
        }
    }
    return code;
}

enum k3_code k3_restore_trunk(struct k3_restorer *restorer, uint32_t source, k3_bytes_sink sink,
                              void *user, struct k3_error *err)
{
    const struct job job = {.r = restorer,
                            .tensor = k3_source_first_tensor(restorer->tables, source),
                            .sink = sink,
                            .user = user};
    restorer->has_expert = false; /* the buffer is used for something else now */
    switch ((enum k3_encoding)job.tensor->encoding) {
    case K3_ENCODING_F32:
        return restore_vector(&job, err);
    case K3_ENCODING_TAPS:
        return restore_taps(&job, err);
    case K3_ENCODING_ROWS:
        return restore_rows(&job, err);
    case K3_ENCODING_B16:
        break;
    }
    return job.tensor->role == K3_ROLE_MLA_KV_B_KEY ? restore_kv_b(&job, err)
                                                    : restore_matrix(&job, err);
}

enum k3_code k3_restore_expert(struct k3_restorer *restorer, uint64_t expert,
                               const uint8_t **out_source, struct k3_error *err)
{
    const struct k3_expert_layout *layout = &restorer->tables->layout;
    const uint64_t used = layout->used_bytes;
    const uint64_t offset = k3_expert_offset(layout, expert);
    if (restorer->has_expert && restorer->expert == expert) {
        *out_source = restorer->source.bytes;
        return K3_OK;
    }
    restorer->has_expert = false;
    enum k3_code code = k3_buffer_reserve(&restorer->stored, used, err);
    if (code == K3_OK) {
        code = k3_buffer_reserve(&restorer->source, restorer->shape.source_bytes, err);
    }
    if (code == K3_OK) {
        code = k3_buffer_reserve(&restorer->again, used, err);
    }
    if (code == K3_OK) {
        code = k3_file_read(restorer->experts, offset, restorer->stored.bytes, (size_t)used, err);
    }
    if (code != K3_OK) {
        return code;
    }
    k3_expert_decode(&restorer->shape, layout, restorer->stored.bytes, restorer->source.bytes);
    if (layout->used_bytes != restorer->shape.source_bytes) { /* there is padding */
        memset(restorer->again.bytes, 0, (size_t)used);
        k3_expert_encode(&restorer->shape, layout, restorer->source.bytes, restorer->again.bytes);
        if (memcmp(restorer->again.bytes, restorer->stored.bytes, (size_t)used) != 0) {
            return fail_padding(K3_FILE_EXPERTS, offset, err);
        }
    }
    restorer->has_expert = true;
    restorer->expert = expert;
    *out_source = restorer->source.bytes;
    return K3_OK;
}

enum k3_code k3_restore_source(struct k3_restorer *restorer, uint32_t source, k3_bytes_sink sink,
                               void *user, struct k3_error *err)
{
    if (source < restorer->tables->source_count) {
        return k3_restore_trunk(restorer, source, sink, user, err);
    }
    const uint32_t at = source - restorer->tables->source_count;
    const unsigned part = at % K3_EXPERT_PARTS;
    const uint8_t *bytes = NULL;
    const enum k3_code code = k3_restore_expert(restorer, at / K3_EXPERT_PARTS, &bytes, err);
    return code == K3_OK ? sink(user, bytes + restorer->shape.part_offset[part],
                                restorer->shape.part_bytes[part], err)
                         : code;
}
