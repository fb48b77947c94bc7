/* SPDX-License-Identifier: Apache-2.0 */
#include "format/pack/tables.h"

#include <inttypes.h>
#include <stdlib.h>

#include "format/base/assert.h"
#include "format/base/ckd.h"

uint64_t k3_stored_matrix_bytes(unsigned encoding, uint32_t rows, uint32_t cols)
{
    const uint64_t r = rows, c = cols;
    switch (encoding) {
    case K3_ENCODING_F32:
    case K3_ENCODING_TAPS:
        return 4 * r * c;
    case K3_ENCODING_ROWS:
        return 2 * r * c;
    case K3_ENCODING_B16:
        return 2 * k3_round_up(r, 16) * k3_round_up(c, 128);
    default:
        k3_assert_failed("unknown encoding", __FILE__, __LINE__);
    }
}

uint64_t k3_trunk_data_end(const struct k3_pack_tables *tables)
{
    const struct k3_trunk_extent *last = &tables->extents[tables->extent_count - 1];
    return last->file_offset + last->used_bytes;
}

uint64_t k3_experts_data_end(const struct k3_pack_tables *tables)
{
    const struct k3_expert_layout *layout = &tables->layout;
    return k3_expert_offset(layout, k3_expert_total(layout) - 1) + layout->used_bytes;
}

const struct k3_trunk_tensor *k3_trunk_find(const struct k3_pack_tables *tables, uint32_t layer,
                                            unsigned role)
{
    const uint32_t at = layer == K3_TOP_LEVEL ? tables->extent_count - 1 : layer;
    const struct k3_trunk_extent *extent = &tables->extents[at];
    for (uint32_t i = 0; i < extent->tensor_count; i++) {
        const struct k3_trunk_tensor *tensor = &tables->tensors[extent->tensor_first + i];
        if (tensor->role == role) {
            return tensor;
        }
    }
    return NULL;
}

static uint32_t layer_of_extent(const struct k3_model_spec *spec, uint32_t extent)
{
    return extent < spec->layers ? extent : K3_TOP_LEVEL;
}

static uint32_t count_tensors(const struct k3_model_spec *spec)
{
    uint32_t count = 0;
    for (uint32_t e = 0; e <= spec->layers; e++) {
        const uint32_t layer = layer_of_extent(spec, e);
        for (unsigned role = k3_role_next(spec, layer, 0); role;
             role = k3_role_next(spec, layer, role)) {
            count++;
        }
    }
    return count;
}

/* Lays one extent's tensors out; `cursor` is the file offset at which the extent starts. */
static void derive_extent(struct k3_pack_tables *t, uint32_t at, const uint32_t *a_log_len,
                          uint64_t cursor)
{
    const struct k3_model_spec *spec = &t->spec;
    const uint32_t layer = layer_of_extent(spec, at);
    struct k3_trunk_extent *extent = &t->extents[at];
    *extent = (struct k3_trunk_extent){.layer = layer,
                                       .tensor_first = t->tensor_count,
                                       .block_first = t->block_count,
                                       .file_offset = cursor};
    for (unsigned role = k3_role_next(spec, layer, 0); role;
         role = k3_role_next(spec, layer, role)) {
        const uint32_t len = role == K3_ROLE_KDA_A_LOG ? a_log_len[layer] : 0;
        const struct k3_stored_shape shape = k3_role_stored_shape(spec, layer, role, len);
        if (!k3_role_shares_source(role)) {
            t->source_count++;
        }
        struct k3_trunk_tensor *tensor = &t->tensors[t->tensor_count++];
        *tensor = (struct k3_trunk_tensor){
            .layer = layer,
            .role = (uint16_t)role,
            .encoding = (uint16_t)shape.encoding,
            .source_dtype = (uint16_t)k3_role_source_shape(spec, layer, role, len).dtype,
            .matrix_count = shape.matrix_count,
            .rows = shape.rows,
            .cols = shape.cols,
            .file_offset = cursor,
            .stored_bytes =
                shape.matrix_count * k3_stored_matrix_bytes(shape.encoding, shape.rows, shape.cols),
            .extent = at,
            .source = t->source_count - 1,
        };
        cursor = k3_round_up(cursor + tensor->stored_bytes, K3_MATRIX_ALIGN);
    }
    extent->tensor_count = t->tensor_count - extent->tensor_first;
    extent->used_bytes = cursor - extent->file_offset;
    t->block_count += k3_extent_block_count(extent);
}

