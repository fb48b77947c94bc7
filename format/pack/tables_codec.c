/* SPDX-License-Identifier: Apache-2.0 */
/* Sections 1..6 to bytes and back. */
#include <inttypes.h>
#include <stdlib.h>

#include "format/base/assert.h"
#include "format/base/bytes.h"
#include "format/pack/tables.h"

size_t k3_table_section_bytes(const struct k3_pack_tables *t, enum k3_section_kind kind)
{
    switch (kind) {
    case K3_SECTION_MODEL_SPEC:
        return k3_model_spec_encoded_bytes(&t->spec);
    case K3_SECTION_TRUNK_EXTENTS:
        return (size_t)t->extent_count * K3_TRUNK_EXTENT_BYTES;
    case K3_SECTION_TRUNK_TENSORS:
        return (size_t)t->tensor_count * K3_TRUNK_TENSOR_BYTES;
    case K3_SECTION_TRUNK_DIGESTS:
        return (size_t)t->block_count * K3_DIGEST_BYTES;
    case K3_SECTION_EXPERT_LAYOUT:
        return K3_EXPERT_LAYOUT_BYTES;
    case K3_SECTION_EXPERT_DIGESTS:
        return (size_t)k3_expert_total(&t->layout) * K3_DIGEST_BYTES;
    case K3_SECTION_FILES:
    case K3_SECTION_SHARDS:
    case K3_SECTION_TRUNK_SOURCES:
    case K3_SECTION_EXPERT_SOURCES:
        break;
    }
    k3_assert_failed("not a table section", __FILE__, __LINE__);
}

static void encode_extent(const struct k3_trunk_extent *extent, uint8_t *p)
{
    k3_le32_put(p, extent->layer);
    k3_le32_put(p + 4, extent->tensor_first);
    k3_le32_put(p + 8, extent->tensor_count);
    k3_le32_put(p + 12, extent->block_first);
    k3_le64_put(p + 16, extent->file_offset);
    k3_le64_put(p + 24, extent->used_bytes);
}

enum { TENSOR_ROLE_AT = 4, TENSOR_COLS_AT = 20 };

static void encode_tensor(const struct k3_trunk_tensor *tensor, uint8_t *p)
{
    memset(p, 0, K3_TRUNK_TENSOR_BYTES);
    k3_le32_put(p, tensor->layer);
    k3_le16_put(p + TENSOR_ROLE_AT, tensor->role);
    k3_le16_put(p + 6, tensor->encoding);
    k3_le16_put(p + 8, tensor->source_dtype);
    k3_le32_put(p + 12, tensor->matrix_count);
    k3_le32_put(p + 16, tensor->rows);
    k3_le32_put(p + TENSOR_COLS_AT, tensor->cols);
    k3_le64_put(p + 24, tensor->file_offset);
    k3_le64_put(p + 32, tensor->stored_bytes);
    k3_le32_put(p + 40, tensor->extent);
    k3_le32_put(p + 44, tensor->source);
}

static void encode_layout(const struct k3_expert_layout *layout, uint8_t *p)
{
    memset(p, 0, K3_EXPERT_LAYOUT_BYTES);
    k3_le32_put(p, layout->first_layer);
    k3_le32_put(p + 4, layout->layer_count);
    k3_le32_put(p + 8, layout->expert_count);
    k3_le64_put(p + 16, layout->data_offset);
    k3_le64_put(p + 24, layout->stride);
    k3_le64_put(p + 32, layout->used_bytes);
    k3_le64_put(p + 40, layout->w2_offset);
}

static void encode_digests(const struct k3_digest *digests, size_t count, uint8_t *p)
{
    for (size_t i = 0; i < count; i++) {
        memcpy(p + i * K3_DIGEST_BYTES, digests[i].bytes, K3_DIGEST_BYTES);
    }
}

void k3_table_section_encode(const struct k3_pack_tables *t, enum k3_section_kind kind,
                             uint8_t *out_bytes)
{
    switch (kind) {
    case K3_SECTION_MODEL_SPEC:
        k3_model_spec_encode(&t->spec, out_bytes);
        return;
    case K3_SECTION_TRUNK_EXTENTS:
        for (size_t i = 0; i < t->extent_count; i++) {
            encode_extent(&t->extents[i], out_bytes + i * K3_TRUNK_EXTENT_BYTES);
        }
        return;
    case K3_SECTION_TRUNK_TENSORS:
        for (size_t i = 0; i < t->tensor_count; i++) {
            encode_tensor(&t->tensors[i], out_bytes + i * K3_TRUNK_TENSOR_BYTES);
        }
        return;
    case K3_SECTION_TRUNK_DIGESTS:
        encode_digests(t->block_digests, t->block_count, out_bytes);
        return;
    case K3_SECTION_EXPERT_LAYOUT:
        encode_layout(&t->layout, out_bytes);
        return;
    case K3_SECTION_EXPERT_DIGESTS:
        encode_digests(t->expert_digests, (size_t)k3_expert_total(&t->layout), out_bytes);
        return;
    case K3_SECTION_FILES:
    case K3_SECTION_SHARDS:
    case K3_SECTION_TRUNK_SOURCES:
    case K3_SECTION_EXPERT_SOURCES:
        break;
    }
    k3_assert_failed("not a table section", __FILE__, __LINE__);
}

