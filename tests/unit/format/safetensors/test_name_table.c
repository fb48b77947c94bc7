/* SPDX-License-Identifier: Apache-2.0 */
#include "format/safetensors/name_table.h"

#include <stdio.h>

#include "tests/support/suite_main.h"

enum { COUNT = 10000 };

static char names[COUNT][32];
static struct k3_error err;

START_TEST(holds_what_was_put_in)
{
    struct k3_name_table table = {0};
    ck_assert_ptr_null(k3_name_table_find(&table, "x"));
    for (uint32_t i = 0; i < COUNT; i++) {
        snprintf(names[i], sizeof names[i], "layers.%u.weight", i);
        const struct k3_name_slot *found = NULL;
        ck_assert_ok(k3_name_table_insert(&table, names[i], i / 7, i % 7, &found, &err));
        ck_assert_ptr_null(found);
    }
    ck_assert_uint_eq(table.count, COUNT);
    ck_assert_uint_ge(table.slot_count, (size_t)2 * COUNT);
    for (uint32_t i = 0; i < COUNT; i++) {
        const struct k3_name_slot *slot = k3_name_table_find(&table, names[i]);
        ck_assert_ptr_nonnull(slot);
        ck_assert_uint_eq(slot->shard, i / 7);
        ck_assert_uint_eq(slot->entry, i % 7);
    }
    ck_assert_ptr_null(k3_name_table_find(&table, "layers.10000.weight"));
    ck_assert_ptr_null(k3_name_table_find(&table, ""));
    k3_name_table_done(&table);
    ck_assert_ptr_null(k3_name_table_find(&table, names[0]));
}
END_TEST

START_TEST(keeps_the_first)
{
    struct k3_name_table table = {0};
    const struct k3_name_slot *found = NULL;
    char other[] = "a";
    ck_assert_ok(k3_name_table_insert(&table, "a", 1, 2, &found, &err));
    ck_assert_ok(k3_name_table_insert(&table, other, 3, 4, &found, &err));
    ck_assert_ptr_nonnull(found);
    ck_assert_uint_eq(found->shard, 1);
    ck_assert_uint_eq(found->entry, 2);
    ck_assert_uint_eq(table.count, 1);
    k3_name_table_done(&table);
}
END_TEST

Suite *k3_suite(void)
{
    Suite *suite = suite_create("name_table");
    TCase *contract = tcase_create("contract");
    tcase_add_test(contract, holds_what_was_put_in);
    tcase_add_test(contract, keeps_the_first);
    suite_add_tcase(suite, contract);
    return suite;
}
