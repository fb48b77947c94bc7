/* SPDX-License-Identifier: Apache-2.0 */
#include "packer/schedule.h"
#include "tests/support/suite_main.h"
#include "tests/unit/format/pack/pack_fixture.h"

#include <stdlib.h>

#define SHARDS 9U

/* Sources in random shards: every item stands once, with the last of its shards. */
START_TEST(test_random_places)
{
    const struct k3_model_spec spec = k3_toy_spec();
    struct k3_pack_parts parts;
    struct k3_schedule schedule;
    struct k3_error err;
    uint64_t seed = (uint64_t)_i;
    k3_pack_parts_init(&parts, &spec, 4, SHARDS, 1);
    const uint64_t experts = k3_expert_total(&parts.tables.layout);
    for (uint32_t i = 0; i < parts.tables.source_count; i++) {
        parts.provenance.trunk[i].shard = (uint32_t)(k3_test_random(&seed) % SHARDS);
    }
    for (uint64_t i = 0; i < experts * K3_EXPERT_PARTS; i++) {
        parts.provenance.experts[i].shard = (uint32_t)(k3_test_random(&seed) % SHARDS);
    }
    ck_assert_ok(k3_schedule_make(&parts.tables, &parts.provenance, &schedule, &err));
    ck_assert_uint_eq(schedule.extents.first[0], 0);
    ck_assert_uint_eq(schedule.extents.first[SHARDS], parts.tables.extent_count);
    ck_assert_uint_eq(schedule.experts.first[SHARDS], experts);
    for (uint32_t s = 0; s < SHARDS; s++) {
        for (uint32_t i = schedule.extents.first[s]; i < schedule.extents.first[s + 1]; i++) {
            ck_assert_uint_eq(
                k3_extent_last_shard(&parts.tables, &parts.provenance, schedule.extents.items[i]),
                s);
        }
        for (uint32_t i = schedule.experts.first[s]; i < schedule.experts.first[s + 1]; i++) {
            const uint32_t expert = schedule.experts.items[i];
            ck_assert_uint_eq(k3_expert_last_shard(&parts.provenance, expert), s);
            ck_assert(i == schedule.experts.first[s] || schedule.experts.items[i - 1] < expert);
        }
    }
    k3_schedule_done(&schedule);
    k3_pack_parts_done(&parts);
}
END_TEST

Suite *k3_suite(void)
{
    Suite *suite = suite_create("schedule");
    TCase *contract = tcase_create("contract");
    tcase_add_loop_test(contract, test_random_places, 0, 20);
    suite_add_tcase(suite, contract);
    return suite;
}
