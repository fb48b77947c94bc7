/* SPDX-License-Identifier: Apache-2.0 */
#include "packer/plan.h"
#include "tests/support/suite_main.h"
#include "tests/unit/format/pack/pack_fixture.h"
#include "tests/unit/format/pack/released_spec.h"

START_TEST(test_released_experts)
{
    const struct k3_model_spec spec = k3_released_spec();
    uint32_t a_log_len[K3_LAYERS_MAX];
    struct k3_census census = {0};
    struct k3_error err;
    for (unsigned i = 0; i < K3_LAYERS_MAX; i++) {
        a_log_len[i] = K3_RELEASED_A_LOG_LEN;
    }
    ck_assert_ok(k3_pack_tables_derive(&spec, a_log_len, &census.tables, &err));
    const struct k3_plan plan = k3_plan_make(&census);
    ck_assert_uint_eq(plan.expert_count, 82432);
    ck_assert_uint_eq(plan.expert_used, 17547264);
    ck_assert_uint_eq(plan.expert_stride, UINT64_C(18) << 20);
    ck_assert_uint_eq(plan.experts_data, K3_RELEASED_EXPERT_BYTES);
    ck_assert_uint_gt(plan.apparent_bytes, plan.space_bytes);
    ck_assert_uint_eq(k3_plan_seconds(&plan, plan.space_bytes), 2);
    k3_pack_tables_done(&census.tables);
}
END_TEST

START_TEST(test_sums)
{
    const struct k3_model_spec spec = k3_toy_spec();
    struct k3_pack_parts parts;
    k3_pack_parts_init(&parts, &spec, 4, 2, 3);
    struct k3_shard shards[2] = {{.file_bytes = 1000}, {.file_bytes = 23}};
    struct k3_census census = {.tables = parts.tables,
                               .files = parts.files,
                               .provenance = parts.provenance,
                               .skipped_bytes = 7,
                               .skipped_tensors = 2};
    census.set.shards = shards;
    census.set.shard_count = 2;
    const struct k3_plan plan = k3_plan_make(&census);
    ck_assert_uint_eq(plan.read_bytes, 1023);
    ck_assert_uint_eq(plan.skipped_bytes, 7);
    ck_assert_uint_eq(plan.skipped_tensors, 2);
    ck_assert_uint_ge(plan.trunk_bytes, k3_trunk_data_end(&parts.tables));
    ck_assert_uint_ge(plan.experts_bytes, k3_experts_data_end(&parts.tables));
    ck_assert_uint_lt(plan.trunk_data, plan.trunk_bytes);
    ck_assert_uint_eq(plan.apparent_bytes,
                      plan.trunk_bytes + plan.experts_bytes + plan.index_bytes);
    k3_pack_parts_done(&parts);
}
END_TEST

Suite *k3_suite(void)
{
    Suite *suite = suite_create("plan");
    TCase *sizes = tcase_create("sizes");
    tcase_add_test(sizes, test_released_experts);
    tcase_add_test(sizes, test_sums);
    suite_add_tcase(suite, sizes);
    return suite;
}
