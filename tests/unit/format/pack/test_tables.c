/* SPDX-License-Identifier: Apache-2.0 */
#include "format/pack/tables.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "format/base/bytes.h"
#include "tests/support/suite_main.h"
#include "tests/unit/format/pack/pack_fixture.h"
#include "tests/unit/format/pack/released_spec.h"

static struct k3_error err;

static void derive_released(struct k3_pack_tables *out_tables)
{
    const struct k3_model_spec spec = k3_released_spec();
    uint32_t a_log[K3_LAYERS_MAX];
    for (uint32_t layer = 0; layer < spec.layers; layer++) {
        a_log[layer] = K3_RELEASED_A_LOG_LEN;
    }
    ck_assert_ok(k3_pack_tables_derive(&spec, a_log, out_tables, &err));
}

static uint64_t up(uint64_t value, uint64_t unit)
{
    return (value + unit - 1) / unit * unit;
}

/* docs/format.md 7.4, in its own words. */
static uint64_t stored_bytes_of(const struct k3_trunk_tensor *t)
{
    switch (t->encoding) {
    case 1:
        return 4 * (uint64_t)t->cols;
    case 2:
        return 4 * (uint64_t)t->rows * t->cols;
    case 3:
        return t->matrix_count * up(t->rows, 16) * up(t->cols, 128) * 2;
    default:
        return 2 * (uint64_t)t->rows * t->cols;
    }
}

static void check_tensors(const struct k3_pack_tables *t, uint32_t e, uint32_t *source)
{
    const struct k3_trunk_extent *extent = &t->extents[e];
    uint64_t cursor = extent->file_offset;
    for (uint32_t i = 0; i < extent->tensor_count; i++) {
        const uint32_t at = extent->tensor_first + i;
        const struct k3_trunk_tensor *tensor = &t->tensors[at];
        ck_assert_uint_eq(tensor->layer, extent->layer);
        ck_assert_uint_eq(tensor->extent, e);
        ck_assert_uint_eq(tensor->file_offset, up(cursor, 4096));
        ck_assert_uint_eq(tensor->stored_bytes, stored_bytes_of(tensor));
        ck_assert_uint_eq(tensor->matrix_count *
                              k3_stored_matrix_bytes(tensor->encoding, tensor->rows, tensor->cols),
                          tensor->stored_bytes);
        /* The value part of kv_b_proj follows its key part and shares its source. */
        *source += tensor->role != 20;
        ck_assert_uint_eq(tensor->source, *source - 1);
        ck_assert_ptr_eq(k3_trunk_find(t, extent->layer, tensor->role), tensor);
        cursor = tensor->file_offset + tensor->stored_bytes;
    }
    ck_assert_uint_eq(extent->used_bytes, up(cursor, 4096) - extent->file_offset);
    ck_assert_ptr_null(k3_trunk_find(t, extent->layer, 0));
}

static void check_invariants(const struct k3_pack_tables *t)
{
    uint64_t cursor = 2 << 20;
    uint32_t tensors = 0;
    uint32_t blocks = 0;
    uint32_t sources = 0;
    ck_assert_uint_eq(t->extent_count, t->spec.layers + 1);
    for (uint32_t e = 0; e < t->extent_count; e++) {
        const struct k3_trunk_extent *extent = &t->extents[e];
        ck_assert_uint_eq(extent->layer, e < t->spec.layers ? e : UINT32_MAX);
        ck_assert_uint_eq(extent->file_offset, up(cursor, 2 << 20));
        ck_assert_uint_eq(extent->tensor_first, tensors);
        ck_assert_uint_eq(extent->block_first, blocks);
        ck_assert_uint_eq(k3_extent_block_count(extent), up(extent->used_bytes, 8 << 20) >> 23);
        check_tensors(t, e, &sources);
        tensors += extent->tensor_count;
        blocks += k3_extent_block_count(extent);
        cursor = extent->file_offset + extent->used_bytes;
    }
    ck_assert_uint_eq(t->tensor_count, tensors);
    ck_assert_uint_eq(t->block_count, blocks);
    ck_assert_uint_eq(t->source_count, sources);
    ck_assert_uint_eq(k3_trunk_data_end(t), cursor);
}

