/* SPDX-License-Identifier: Apache-2.0 */
#include "packer/trunk_writer.h"

#include <inttypes.h>

#include "format/base/bytes.h"
#include "format/base/ckd.h"
#include "format/pack/tiles.h"
#include "packer/census.h"
#include "packer/sparse_write.h"
#include "packer/transpose.h"

#define PIECE_BYTES (UINT64_C(8) << 20)
#define TILE_ROWS   16U

/* One source tensor on its way. */
struct job {
    struct k3_trunk_writer *writer;
    const struct k3_trunk_tensor *tensor; /* the first stored one */
    const struct k3_source_record *record;
    uint32_t source;
};

enum k3_code k3_trunk_writer_init(struct k3_trunk_writer *writer, struct k3_pack_tables *tables,
                                  const struct k3_provenance *provenance,
                                  const struct k3_file *file, struct k3_source_reader *reader,
                                  struct k3_error *err)
{
    *writer = (struct k3_trunk_writer){
        .tables = tables, .provenance = provenance, .file = file, .reader = reader};
    return k3_digest_stream_create(&writer->digest, err);
}

void k3_trunk_writer_done(struct k3_trunk_writer *writer)
{
    if (writer->digest) {
        k3_digest_stream_destroy(writer->digest);
    }
    k3_buffer_done(&writer->source);
    k3_buffer_done(&writer->stored);
    *writer = (struct k3_trunk_writer){0};
}

static enum k3_code fail_nonfinite(const struct job *job, uint64_t element, uint32_t item_bytes,
                                   struct k3_error *err)
{
    const struct k3_shard_set *set = job->writer->reader->set;
    const uint64_t at = job->record->offset + element * item_bytes;
    char name[K3_TENSOR_NAME_MAX];
    k3_source_name(job->writer->tables, job->source, name);
    return k3_fail(err, K3_ERR_DAMAGED, at,
                   "'%s': tensor '%s' element %" PRIu64 " (file byte %" PRIu64
                   ") is not a finite number; download this shard again",
                   set->shards[job->record->shard].name, name, element, at);
}

/* Reads `len` bytes of the source from `done` on and refuses what is not finite. `checked` is how
 * many elements of the tensor count at all. */
static enum k3_code read_piece(const struct job *job, uint64_t done, uint64_t len, uint64_t checked,
                               bool *out_is_zero, struct k3_error *err)
{
    struct k3_trunk_writer *w = job->writer;
    enum k3_code code = k3_buffer_reserve(&w->source, len, err);
    if (code == K3_OK) {
        code = k3_source_read(w->reader, job->record->offset + done, w->source.bytes, len,
                              w->digest, out_is_zero, err);
    }
    if (code != K3_OK || *out_is_zero) {
        return code;
    }
    const bool is_f32 = job->tensor->source_dtype == K3_DTYPE_F32;
    const uint32_t item_bytes = is_f32 ? 4 : 2;
    const uint64_t first = done / item_bytes;
    const uint64_t count = first < checked ? k3_min_u64(len / item_bytes, checked - first) : 0;
    const size_t bad = is_f32 ? k3_f32_find_nonfinite(w->source.bytes, (size_t)count)
                              : k3_bf16_find_nonfinite(w->source.bytes, (size_t)count);
    return bad == SIZE_MAX ? K3_OK : fail_nonfinite(job, first + bad, item_bytes, err);
}

static enum k3_code write_stored(const struct job *job, uint64_t offset, uint64_t len,
                                 struct k3_error *err)
{
    const struct k3_file *file = job->writer->file;
    const enum k3_code code =
        k3_write_sparse(file, offset, job->writer->stored.bytes, (size_t)len, err);
    k3_cache_write_soon(file, offset, len);
    return code;
}