static struct k3_expert_layout derive_layout(const struct k3_model_spec *spec)
{
    const uint64_t f16 = k3_round_up(spec->expert_intermediate, 16);
    const uint64_t z16 = k3_round_up(spec->latent, 16);
    struct k3_expert_layout l = {
        .first_layer = spec->dense_layers,
        .layer_count = k3_spec_moe_layers(spec),
        .expert_count = spec->experts,
        .data_offset = K3_DATA_OFFSET,
        .w13_tile_bytes = k3_round_up(spec->latent, 128) / 128 * K3_M4_SUPERBLOCK_BYTES,
        .w2_tile_bytes = k3_round_up(spec->expert_intermediate, 128) / 128 * K3_M4_SUPERBLOCK_BYTES,
    };
    l.w2_offset = k3_round_up(2 * (f16 / 16) * l.w13_tile_bytes, K3_MATRIX_ALIGN);
    l.used_bytes = k3_round_up(l.w2_offset + z16 / 16 * l.w2_tile_bytes, K3_MATRIX_ALIGN);
    l.stride =
        k3_round_up(l.used_bytes,
                    l.used_bytes < K3_EXPERT_SMALL_BELOW ? K3_EXPERT_ALIGN_SMALL : K3_EXPERT_ALIGN);
    return l;
}

/* The maxima of docs/format.md 2: a section that would outgrow them could be written and never
 * read. With them no count overflows 32 bits and no offset 63: at most 4,473,924 experts of at most
 * 1.76e12 bytes. */
static enum k3_code check_expert_total(const struct k3_expert_layout *layout, struct k3_error *err)
{
    const uint64_t max =
        K3_SECTION_RAW_MAX_BULK / ((uint64_t)K3_EXPERT_PARTS * K3_EXPERT_SOURCE_BYTES);
    if (k3_expert_total(layout) > max) {
        return k3_fail(err, K3_ERR_MALFORMED, K3_ERROR_NO_OFFSET,
                       "model has %" PRIu64 " experts, a pack holds at most %" PRIu64,
                       k3_expert_total(layout), max);
    }
    return K3_OK;
}

static enum k3_code check_block_total(const struct k3_pack_tables *t, struct k3_error *err)
{
    const uint64_t max = K3_SECTION_RAW_MAX_BULK / K3_DIGEST_BYTES;
    if (t->block_count > max) {
        return k3_fail(err, K3_ERR_MALFORMED, K3_ERROR_NO_OFFSET,
                       "trunk has more than the %" PRIu64 " blocks that a pack holds", max);
    }
    return K3_OK;
}

static enum k3_code check_a_log(const struct k3_model_spec *spec, const uint32_t *a_log_len,
                                struct k3_error *err)
{
    for (uint32_t layer = 0; layer < spec->layers; layer++) {
        if (spec->layer_kind[layer] == K3_LAYER_KDA &&
            (a_log_len[layer] < spec->kda_heads || a_log_len[layer] > K3_A_LOG_MAX)) {
            return k3_fail(err, K3_ERR_MALFORMED, K3_ERROR_NO_OFFSET,
                           "layer %u: A_log has %u values, must have %u..%u", layer,
                           a_log_len[layer], spec->kda_heads, K3_A_LOG_MAX);
        }
    }
    return K3_OK;
}

enum k3_code k3_pack_tables_derive(const struct k3_model_spec *spec, const uint32_t *a_log_len,
                                   struct k3_pack_tables *out_tables, struct k3_error *err)
{
    struct k3_pack_tables t = {.spec = *spec};
    t.extent_count = spec->layers + 1;
    t.layout = derive_layout(spec);
    enum k3_code code = check_a_log(spec, a_log_len, err);
    if (code == K3_OK) {
        code = check_expert_total(&t.layout, err);
    }
    if (code != K3_OK) {
        return code;
    }
    const uint32_t tensor_total = count_tensors(spec);
    t.extents = calloc(t.extent_count, sizeof *t.extents);
    t.tensors = calloc(tensor_total, sizeof *t.tensors);
    t.expert_digests = calloc((size_t)k3_expert_total(&t.layout), sizeof *t.expert_digests);
    if (!t.extents || !t.tensors || !t.expert_digests) {
        goto no_memory;
    }
    uint64_t cursor = K3_DATA_OFFSET;
    for (uint32_t e = 0; e < t.extent_count; e++) {
        cursor = k3_round_up(cursor, K3_TRUNK_EXTENT_ALIGN);
        derive_extent(&t, e, a_log_len, cursor);
        cursor += t.extents[e].used_bytes;
        code = check_block_total(&t, err);
        if (code != K3_OK) {
            k3_pack_tables_done(&t);
            return code;
        }
    }
    k3_assert(t.tensor_count == tensor_total);
    t.block_digests = calloc(t.block_count, sizeof *t.block_digests);
    if (!t.block_digests) {
        goto no_memory;
    }
    *out_tables = t;
    return K3_OK;
no_memory:
    k3_pack_tables_done(&t);
    return k3_fail_no_memory(err, "pack tables");
}

void k3_pack_tables_done(struct k3_pack_tables *tables)
{
    free(tables->extents);
    free(tables->tensors);
    free(tables->block_digests);
    free(tables->expert_digests);
    *tables = (struct k3_pack_tables){0};
}