START_TEST(released_trunk)
{
    struct k3_pack_tables t;
    derive_released(&t);
    check_invariants(&t);
    ck_assert_uint_eq(t.source_count, 2460);
    ck_assert_uint_eq(t.tensor_count, 2460 + 24);
    ck_assert_uint_eq(t.extent_count, 94);
    /* Every matrix of the release fills its tiles: only vectors grow (bf16 to f32). */
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < t.tensor_count; i++) {
        const struct k3_trunk_tensor *tensor = &t.tensors[i];
        const bool grew = tensor->encoding == K3_ENCODING_F32 && tensor->source_dtype == 1;
        bytes += grew ? tensor->stored_bytes / 2 : tensor->stored_bytes;
    }
    ck_assert_uint_eq(bytes, K3_RELEASED_TRUNK_BYTES);
    k3_pack_tables_done(&t);
}
END_TEST

START_TEST(released_experts)
{
    struct k3_pack_tables t;
    derive_released(&t);
    const struct k3_expert_layout *l = &t.layout;
    ck_assert_uint_eq(l->first_layer, 1);
    ck_assert_uint_eq(l->layer_count, 92);
    ck_assert_uint_eq(l->expert_count, 896);
    ck_assert_uint_eq(l->data_offset, 2 << 20);
    ck_assert_uint_eq(l->used_bytes, 17547264);
    ck_assert_uint_eq(l->stride, 18 << 20);
    ck_assert_uint_eq(l->w2_offset, 2 * 5849088);
    ck_assert_uint_eq(l->w13_tile_bytes, 3584 * 17 / 2);
    ck_assert_uint_eq(l->w2_tile_bytes, 3072 * 17 / 2);
    ck_assert_uint_eq(k3_expert_total(l), 82432);
    ck_assert_uint_eq(k3_expert_total(l) * l->used_bytes, K3_RELEASED_EXPERT_BYTES);
    ck_assert_uint_eq(k3_expert_number(l, 1, 0), 0);
    ck_assert_uint_eq(k3_expert_number(l, 92, 895), 82431);
    ck_assert_uint_eq(k3_experts_data_end(&t),
                      (UINT64_C(2) << 20) + 82431 * (UINT64_C(18) << 20) + 17547264);
    k3_pack_tables_done(&t);
}
END_TEST

START_TEST(toy_layout)
{
    struct k3_pack_parts parts;
    const struct k3_model_spec spec = k3_toy_spec();
    k3_pack_parts_init(&parts, &spec, spec.kda_heads, 2, 7);
    check_invariants(&parts.tables);
    /* 96 x 64 twice (6 tiles of one superblock each), then 64 x 96 (4 tiles): padded columns. */
    const struct k3_expert_layout *l = &parts.tables.layout;
    ck_assert_uint_eq(l->w2_offset, up(2 * 6 * 1088, 4096));
    ck_assert_uint_eq(l->used_bytes, up(l->w2_offset + 4 * 1088, 4096));
    ck_assert_uint_eq(l->stride, 65536);
    const struct k3_trunk_tensor *a0 = k3_trunk_find(&parts.tables, 0, K3_ROLE_KDA_A_LOG);
    const struct k3_trunk_tensor *a2 = k3_trunk_find(&parts.tables, 2, K3_ROLE_KDA_A_LOG);
    ck_assert_uint_eq(a0->cols, 4);
    ck_assert_uint_eq(a2->cols, 3);
    k3_pack_parts_done(&parts);
}
END_TEST

/* Around 1 MiB the alignment of an expert changes. */
START_TEST(expert_alignment)
{
    static const struct {
        uint32_t latent, intermediate;
        uint64_t used, stride;
        const char *why;
    } cases[] = {
        {768, 832, 1048576, 2 << 20, "1 MiB exactly is not small"},
        {640, 1024, 1044480, 1048576, "one page below 1 MiB"},
        {32, 32, 12288, 65536, "the smallest"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct k3_model_spec spec = k3_toy_spec();
        spec.latent = cases[i].latent;
        spec.expert_intermediate = cases[i].intermediate;
        const uint32_t a_log[3] = {3, 0, 3};
        struct k3_pack_tables t;
        ck_assert_ok(k3_pack_tables_derive(&spec, a_log, &t, &err));
        ck_assert_msg(t.layout.used_bytes == cases[i].used, "%s: %" PRIu64, cases[i].why,
                      t.layout.used_bytes);
        ck_assert_msg(t.layout.stride == cases[i].stride, "%s: %" PRIu64, cases[i].why,
                      t.layout.stride);
        k3_pack_tables_done(&t);
    }
}
END_TEST

START_TEST(a_log_bounds)
{
    static const struct {
        uint32_t len;
        bool is_good;
    } cases[] = {{0, false}, {2, false}, {3, true}, {65536, true}, {65537, false}};
    const struct k3_model_spec spec = k3_toy_spec();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const uint32_t a_log[3] = {3, 0, cases[i].len};
        struct k3_pack_tables t = {0};
        const enum k3_code code = k3_pack_tables_derive(&spec, a_log, &t, &err);
        ck_assert_msg(code == (cases[i].is_good ? K3_OK : K3_ERR_MALFORMED), "%u values",
                      cases[i].len);
        k3_pack_tables_done(&t);
    }
}
END_TEST

