/* SPDX-License-Identifier: Apache-2.0 */
#include "packer/source_range.h"
#include "tests/support/suite_main.h"
#include "tests/unit/format/pack/pack_fixture.h"

#include "format/base/ckd.h"
#include "format/pack/provenance.h"

static struct k3_pack_parts parts;

static void setup(void)
{
    const struct k3_model_spec spec = k3_toy_spec();
    k3_pack_parts_init(&parts, &spec, 4, 2, 1);
}

static void teardown(void)
{
    k3_pack_parts_done(&parts);
}

/* Every byte of every tensor has a range; all of a tensor has all of its source. */
START_TEST(test_ranges_lie_inside)
{
    for (uint32_t i = 0; i < parts.tables.tensor_count; i++) {
        const struct k3_trunk_tensor *t = &parts.tables.tensors[i];
        const struct k3_source_shape shape = k3_tensor_source_shape(&parts.tables, t);
        const uint64_t total = k3_source_bytes(&shape);
        uint64_t offset = 1, bytes = 0, last_offset = 0;
        k3_source_range(&parts.tables, t, 0, t->stored_bytes, &offset, &bytes);
        ck_assert_uint_eq(offset, 0);
        ck_assert_uint_eq(bytes, total);
        for (uint64_t at = 0; at < t->stored_bytes; at += 1 + t->stored_bytes / 500) {
            k3_source_range(&parts.tables, t, at, 1, &offset, &bytes);
            ck_assert(k3_range_fits(offset, bytes, total));
            ck_assert_uint_gt(bytes, 0);
            ck_assert_uint_ge(offset, last_offset);
            last_offset = offset;
        }
    }
}
END_TEST

START_TEST(test_a_tile_is_its_rows)
{
    const struct k3_trunk_tensor *t = k3_trunk_find(&parts.tables, 0, K3_ROLE_KDA_Q);
    const uint64_t tile = k3_stored_matrix_bytes(K3_ENCODING_B16, 16, t->cols);
    uint64_t offset = 0, bytes = 0;
    k3_source_range(&parts.tables, t, tile, 1, &offset, &bytes);
    ck_assert_uint_eq(offset, UINT64_C(16) * 2 * t->cols);
    ck_assert_uint_eq(bytes, UINT64_C(16) * 2 * t->cols);
    k3_source_range(&parts.tables, t, tile - 1, 2, &offset, &bytes);
    ck_assert_uint_eq(offset, 0);
    ck_assert_uint_eq(bytes, UINT64_C(32) * 2 * t->cols);
}
END_TEST

START_TEST(test_a_head_is_its_rows)
{
    const struct k3_model_spec *s = &parts.tables.spec;
    const struct k3_trunk_tensor *t = k3_trunk_find(&parts.tables, 1, K3_ROLE_MLA_KV_B_VALUE);
    const uint64_t head = k3_stored_matrix_bytes(K3_ENCODING_B16, t->rows, t->cols);
    const uint64_t expected = ((uint64_t)s->qk_nope_head_dim + s->v_head_dim) * s->kv_lora_rank * 2;
    uint64_t offset = 0, bytes = 0;
    k3_source_range(&parts.tables, t, head, 1, &offset, &bytes);
    ck_assert_uint_eq(offset, expected);
    ck_assert_uint_eq(bytes, expected);
}
END_TEST

START_TEST(test_a_widened_value)
{
    const struct k3_trunk_tensor *t = k3_trunk_find(&parts.tables, 0, K3_ROLE_INPUT_NORM);
    uint64_t offset = 0, bytes = 0;
    k3_source_range(&parts.tables, t, 4 * 7 + 3, 2, &offset, &bytes);
    ck_assert_uint_eq(offset, 14);
    ck_assert_uint_eq(bytes, 4);
}
END_TEST

Suite *k3_suite(void)
{
    Suite *suite = suite_create("source_range");
    TCase *contract = tcase_create("contract");
    tcase_add_checked_fixture(contract, setup, teardown);
    tcase_add_test(contract, test_ranges_lie_inside);
    tcase_add_test(contract, test_a_tile_is_its_rows);
    tcase_add_test(contract, test_a_head_is_its_rows);
    tcase_add_test(contract, test_a_widened_value);
    suite_add_tcase(suite, contract);
    return suite;
}