/* F32: one row, whole. BF16 is widened. */
static enum k3_code write_vector(const struct job *job, struct k3_error *err)
{
    struct k3_trunk_writer *w = job->writer;
    const struct k3_trunk_tensor *t = job->tensor;
    const uint64_t checked = t->role == K3_ROLE_KDA_A_LOG ? w->tables->spec.kda_heads : t->cols;
    bool is_zero = false;
    enum k3_code code = read_piece(job, 0, job->record->bytes, checked, &is_zero, err);
    if (code != K3_OK || is_zero) {
        return code;
    }
    if (t->source_dtype == K3_DTYPE_F32) {
        return k3_write_sparse(w->file, t->file_offset, w->source.bytes, (size_t)t->stored_bytes,
                               err);
    }
    code = k3_buffer_reserve(&w->stored, t->stored_bytes, err);
    if (code != K3_OK) {
        return code;
    }
    for (size_t i = 0; i < t->cols; i++) {
        k3_le32_put(w->stored.bytes + 4 * i, (uint32_t)k3_le16_get(w->source.bytes + 2 * i) << 16);
    }
    return write_stored(job, t->file_offset, t->stored_bytes, err);
}

/* TAPS: [channel][1][tap] to [tap][channel], whole. */
static enum k3_code write_taps(const struct job *job, struct k3_error *err)
{
    struct k3_trunk_writer *w = job->writer;
    const struct k3_trunk_tensor *t = job->tensor;
    bool is_zero = false;
    enum k3_code code =
        read_piece(job, 0, job->record->bytes, (uint64_t)t->rows * t->cols, &is_zero, err);
    if (code != K3_OK || is_zero) {
        return code;
    }
    code = k3_buffer_reserve(&w->stored, t->stored_bytes, err);
    if (code != K3_OK) {
        return code;
    }
    k3_transpose_32(w->stored.bytes, w->source.bytes, t->cols, t->rows);
    return write_stored(job, t->file_offset, t->stored_bytes, err);
}

/* ROWS: as they are. */
static enum k3_code write_rows(const struct job *job, struct k3_error *err)
{
    const uint64_t total = job->record->bytes;
    for (uint64_t done = 0; done < total;) {
        const uint64_t len = k3_min_u64(PIECE_BYTES, total - done);
        bool is_zero = false;
        enum k3_code code = read_piece(job, done, len, total / 2, &is_zero, err);
        if (code == K3_OK && !is_zero) {
            code = k3_write_sparse(job->writer->file, job->tensor->file_offset + done,
                                   job->writer->source.bytes, (size_t)len, err);
        }
        if (code != K3_OK) {
            return code;
        }
        done += len;
    }
    return K3_OK;
}

/* Tiles of `rows` rows that lie at `source`; returns their bytes. */
static uint64_t make_tiles(uint8_t *out_tiles, const uint8_t *source, uint64_t rows, uint64_t cols)
{
    const uint64_t tile_bytes = k3_stored_matrix_bytes(K3_ENCODING_B16, TILE_ROWS, (uint32_t)cols);
    uint64_t made = 0;
    for (uint64_t row = 0; row < rows; row += TILE_ROWS) {
        k3_b16_tile_make(out_tiles + made, source + row * 2 * cols, (size_t)(2 * cols),
                         (size_t)k3_min_u64(TILE_ROWS, rows - row), (size_t)cols);
        made += tile_bytes;
    }
    return made;
}

/* B16, one matrix: whole tiles, as many as a piece holds. */
static enum k3_code write_matrix(const struct job *job, struct k3_error *err)
{
    struct k3_trunk_writer *w = job->writer;
    const struct k3_trunk_tensor *t = job->tensor;
    const uint64_t row_bytes = 2 * (uint64_t)t->cols;
    const uint64_t tile_bytes = k3_stored_matrix_bytes(K3_ENCODING_B16, TILE_ROWS, t->cols);
    const uint64_t tiles = k3_max_u64(1, PIECE_BYTES / (TILE_ROWS * row_bytes));
    enum k3_code code = k3_buffer_reserve(&w->stored, tiles * tile_bytes, err);
    for (uint64_t row = 0; code == K3_OK && row < t->rows; row += tiles * TILE_ROWS) {
        const uint64_t rows = k3_min_u64(tiles * TILE_ROWS, t->rows - row);
        bool is_zero = false;
        code = read_piece(job, row * row_bytes, rows * row_bytes, (uint64_t)t->rows * t->cols,
                          &is_zero, err);
        if (code == K3_OK && !is_zero) {
            const uint64_t made = make_tiles(w->stored.bytes, w->source.bytes, rows, t->cols);
            code = write_stored(job, t->file_offset + row / TILE_ROWS * tile_bytes, made, err);
        }
    }
    return code;
}