/* Models within the bounds of a spec whose tables no section could hold: counts must not wrap. */
START_TEST(too_large)
{
    uint32_t a_log[K3_LAYERS_MAX];
    for (size_t i = 0; i < K3_LAYERS_MAX; i++) {
        a_log[i] = 1;
    }
    struct k3_model_spec spec = k3_toy_spec();
    spec.layers = 1024;
    spec.experts = 65535;
    struct k3_pack_tables t;
    spec.kda_heads = 1;
    ck_assert_code(k3_pack_tables_derive(&spec, a_log, &t, &err), K3_ERR_MALFORMED);

    /* 240 bytes of provenance an expert, 1 GiB: 4,473,924 of them. */
    spec.experts = 4473;
    spec.layers = 1001;
    memset(spec.layer_kind, K3_LAYER_KDA, sizeof spec.layer_kind);
    spec.layer_kind[5] = K3_LAYER_MLA;
    ck_assert_ok(k3_pack_tables_derive(&spec, a_log, &t, &err));
    k3_pack_tables_done(&t);
    spec.experts = 4474;
    ck_assert_code(k3_pack_tables_derive(&spec, a_log, &t, &err), K3_ERR_MALFORMED);

    /* 2^19 heads of 2^20 x 1, padded to 128 columns: 2^24 blocks a layer, 2^34 in all. */
    spec = k3_toy_spec();
    spec.kda_heads = 1;
    spec.layers = 1024;
    memset(spec.layer_kind, K3_LAYER_MLA, sizeof spec.layer_kind);
    spec.layer_kind[0] = K3_LAYER_KDA;
    spec.mla_heads = 1U << 19;
    spec.qk_nope_head_dim = 1;
    spec.qk_rope_head_dim = 1;
    spec.v_head_dim = 1;
    spec.kv_lora_rank = 1U << 20;
    ck_assert_ok(k3_model_spec_check(&spec, &err));
    ck_assert_code(k3_pack_tables_derive(&spec, a_log, &t, &err), K3_ERR_MALFORMED);
}
END_TEST

struct raw_sections {
    uint8_t *owned[7];
    struct k3_section_bytes sections[7];
};

static void raw_make(const struct k3_pack_parts *parts, struct raw_sections *out)
{
    memset(out, 0, sizeof *out);
    for (unsigned kind = 1; kind <= 6; kind++) {
        size_t len = 0;
        out->owned[kind] = k3_parts_section(parts, (enum k3_section_kind)kind, &len);
        out->sections[kind] = (struct k3_section_bytes){.bytes = out->owned[kind], .len = len};
    }
}

static void raw_done(struct raw_sections *raw)
{
    for (unsigned kind = 1; kind <= 6; kind++) {
        free(raw->owned[kind]);
    }
}

/* Does the decoded form give these bytes again? */
static bool encodes_to(const struct k3_pack_tables *t, const struct raw_sections *raw)
{
    bool same = true;
    for (unsigned kind = 1; kind <= 6 && same; kind++) {
        const size_t len = k3_table_section_bytes(t, (enum k3_section_kind)kind);
        uint8_t *again = malloc(len);
        k3_table_section_encode(t, (enum k3_section_kind)kind, again);
        same = len == raw->sections[kind].len && memcmp(again, raw->owned[kind], len) == 0;
        free(again);
    }
    return same;
}