/* The one thing that the spec does not fix: the lengths of the A_log tensors. */
static void read_a_log_lengths(const struct k3_section_bytes *tensors,
                               const struct k3_model_spec *spec, uint32_t *a_log_len)
{
    for (uint32_t layer = 0; layer < spec->layers; layer++) {
        a_log_len[layer] = tensors->bytes ? 0 : spec->kda_heads;
    }
    for (size_t at = 0; tensors->bytes && at + K3_TRUNK_TENSOR_BYTES <= tensors->len;
         at += K3_TRUNK_TENSOR_BYTES) {
        const uint8_t *p = tensors->bytes + at;
        const uint32_t layer = k3_le32_get(p);
        if (k3_le16_get(p + TENSOR_ROLE_AT) == K3_ROLE_KDA_A_LOG && layer < spec->layers) {
            a_log_len[layer] = k3_le32_get(p + TENSOR_COLS_AT);
        }
    }
}

static enum k3_code compare_section(const struct k3_pack_tables *t, enum k3_section_kind kind,
                                    const struct k3_section_bytes *section, const char *name,
                                    struct k3_error *err)
{
    const size_t expected_len = k3_table_section_bytes(t, kind);
    if (section->len != expected_len) {
        return k3_fail(err, K3_ERR_MALFORMED, 0, "%s: %zu bytes, this model needs %zu", name,
                       section->len, expected_len);
    }
    uint8_t *expected = malloc(expected_len);
    if (!expected) {
        return k3_fail_no_memory(err, name);
    }
    k3_table_section_encode(t, kind, expected);
    size_t at = 0;
    while (at < expected_len && expected[at] == section->bytes[at]) {
        at++;
    }
    free(expected);
    if (at < expected_len) {
        return k3_fail(err, K3_ERR_MALFORMED, at,
                       "%s: byte %zu is not what this model's layout needs", name, at);
    }
    return K3_OK;
}

static enum k3_code decode_digests(const struct k3_section_bytes *section, const char *name,
                                   size_t count, struct k3_digest *out, struct k3_error *err)
{
    if (section->len != count * K3_DIGEST_BYTES) {
        return k3_fail(err, K3_ERR_MALFORMED, 0, "%s: %zu bytes, this model needs %zu", name,
                       section->len, count * K3_DIGEST_BYTES);
    }
    for (size_t i = 0; i < count; i++) {
        memcpy(out[i].bytes, section->bytes + i * K3_DIGEST_BYTES, K3_DIGEST_BYTES);
    }
    return K3_OK;
}

static enum k3_code check_against(const struct k3_section_bytes *sections, struct k3_pack_tables *t,
                                  struct k3_error *err)
{
    enum k3_code code = K3_OK;
    if (sections[K3_SECTION_TRUNK_EXTENTS].bytes) {
        code = compare_section(t, K3_SECTION_TRUNK_EXTENTS, &sections[K3_SECTION_TRUNK_EXTENTS],
                               "TRUNK_EXTENTS", err);
        if (code == K3_OK) {
            code = compare_section(t, K3_SECTION_TRUNK_TENSORS, &sections[K3_SECTION_TRUNK_TENSORS],
                                   "TRUNK_TENSORS", err);
        }
        if (code == K3_OK) {
            code = decode_digests(&sections[K3_SECTION_TRUNK_DIGESTS], "TRUNK_DIGESTS",
                                  t->block_count, t->block_digests, err);
        }
    }
    if (code == K3_OK && sections[K3_SECTION_EXPERT_LAYOUT].bytes) {
        code = compare_section(t, K3_SECTION_EXPERT_LAYOUT, &sections[K3_SECTION_EXPERT_LAYOUT],
                               "EXPERT_LAYOUT", err);
        if (code == K3_OK) {
            code = decode_digests(&sections[K3_SECTION_EXPERT_DIGESTS], "EXPERT_DIGESTS",
                                  (size_t)k3_expert_total(&t->layout), t->expert_digests, err);
        }
    }
    return code;
}

enum k3_code
k3_pack_tables_decode(const struct k3_section_bytes sections[K3_SECTION_EXPERT_DIGESTS + 1],
                      struct k3_pack_tables *out_tables, struct k3_error *err)
{
    struct k3_model_spec spec;
    enum k3_code code = k3_model_spec_decode(sections[K3_SECTION_MODEL_SPEC].bytes,
                                             sections[K3_SECTION_MODEL_SPEC].len, &spec, err);
    if (code != K3_OK) {
        return code;
    }
    uint32_t a_log_len[K3_LAYERS_MAX];
    read_a_log_lengths(&sections[K3_SECTION_TRUNK_TENSORS], &spec, a_log_len);
    struct k3_pack_tables t;
    code = k3_pack_tables_derive(&spec, a_log_len, &t, err);
    if (code != K3_OK) {
        return code;
    }
    code = check_against(sections, &t, err);
    if (code != K3_OK) {
        k3_pack_tables_done(&t);
        return code;
    }
    *out_tables = t;
    return K3_OK;
}