/* kv_b_proj: per head, the key rows transposed and the value rows as they are, both as tiles. */
static enum k3_code write_kv_b(const struct job *job, struct k3_error *err)
{
    struct k3_trunk_writer *w = job->writer;
    const struct k3_trunk_tensor *key = job->tensor, *value = key + 1;
    const uint64_t rank = key->rows, dn = key->cols, dv = value->rows;
    const uint64_t key_bytes = k3_stored_matrix_bytes(K3_ENCODING_B16, key->rows, key->cols);
    const uint64_t value_bytes = k3_stored_matrix_bytes(K3_ENCODING_B16, value->rows, value->cols);
    const uint64_t head_bytes = 2 * (dn + dv) * rank;
    const uint64_t elements = key->matrix_count * (dn + dv) * rank;
    const uint64_t turned_at = key_bytes + value_bytes;
    enum k3_code code = k3_buffer_reserve(&w->stored, turned_at + 2 * dn * rank, err);
    for (uint64_t head = 0; code == K3_OK && head < key->matrix_count; head++) {
        bool is_zero = false;
        code = read_piece(job, head * head_bytes, head_bytes, elements, &is_zero, err);
        if (code != K3_OK || is_zero) {
            continue;
        }
        uint8_t *turned = w->stored.bytes + turned_at;
        k3_transpose_16(turned, w->source.bytes, dn, rank);
        (void)make_tiles(w->stored.bytes, turned, rank, dn);
        (void)make_tiles(w->stored.bytes + key_bytes, w->source.bytes + 2 * dn * rank, dv, rank);
        code = write_stored(job, key->file_offset + head * key_bytes, key_bytes, err);
        if (code == K3_OK) {
            code = k3_write_sparse(w->file, value->file_offset + head * value_bytes,
                                   w->stored.bytes + key_bytes, (size_t)value_bytes, err);
        }
    }
    return code;
}

static enum k3_code write_encoding(const struct job *job, struct k3_error *err)
{
    switch ((enum k3_encoding)job->tensor->encoding) {
    case K3_ENCODING_F32:
        return write_vector(job, err);
    case K3_ENCODING_TAPS:
        return write_taps(job, err);
    case K3_ENCODING_ROWS:
        return write_rows(job, err);
    case K3_ENCODING_B16:
        break;
    }
    return job->tensor->role == K3_ROLE_MLA_KV_B_KEY ? write_kv_b(job, err)
                                                     : write_matrix(job, err);
}

enum k3_code k3_trunk_write(struct k3_trunk_writer *writer, uint32_t source,
                            struct k3_digest *out_digest, struct k3_error *err)
{
    const struct job job = {.writer = writer,
                            .tensor = k3_source_first_tensor(writer->tables, source),
                            .record = &writer->provenance->trunk[source],
                            .source = source};
    k3_digest_stream_reset(writer->digest);
    const enum k3_code code = write_encoding(&job, err);
    if (code == K3_OK) {
        *out_digest = k3_digest_stream_value(writer->digest);
    }
    return code;
}

uint64_t k3_trunk_block_bytes(const struct k3_trunk_extent *extent, uint32_t block)
{
    return k3_min_u64(K3_TRUNK_BLOCK_BYTES, extent->used_bytes - block * K3_TRUNK_BLOCK_BYTES);
}

enum k3_code k3_trunk_digest_block(const struct k3_trunk_extent *extent, uint32_t block,
                                   const struct k3_file *file, struct k3_buffer *scratch,
                                   struct k3_digest *out_digest, struct k3_error *err)
{
    const uint64_t len = k3_trunk_block_bytes(extent, block);
    enum k3_code code = k3_buffer_reserve(scratch, K3_TRUNK_BLOCK_BYTES, err);
    if (code == K3_OK) {
        code = k3_file_read(file, extent->file_offset + block * K3_TRUNK_BLOCK_BYTES,
                            scratch->bytes, (size_t)len, err);
    }
    if (code == K3_OK) {
        *out_digest = k3_digest_of(scratch->bytes, (size_t)len);
    }
    return code;
}