START_TEST(round_trip)
{
    const struct k3_model_spec spec = _i == 0 ? k3_toy_spec() : k3_released_spec();
    struct k3_pack_parts parts;
    k3_pack_parts_init(&parts, &spec, spec.kda_heads, 2, 3);
    struct raw_sections raw;
    raw_make(&parts, &raw);
    struct k3_pack_tables t;
    ck_assert_ok(k3_pack_tables_decode(raw.sections, &t, &err));
    ck_assert(encodes_to(&t, &raw));
    ck_assert_mem_eq(t.block_digests, parts.tables.block_digests,
                     t.block_count * sizeof *t.block_digests);
    ck_assert_mem_eq(t.expert_digests, parts.tables.expert_digests,
                     k3_expert_total(&t.layout) * sizeof *t.expert_digests);
    k3_pack_tables_done(&t);
    raw_done(&raw);
    k3_pack_parts_done(&parts);
}
END_TEST

/* docs/format.md 7.1, 7.2 and 8.1: a few entries of the toy model, byte for byte. */
START_TEST(entry_bytes)
{
    struct k3_pack_parts parts;
    const struct k3_model_spec spec = k3_toy_spec();
    k3_pack_parts_init(&parts, &spec, spec.kda_heads, 2, 3);
    struct raw_sections raw;
    raw_make(&parts, &raw);
    const struct k3_pack_tables *t = &parts.tables;

    uint8_t extent[32];
    k3_le32_put(extent, UINT32_MAX);
    k3_le32_put(extent + 4, t->tensor_count - 5);
    k3_le32_put(extent + 8, 5);
    k3_le32_put(extent + 12, 3);
    k3_le64_put(extent + 16, 4 * (UINT64_C(2) << 20));
    /* three vectors, lm_head of 304 x 128, embedding of 300 x 48 */
    k3_le64_put(extent + 24, 3 * 4096 + 304 * 128 * 2 + up(300 * 48 * 2, 4096));
    ck_assert_mem_eq(raw.owned[2] + 3 * 32, extent, 32);

    const struct k3_trunk_tensor *key = k3_trunk_find(t, 1, 19);
    uint8_t tensor[64] = {0};
    k3_le32_put(tensor, 1);
    k3_le16_put(tensor + 4, 19);
    k3_le16_put(tensor + 6, 3);
    k3_le16_put(tensor + 8, 1);
    k3_le32_put(tensor + 12, 2);
    k3_le32_put(tensor + 16, 40);
    k3_le32_put(tensor + 20, 12);
    k3_le64_put(tensor + 24, key->file_offset);
    k3_le64_put(tensor + 32, 2 * 48 * 128 * 2);
    k3_le32_put(tensor + 40, 1);
    k3_le32_put(tensor + 44, key->source);
    ck_assert_mem_eq(raw.owned[3] + (key - t->tensors) * 64, tensor, 64);
    ck_assert_uint_eq(key[1].role, 20);
    ck_assert_uint_eq(key[1].source, key->source);

    uint8_t layout[64] = {0};
    k3_le32_put(layout, 1);
    k3_le32_put(layout + 4, 2);
    k3_le32_put(layout + 8, 5);
    k3_le64_put(layout + 16, 2 << 20);
    k3_le64_put(layout + 24, 65536);
    k3_le64_put(layout + 32, 24576);
    k3_le64_put(layout + 40, 16384);
    ck_assert_mem_eq(raw.owned[5], layout, 64);
    raw_done(&raw);
    k3_pack_parts_done(&parts);
}
END_TEST

static const unsigned flipped_kinds[] = {1, 2, 3, 5};
static const uint8_t flips[] = {0x01, 0x80, 0xff};

START_TEST(flipped_bytes)
{
    const unsigned kind = flipped_kinds[_i];
    struct k3_pack_parts parts;
    const struct k3_model_spec spec = k3_toy_spec();
    k3_pack_parts_init(&parts, &spec, spec.kda_heads, 2, 3);
    struct raw_sections raw;
    raw_make(&parts, &raw);
    size_t accepted = 0;
    for (size_t at = 0; at < raw.sections[kind].len; at++) {
        for (size_t f = 0; f < sizeof flips; f++) {
            raw.owned[kind][at] ^= flips[f];
            struct k3_pack_tables t;
            if (k3_pack_tables_decode(raw.sections, &t, NULL) == K3_OK) {
                accepted++;
                ck_assert_msg(encodes_to(&t, &raw), "kind %u: byte %zu is lost", kind, at);
                k3_pack_tables_done(&t);
            }
            raw.owned[kind][at] ^= flips[f];
        }
    }
    /* The spec holds numbers on which no table depends; every other byte is fixed. */
    ck_assert_msg((accepted > 0) == (kind == 1), "kind %u: %zu flips accepted", kind, accepted);
    raw_done(&raw);
    k3_pack_parts_done(&parts);
}
END_TEST

