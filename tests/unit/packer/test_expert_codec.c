/* SPDX-License-Identifier: Apache-2.0 */
#include "packer/expert_codec.h"
#include "tests/support/suite_main.h"
#include "tests/unit/format/pack/pack_fixture.h"

#include <stdlib.h>
#include <string.h>

static const struct {
    uint32_t latent, width;
    const char *why;
} rows[] = {
    {128, 128, "no padding"}, {32, 32, "the smallest"},
    {96, 160, "both padded"}, {160, 96, "both padded, the other way"},
    {256, 32, "one padded"},
};

START_TEST(test_round_trip)
{
    struct k3_model_spec spec = k3_toy_spec();
    struct k3_pack_parts parts;
    spec.latent = rows[_i].latent;
    spec.expert_intermediate = rows[_i].width;
    k3_pack_parts_init(&parts, &spec, 4, 1, 1);
    const struct k3_expert_shape shape = k3_expert_shape_of(&spec);
    const struct k3_expert_layout *layout = &parts.tables.layout;
    const size_t source_bytes = (size_t)shape.source_bytes;
    const size_t used_bytes = (size_t)layout->used_bytes;
    uint8_t *source = malloc(source_bytes), *back = malloc(source_bytes);
    uint8_t *extent = calloc(1, used_bytes), *all = malloc(used_bytes);
    ck_assert(source && back && extent && all);
    uint64_t seed = 3;
    k3_test_random_fill(&seed, source, source_bytes);
    k3_expert_encode(&shape, layout, source, extent);
    k3_expert_decode(&shape, layout, extent, back);
    ck_assert_msg(memcmp(source, back, source_bytes) == 0, "%s", rows[_i].why);

    /* What encoding leaves alone is padding: of ones, exactly the bytes of the tiles change. */
    memset(all, 0xff, used_bytes);
    k3_expert_encode(&shape, layout, source, all);
    const uint64_t tiles_end = layout->w2_offset + (spec.latent + 15) / 16 * layout->w2_tile_bytes;
    for (uint64_t i = tiles_end; i < layout->used_bytes; i++) {
        ck_assert_uint_eq(all[i], 0xff);
    }
    ck_assert_int_eq(memcmp(all + layout->w2_offset, extent + layout->w2_offset,
                            (size_t)(tiles_end - layout->w2_offset)),
                     0);
    free(source);
    free(back);
    free(extent);
    free(all);
    k3_pack_parts_done(&parts);
}
END_TEST

/* docs/format.md 8.1: w1 tile 0, w3 tile 0, w1 tile 1, ... */
START_TEST(test_order)
{
    struct k3_model_spec spec = k3_toy_spec();
    struct k3_pack_parts parts;
    spec.latent = 128;
    spec.expert_intermediate = 32;
    k3_pack_parts_init(&parts, &spec, 4, 1, 1);
    const struct k3_expert_shape shape = k3_expert_shape_of(&spec);
    uint8_t *source = calloc(1, (size_t)shape.source_bytes);
    uint8_t *extent = calloc(1, (size_t)parts.tables.layout.used_bytes);
    ck_assert(source && extent);
    for (unsigned part = 0; part < K3_EXPERT_PARTS; part++) {
        memset(source + shape.part_offset[part], (int)part + 1, (size_t)shape.part_bytes[part]);
    }
    k3_expert_encode(&shape, &parts.tables.layout, source, extent);
    static const uint8_t scales[] = {2, 6, 2, 6}, nibbles[] = {1, 5, 1, 5};
    for (unsigned tile = 0; tile < 4; tile++) {
        ck_assert_uint_eq(extent[tile * 1088], scales[tile]);
        ck_assert_uint_eq(extent[tile * 1088 + 64], nibbles[tile]);
    }
    ck_assert_uint_eq(extent[parts.tables.layout.w2_offset], 4);
    ck_assert_uint_eq(extent[parts.tables.layout.w2_offset + 64], 3);
    free(source);
    free(extent);
    k3_pack_parts_done(&parts);
}
END_TEST

Suite *k3_suite(void)
{
    Suite *suite = suite_create("expert_codec");
    TCase *codec = tcase_create("round trip");
    tcase_add_loop_test(codec, test_round_trip, 0, (int)(sizeof rows / sizeof rows[0]));
    tcase_add_test(codec, test_order);
    suite_add_tcase(suite, codec);
    return suite;
}
