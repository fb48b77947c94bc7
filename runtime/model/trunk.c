/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/model/trunk.h"

#include "format/base/assert.h"

/* Pieces are cut at multiples of this many tiles where they can be. */
#define PIECE_TILES 8U

static const struct k3_trunk_tensor *find(const struct k3_trunk *trunk, uint32_t layer,
                                          unsigned role)
{
    const struct k3_trunk_tensor *tensor = k3_trunk_find(trunk->tables, layer, role);
    k3_assert(tensor);
    return tensor;
}

struct k3_matmul k3_trunk_product(const struct k3_trunk *trunk, uint32_t layer, unsigned role,
                                  size_t tokens, const float *x, size_t x_stride, float *y,
                                  size_t y_stride)
{
    const struct k3_trunk_tensor *tensor = find(trunk, layer, role);
    k3_assert(tensor->encoding == K3_ENCODING_B16);
    const size_t cols_padded = k3_padded(tensor->cols);
    return (struct k3_matmul){
        .kind = K3_MATMUL_B16,
        .run = {.tile_stride_bytes = k3_b16_tile_bytes(cols_padded),
                .tile_count = (tensor->rows + K3_TILE_ROWS - 1) / K3_TILE_ROWS,
                .cols_padded = cols_padded},
        .trunk_offset = tensor->file_offset,
        .tokens = tokens,
        .x = x,
        .x_stride = x_stride,
        .y = y,
        .y_stride = y_stride,
    };
}

/* `count` tiles of a product from tile `first` on. */
static struct k3_matmul part_of(const struct k3_matmul *product, size_t first, size_t count)
{
    struct k3_matmul part = *product;
    part.run.tile_count = count;
    part.trunk_offset += first * part.run.tile_stride_bytes;
    if (part.kind == K3_MATMUL_ROUTER) {
        part.y_double += first * K3_TILE_ROWS;
    } else {
        part.y += first * K3_TILE_ROWS;
    }
    return part;
}

/* How many of `left` tiles go into `room` bytes. */
static size_t tiles_within(uint64_t room, size_t tile_bytes, size_t left)
{
    const uint64_t fit = room / tile_bytes;
    if (fit >= left) {
        return left;
    }
    return (size_t)(fit < PIECE_TILES ? fit : fit / PIECE_TILES * PIECE_TILES);
}

/* How far a list of products has been cut. */
struct cut {
    size_t product, tile;
};

/* The next piece: parts of products whose bytes, gaps included, are at most the source's run, but
 * at least one tile. Returns the number of parts. */
static size_t cut_piece(const struct k3_trunk *trunk, const struct k3_matmul *products,
                        size_t count, struct cut *cut, uint64_t *out_bytes)
{
    const uint64_t limit = trunk->source.run_bytes;
    uint64_t start = 0, end = 0;
    size_t parts = 0;
    while (cut->product < count) {
        const struct k3_matmul *product = &products[cut->product];
        const size_t tile_bytes = product->run.tile_stride_bytes;
        const size_t left = product->run.tile_count - cut->tile;
        const uint64_t at = product->trunk_offset + cut->tile * tile_bytes;
        start = parts == 0 ? at : start;
        k3_assert(at >= end);
        size_t take = at - start < limit ? tiles_within(limit - (at - start), tile_bytes, left) : 0;
        take = take == 0 && parts == 0 ? 1 : take;
        if (take == 0) {
            break;
        }
        trunk->piece[parts++] = part_of(product, cut->tile, take);
        end = at + take * tile_bytes;
        cut->tile += take;
        if (take < left) {
            break;
        }
        *cut = (struct cut){cut->product + 1, 0};
    }
    *out_bytes = end - start;
    return parts;
}

enum k3_code k3_trunk_multiply(const struct k3_trunk *trunk, const struct k3_matmul *products,
                               size_t count, struct k3_error *err)
{
    const struct k3_weight_source *source = &trunk->source;
    struct cut cut = {0, 0};
    while (cut.product < count) {
        uint64_t bytes = 0;
        const size_t parts = cut_piece(trunk, products, count, &cut, &bytes);
        const uint64_t start = trunk->piece[0].trunk_offset;
        const uint8_t *base = NULL;
        const enum k3_code code = source->trunk_acquire(source->self, start, bytes, &base, err);
        if (code != K3_OK) {
            return code;
        }
        for (size_t i = 0; i < parts; i++) {
            trunk->piece[i].run.tiles = base + (trunk->piece[i].trunk_offset - start);
        }
        k3_compute_matmuls(&trunk->compute, trunk->piece, parts);
        source->trunk_release(source->self, start, bytes);
    }
    return K3_OK;
}

enum k3_code k3_trunk_span_acquire(const struct k3_trunk *trunk, uint32_t layer, unsigned first,
                                   unsigned last, struct k3_trunk_span *out_span,
                                   struct k3_error *err)
{
    const struct k3_trunk_tensor *from = find(trunk, layer, first), *to = find(trunk, layer, last);
    struct k3_trunk_span span = {.layer = layer, .file_offset = from->file_offset};
    span.bytes = to->file_offset + to->stored_bytes - from->file_offset;
    const enum k3_code code = trunk->source.trunk_acquire(trunk->source.self, span.file_offset,
                                                          span.bytes, &span.base, err);
    if (code == K3_OK) {
        *out_span = span;
    }
    return code;
}

void k3_trunk_span_release(const struct k3_trunk *trunk, const struct k3_trunk_span *span)
{
    trunk->source.trunk_release(trunk->source.self, span->file_offset, span->bytes);
}

const float *k3_trunk_vector(const struct k3_trunk *trunk, const struct k3_trunk_span *span,
                             unsigned role)
{
    const struct k3_trunk_tensor *tensor = find(trunk, span->layer, role);
    k3_assert(tensor->encoding == K3_ENCODING_F32 || tensor->encoding == K3_ENCODING_TAPS);
    k3_assert(tensor->file_offset >= span->file_offset &&
              tensor->file_offset + tensor->stored_bytes <= span->file_offset + span->bytes);
    /* Tensors start on 4096 bytes of page-aligned memory, so this is aligned. */
    return (const float *)(const void *)(span->base + (tensor->file_offset - span->file_offset));
}