START_TEST(lengths)
{
    struct k3_pack_parts parts;
    const struct k3_model_spec spec = k3_toy_spec();
    k3_pack_parts_init(&parts, &spec, spec.kda_heads, 2, 3);
    struct raw_sections raw;
    raw_make(&parts, &raw);
    for (unsigned kind = 1; kind <= 6; kind++) {
        const struct k3_section_bytes good = raw.sections[kind];
        for (int change = -1; change <= 1; change += 2) {
            /* Exact sizes, so that a sanitizer sees a byte too far. */
            const size_t len = change < 0 ? good.len - 1 : good.len + 1;
            uint8_t *bytes = calloc(1, len);
            memcpy(bytes, good.bytes, len < good.len ? len : good.len);
            raw.sections[kind] = (struct k3_section_bytes){.bytes = bytes, .len = len};
            struct k3_pack_tables t;
            ck_assert_msg(k3_pack_tables_decode(raw.sections, &t, NULL) == K3_ERR_MALFORMED,
                          "kind %u with %zu bytes", kind, len);
            free(bytes);
        }
        raw.sections[kind] = good;
    }
    raw_done(&raw);
    k3_pack_parts_done(&parts);
}
END_TEST

/* What a rebuild from one data file reads: the other file's sections are not there. */
START_TEST(half_of_the_sections)
{
    struct k3_pack_parts parts;
    const struct k3_model_spec spec = k3_toy_spec();
    k3_pack_parts_init(&parts, &spec, spec.kda_heads, 2, 3);
    struct raw_sections raw;
    raw_make(&parts, &raw);
    struct k3_section_bytes half[7] = {{0}};
    struct k3_pack_tables t;

    half[1] = raw.sections[1];
    memcpy(half + 2, raw.sections + 2, 3 * sizeof half[0]);
    ck_assert_ok(k3_pack_tables_decode(half, &t, &err));
    ck_assert_uint_eq(k3_trunk_find(&t, 0, K3_ROLE_KDA_A_LOG)->cols, 4);
    ck_assert_mem_eq(t.block_digests, parts.tables.block_digests, t.block_count * 16);
    ck_assert(k3_bytes_are_zero(t.expert_digests, k3_expert_total(&t.layout) * 16));
    k3_pack_tables_done(&t);

    memset(half + 2, 0, 3 * sizeof half[0]);
    half[5] = raw.sections[5];
    half[6] = raw.sections[6];
    ck_assert_ok(k3_pack_tables_decode(half, &t, &err));
    ck_assert_uint_eq(k3_trunk_find(&t, 0, K3_ROLE_KDA_A_LOG)->cols, 3);
    ck_assert_mem_eq(t.expert_digests, parts.tables.expert_digests,
                     k3_expert_total(&t.layout) * 16);
    ck_assert(k3_bytes_are_zero(t.block_digests, t.block_count * 16));
    k3_pack_tables_done(&t);
    raw_done(&raw);
    k3_pack_parts_done(&parts);
}
END_TEST

Suite *k3_suite(void)
{
    Suite *suite = suite_create("tables");
    TCase *layout = tcase_create("layout");
    tcase_add_test(layout, released_trunk);
    tcase_add_test(layout, released_experts);
    tcase_add_test(layout, toy_layout);
    tcase_add_test(layout, expert_alignment);
    suite_add_tcase(suite, layout);
    TCase *bounds = tcase_create("bounds");
    tcase_add_test(bounds, a_log_bounds);
    tcase_add_test(bounds, too_large);
    suite_add_tcase(suite, bounds);
    TCase *round = tcase_create("round trip");
    tcase_add_loop_test(round, round_trip, 0, 2);
    tcase_add_test(round, entry_bytes);
    tcase_add_test(round, half_of_the_sections);
    suite_add_tcase(suite, round);
    TCase *damage = tcase_create("damage");
    tcase_add_loop_test(damage, flipped_bytes, 0, sizeof flipped_kinds / sizeof flipped_kinds[0]);
    tcase_add_test(damage, lengths);
    suite_add_tcase(suite, damage);
    return suite;
}
