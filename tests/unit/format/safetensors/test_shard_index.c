/* SPDX-License-Identifier: Apache-2.0 */
#include "format/safetensors/shard_index.h"

#include <stdio.h>

#include "tests/support/suite_main.h"
#include "tests/support/temp_folder.h"
#include "tests/unit/format/safetensors/shard_fixture.h"

static const char *folder;
static struct k3_error err;
static struct k3_shard_set set;
static struct k3_problems problems;

/* Shard A holds a1 and a2, shard B holds b1: 3 bytes each. */
static void set_up(void)
{
    char json[1024];
    folder = k3_temp_folder_make();
    snprintf(json, sizeof json, "{%s,%s}", k3_u8_member("a1", 0, 3), k3_u8_member("a2", 3, 3));
    k3_shard_write(folder, "A.safetensors", json, 6);
    snprintf(json, sizeof json, "{%s}", k3_u8_member("b1", 0, 3));
    k3_shard_write(folder, "B.safetensors", json, 3);
}

static void tear_down(void)
{
    k3_shard_set_done(&set);
    k3_problems_done(&problems);
    k3_temp_folder_remove(folder);
}

#define A1  "\"a1\":\"A.safetensors\""
#define A2  "\"a2\":\"A.safetensors\""
#define B1  "\"b1\":\"B.safetensors\""
#define MAP "\"weight_map\":{" A1 "," A2 "," B1 "}"

static const char *const good[] = {
    "{\"metadata\":{\"total_size\":9}," MAP "}",
    "{" MAP "}",
    "{" MAP ",\"metadata\":{}}\n",
    "{\"other\":[1,2]," MAP ",\"metadata\":{\"total_size\":9,\"total_parameters\":1.5}}",
    "  { \"weight_map\" : { \"b1\" : \"B.safet\\u0065nsors\", " A2 ", " A1 " } }\n\n",
};

START_TEST(agrees)
{
    k3_text_write(folder, K3_SHARD_INDEX_NAME, good[_i]);
    const enum k3_code code = k3_shard_set_open(folder, &set, &problems, &err);
    ck_assert_msg(code == K3_OK, "%s", err.message);
    ck_assert(set.has_index);
}
END_TEST

static const struct {
    const char *text;
    size_t total;
    const char *a, *b; /* a line has both */
    const char *why;
} bad[] = {
    {"{\"weight_map\":{" A1 "," A2 "}}", 1, "B.safetensors", "1 tensors", "a shard not named"},
    {"{\"weight_map\":{" A1 "," B1 "}}", 1, "'a2'", "'A.safetensors'", "a tensor not named"},
    {"{\"weight_map\":{" A1 "," A2 "," B1 ",\"b2\":\"B.safetensors\"}}", 1, "'b2'",
     "'B.safetensors'", "a tensor that is nowhere"},
    {"{\"weight_map\":{" A1 "," B1 ",\"a2\":\"B.safetensors\"}}", 1, "'a2'", "'B.safetensors'",
     "a tensor elsewhere"},
    {"{\"weight_map\":{" A1 "," A2 "," B1 ",\"c\":\"C.safetensors\",\"d\":\"C.safetensors\"}}", 1,
     "'C.safetensors'", "2 tensors", "a shard that is missing"},
    {"{\"weight_map\":{" A1 "," A2 "," B1 ",\"c\":\"C\",\"d\":\"../D\"}}", 2, "'../D'", "missing",
     "two missing, one outside"},
    {"{\"weight_map\":{" A1 "," A2 "," B1 "," A1 "}}", 1, "'a1'", "twice", "a tensor named twice"},
    {"{\"metadata\":{\"total_size\":10}," MAP "}", 1, "total_size is 10", "9 bytes", "another sum"},
    {"{\"metadata\":{\"total_size\":9.0}," MAP "}", 1, "total_size", NULL, "a real sum"},
    {"{\"metadata\":{\"total_size\":-9}," MAP "}", 1, "total_size", NULL, "a negative sum"},
    {"{\"metadata\":{\"total_size\":null}," MAP "}", 1, "total_size", NULL, "null for a sum"},
    {"{\"metadata\":[]," MAP "}", 1, "metadata", NULL, "metadata that is a list"},
    {"{\"metadata\":{},\"metadata\":{}," MAP "}", 1, "twice", NULL, "metadata twice"},
    {"{" MAP "," MAP "}", 1, "twice", NULL, "two maps"},
    {"{\"metadata\":{}}", 1, "weight_map", NULL, "no map"},
    {"{\"weight_map\":[]}", 1, "JSON", NULL, "a map that is a list"},
    {"{\"weight_map\":{\"a1\":1}}", 1, "JSON", NULL, "a number for a file"},
    {"{" MAP "}x", 1, "padding", NULL, "bytes after the object"},
    {"{" MAP, 1, "JSON", NULL, "cut"},
    {"", 1, "JSON", NULL, "empty"},
    {"version https://git-lfs.github.com/spec/v1\n", 1, "JSON", NULL, "a git-lfs pointer"},
};

START_TEST(disagrees)
{
    k3_text_write(folder, K3_SHARD_INDEX_NAME, bad[_i].text);
    ck_assert_ok(k3_shard_set_scan(folder, &set, &problems, &err));
    const char *text = k3_problems_text(&problems);
    ck_assert_msg(problems.total == bad[_i].total, "%s: %zu%s", bad[_i].why, problems.total, text);
    ck_assert_msg(k3_problems_mention(&problems, bad[_i].a, bad[_i].b), "%s:%s", bad[_i].why, text);
}
END_TEST

/* What an unreadable shard should hold is not listed tensor by tensor. */
START_TEST(an_unreadable_shard_is_one_line)
{
    k3_text_write(folder, "A.safetensors", "");
    k3_text_write(folder, K3_SHARD_INDEX_NAME, good[0]);
    ck_assert_code(k3_shard_set_open(folder, &set, &problems, &err), K3_ERR_MALFORMED);
    ck_assert_uint_eq(problems.total, 1);
    ck_assert(k3_problems_mention(&problems, "'A.safetensors'", "empty"));
}
END_TEST

START_TEST(no_shard_at_all)
{
    k3_temp_folder_remove(folder);
    folder = k3_temp_folder_make();
    k3_text_write(folder, K3_SHARD_INDEX_NAME, good[0]);
    ck_assert_code(k3_shard_set_open(folder, &set, &problems, &err), K3_ERR_NO_INPUT);
    ck_assert_uint_eq(problems.total, 2);
    ck_assert(k3_problems_mention(&problems, "'A.safetensors' is missing", "2 tensors"));
    ck_assert(k3_problems_mention(&problems, "'B.safetensors' is missing", "1 tensors"));
}
END_TEST

Suite *k3_suite(void)
{
    Suite *suite = suite_create("shard_index");
    TCase *contract = tcase_create("contract");
    tcase_add_checked_fixture(contract, set_up, tear_down);
    tcase_add_loop_test(contract, agrees, 0, sizeof good / sizeof good[0]);
    tcase_add_loop_test(contract, disagrees, 0, sizeof bad / sizeof bad[0]);
    tcase_add_test(contract, an_unreadable_shard_is_one_line);
    tcase_add_test(contract, no_shard_at_all);
    suite_add_tcase(suite, contract);
    return suite;
}
