/* SPDX-License-Identifier: Apache-2.0 */
#include "format/safetensors/shard_set.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/failing.h"
#include "tests/support/suite_main.h"
#include "tests/support/temp_folder.h"
#include "tests/unit/format/safetensors/shard_fixture.h"

static const char *folder;
static struct k3_error err;
static struct k3_shard_set set;
static struct k3_problems problems;

static void set_up(void)
{
    folder = k3_temp_folder_make();
}

static void tear_down(void)
{
    k3_shard_set_done(&set);
    k3_problems_done(&problems);
    k3_temp_folder_remove(folder);
}

/* Two tensors, 4 and 6 bytes, named for the shard. */
static void write_two(const char *file, const char *stem)
{
    char json[1024];
    char first[64];
    char second[64];
    snprintf(first, sizeof first, "%s.first", stem);
    snprintf(second, sizeof second, "%s.second", stem);
    snprintf(json, sizeof json, "{%s,%s}", k3_u8_member(second, 4, 6), k3_u8_member(first, 0, 4));
    k3_shard_write(folder, file, json, 10);
}

static void path_of(const char *name, char out_path[1024])
{
    snprintf(out_path, 1024, "%s/%s", folder, name);
}

START_TEST(places)
{
    write_two("b.safetensors", "two");
    write_two("a.safetensors", "one");
    k3_text_write(folder, "notes.txt", "not a shard");
    k3_text_write(folder, "._a.safetensors", "what a Mac leaves");
    ck_assert_ok(k3_shard_set_open(folder, &set, &problems, &err));
    ck_assert_uint_eq(set.shard_count, 2);
    ck_assert_uint_eq(set.tensor_count, 4);
    ck_assert_uint_eq(set.tensor_bytes, 20);
    ck_assert_uint_eq(set.unread_count, 0);
    ck_assert(!set.has_index);
    ck_assert_str_eq(set.shards[0].name, "a.safetensors");
    ck_assert_uint_eq(set.shards[1].first_tensor, 2);
    ck_assert_int_gt(set.shards[0].modified_ns, 0);
    struct k3_tensor_place place;
    ck_assert(!k3_shard_set_find(&set, "two.third", &place));
    ck_assert(k3_shard_set_find(&set, "two.second", &place));
    ck_assert_uint_eq(place.shard_index, 1);
    ck_assert_str_eq(place.shard->name, "b.safetensors");
    ck_assert_str_eq(place.entry->name, "two.second");
    ck_assert_uint_eq(place.bytes, 6);
    ck_assert_uint_eq(place.file_offset + 6, place.shard->file_bytes);
    struct k3_file file = K3_FILE_CLOSED;
    uint8_t bytes[6];
    ck_assert_ok(k3_shard_open(place.shard, &file, &err));
    ck_assert_ok(k3_file_read(&file, place.file_offset, bytes, 6, &err));
    for (unsigned i = 0; i < 6; i++) {
        ck_assert_uint_eq(bytes[i], 4 + i);
    }
    k3_file_close(&file);
}
END_TEST

START_TEST(a_shard_that_changed)
{
    write_two("a.safetensors", "one");
    ck_assert_ok(k3_shard_set_open(folder, &set, &problems, &err));
    k3_text_write(folder, "a.safetensors", "shorter");
    struct k3_file file = K3_FILE_CLOSED;
    ck_assert_code(k3_shard_open(&set.shards[0], &file, &err), K3_ERR_MALFORMED);
    ck_assert_int_lt(file.fd, 0);
    ck_assert_int_eq(unlink(set.shards[0].path), 0);
    ck_assert_code(k3_shard_open(&set.shards[0], &file, &err), K3_ERR_NO_INPUT);
}
END_TEST

START_TEST(links_are_followed)
{
    char target[1024];
    char link[1024];
    write_two("blob", "one");
    path_of("blob", target);
    path_of("a.safetensors", link);
    ck_assert_int_eq(symlink(target, link), 0);
    ck_assert_ok(k3_shard_set_open(folder, &set, &problems, &err));
    ck_assert_uint_eq(set.tensor_count, 2);
}
END_TEST

START_TEST(no_folder_no_shards)
{
    char path[1024];
    path_of("none", path);
    ck_assert_code(k3_shard_set_open(path, &set, &problems, &err), K3_ERR_NO_INPUT);
    k3_text_write(folder, "file", "x");
    path_of("file", path);
    ck_assert_code(k3_shard_set_open(path, &set, &problems, &err), K3_ERR_NO_INPUT);
    ck_assert_uint_eq(problems.total, 0);
    ck_assert_code(k3_shard_set_open(folder, &set, &problems, &err), K3_ERR_NO_INPUT);
    ck_assert_uint_eq(problems.total, 1);
}
END_TEST

START_TEST(everything_wrong_at_once)
{
    char path[1024];
    write_two("a.safetensors", "one");
    k3_text_write(folder, "b.safetensors", "");
    k3_text_write(folder, "c.safetensors", "version https://git-lfs.github.com/spec/v1\n");
    path_of("d.safetensors", path);
    ck_assert_int_eq(mkdir(path, 0777), 0);
    path_of("e.safetensors", path);
    ck_assert_int_eq(symlink("/nowhere/at/all", path), 0);
    write_two("f.safetensors", "one");
    k3_shard_write(folder, "g.safetensors",
                   "{\"a\":{\"dtype\":\"U8\",\"shape\":[4],"
                   "\"data_offsets\":[0,4]}}",
                   3);
    k3_text_write(folder, "a.safetensors.aria2", "");
    k3_text_write(folder, "h.safetensors.part", "");
    k3_text_write(folder, "i.safetensors.0f3a.incomplete", "");
    ck_assert_ok(k3_shard_set_scan(folder, &set, &problems, &err));
    const char *text = k3_problems_text(&problems);
    ck_assert_msg(k3_problems_mention(&problems, "'b.safetensors'", "empty"), "%s", text);
    ck_assert_msg(k3_problems_mention(&problems, "'c.safetensors'", "git-lfs"), "%s", text);
    ck_assert_msg(k3_problems_mention(&problems, "'d.safetensors'", "regular"), "%s", text);
    ck_assert_msg(k3_problems_mention(&problems, "'e.safetensors'", "link"), "%s", text);
    ck_assert_msg(k3_problems_mention(&problems, "'one.first'", "'f.safetensors'"), "%s", text);
    ck_assert_msg(k3_problems_mention(&problems, "'one.second'", "'a.safetensors'"), "%s", text);
    ck_assert_msg(k3_problems_mention(&problems, "'g.safetensors'", "missing"), "%s", text);
    ck_assert_msg(k3_problems_mention(&problems, "'a.safetensors.aria2'", "aria2"), "%s", text);
    ck_assert_msg(k3_problems_mention(&problems, "'h.safetensors.part'", "'h.safetensors'"), "%s",
                  text);
    ck_assert_msg(k3_problems_mention(&problems, ".incomplete'", "'i.safetensors'"), "%s", text);
    ck_assert_uint_eq(problems.total, 10);
    ck_assert_uint_eq(set.unread_count, 5);
    struct k3_tensor_place place;
    ck_assert(k3_shard_set_find(&set, "one.first", &place));
    ck_assert_str_eq(place.shard->name, "a.safetensors");
}
END_TEST

START_TEST(an_unreadable_shard)
{
    char path[1024];
    write_two("a.safetensors", "one");
    path_of("a.safetensors", path);
    ck_assert_int_eq(chmod(path, 0), 0);
    if (geteuid() == 0) {
        return; /* root reads everything; the failing-open test covers it */
    }
    ck_assert_code(k3_shard_set_open(folder, &set, &problems, &err), K3_ERR_IO);
    ck_assert(k3_problems_mention(&problems, "a.safetensors", NULL));
}
END_TEST

START_TEST(duplicates_are_capped)
{
    char json[K3_CHECKPOINT_LINES_MAX * 2 * 80];
    size_t used = (size_t)sprintf(json, "{");
    for (size_t i = 0; i < K3_CHECKPOINT_LINES_MAX + 50; i++) {
        char name[32];
        snprintf(name, sizeof name, "t%zu", i);
        used += (size_t)sprintf(json + used, "%s%s", i ? "," : "", k3_u8_member(name, i, 1));
    }
    sprintf(json + used, "}");
    k3_shard_write(folder, "a.safetensors", json, K3_CHECKPOINT_LINES_MAX + 50);
    k3_shard_write(folder, "b.safetensors", json, K3_CHECKPOINT_LINES_MAX + 50);
    ck_assert_code(k3_shard_set_open(folder, &set, &problems, &err), K3_ERR_MALFORMED);
    ck_assert_uint_eq(problems.total, K3_CHECKPOINT_LINES_MAX + 1);
    ck_assert(k3_problems_mention(&problems, "and 50 more", NULL));
}
END_TEST

static const struct {
    const char *files[5];
    const char *mention;
    size_t total;
    const char *why;
} gaps[] = {
    {{"model-00001-of-000002", "model-00002-of-000002"}, NULL, 0, "all there"},
    {{"model"}, NULL, 0, "one file without a number"},
    {{"model-00001-of-000003", "model-00003-of-000003"}, "model-00002-of-000003", 1, "the middle"},
    {{"model-00002-of-000002"}, "model-00001-of-000002", 1, "the first"},
    {{"model-00001-of-000003"}, "model-00003-of-000003", 2, "the last two"},
    {{"model-1-of-2"}, "'model-2-of-2", 1, "other widths"},
    {{"a-00001-of-00002", "b-00001-of-00001"}, "a-00002-of-00002", 1, "two series"},
    {{"model-00001-of-000002", "model-00001-of-000003", "model-00002-of-000002"},
     "totals",
     1,
     "two checkpoints"},
    {{"model-00003-of-000002", "model-00001-of-000002", "model-00002-of-000002"},
     "outside",
     1,
     "a number beyond the total"},
    {{"model-00000-of-000001", "model-00001-of-000001"}, "outside", 1, "number 0"},
    {{"model-x-of-y", "model-1-of-", "model--of-2", "1-of-2x"}, NULL, 0, "names of no series"},
    {{"model-00001-of-012345"}, "and 12244 more", 101, "very many"},
};

START_TEST(gaps_in_the_numbers)
{
    for (size_t i = 0; i < 5 && gaps[_i].files[i]; i++) {
        char file[64];
        char stem[16];
        snprintf(file, sizeof file, "%s.safetensors", gaps[_i].files[i]);
        snprintf(stem, sizeof stem, "t%zu", i);
        write_two(file, stem);
    }
    ck_assert_ok(k3_shard_set_scan(folder, &set, &problems, &err));
    ck_assert_msg(problems.total == gaps[_i].total, "%s: %zu%s", gaps[_i].why, problems.total,
                  k3_problems_text(&problems));
    if (gaps[_i].mention) {
        ck_assert_msg(k3_problems_mention(&problems, gaps[_i].mention, NULL), "%s:%s", gaps[_i].why,
                      k3_problems_text(&problems));
    }
}
END_TEST

START_TEST(the_hub_s_leftovers_are_a_hint)
{
    char path[1024];
    static const char *const folders[] = {".cache", ".cache/huggingface",
                                          ".cache/huggingface/download"};
    for (size_t i = 0; i < 3; i++) {
        path_of(folders[i], path);
        ck_assert_int_eq(mkdir(path, 0777), 0);
    }
    k3_text_write(path, "abc.0123.incomplete", "");
    write_two("model-00001-of-000002.safetensors", "one");
    ck_assert_ok(k3_shard_set_scan(folder, &set, &problems, &err));
    ck_assert_uint_eq(problems.total, 2);
    ck_assert(k3_problems_mention(&problems, "1 unfinished", NULL));
    k3_problems_done(&problems);
    k3_shard_set_done(&set);
    write_two("model-00002-of-000002.safetensors", "two");
    ck_assert_ok(k3_shard_set_open(folder, &set, &problems, &err));
}
END_TEST

static void write_indexed(void)
{
    write_two("a.safetensors", "one");
    write_two("b.safetensors", "two");
    k3_text_write(folder, "c.safetensors.part", "");
    k3_text_write(
        folder, K3_SHARD_INDEX_NAME,
        "{\"metadata\":{\"total_size\":20},\"weight_map\":{\"one.first\":\"a.safetensors\","
        "\"one.second\":\"a.safetensors\",\"two.first\":\"b.safetensors\","
        "\"two.second\":\"b.safetensors\",\"x\":\"gone.safetensors\"}}");
}

static const enum k3_failing_kind failing_kinds[] = {K3_FAILING_ALLOC, K3_FAILING_READ,
                                                     K3_FAILING_OPEN, K3_FAILING_LIST};

/* Memory ends the scan; a shard or an index that cannot be read is one problem more. */
START_TEST(every_call_fails_once)
{
    const enum k3_failing_kind kind = failing_kinds[_i];
    write_indexed();
    uint64_t hits = 0;
    for (uint64_t nth = 1;; nth++) {
        struct k3_shard_set scanned = {0};
        struct k3_problems found = {0};
        k3_failing_arm(kind, K3_FAILING_ONCE, nth);
        const enum k3_code code = k3_shard_set_scan(folder, &scanned, &found, &err);
        const bool hit = k3_failing_disarm();
        const size_t total = found.total;
        k3_shard_set_done(&scanned);
        k3_problems_done(&found);
        if (!hit) {
            ck_assert_int_eq(code, K3_OK);
            ck_assert_uint_eq(total, 2);
            break;
        }
        hits++;
        ck_assert_msg(code == (kind == K3_FAILING_ALLOC ? K3_ERR_NO_MEMORY : K3_ERR_IO) ||
                          (code == K3_OK && total >= 2),
                      "%s, nth %llu", k3_code_name(code), (unsigned long long)nth);
    }
    ck_assert_uint_gt(hits, 2);
}
END_TEST

Suite *k3_suite(void)
{
    Suite *suite = suite_create("shard_set");
    TCase *contract = tcase_create("contract");
    tcase_add_checked_fixture(contract, set_up, tear_down);
    tcase_add_test(contract, places);
    tcase_add_test(contract, a_shard_that_changed);
    tcase_add_test(contract, links_are_followed);
    suite_add_tcase(suite, contract);
    TCase *wrong = tcase_create("wrong folders");
    tcase_add_checked_fixture(wrong, set_up, tear_down);
    tcase_add_test(wrong, no_folder_no_shards);
    tcase_add_test(wrong, everything_wrong_at_once);
    tcase_add_test(wrong, an_unreadable_shard);
    tcase_add_test(wrong, duplicates_are_capped);
    tcase_add_loop_test(wrong, gaps_in_the_numbers, 0, sizeof gaps / sizeof gaps[0]);
    tcase_add_test(wrong, the_hub_s_leftovers_are_a_hint);
    suite_add_tcase(suite, wrong);
    TCase *failing = tcase_create("fail everything once");
    tcase_add_checked_fixture(failing, set_up, tear_down);
    tcase_add_loop_test(failing, every_call_fails_once, 0, 4);
    suite_add_tcase(suite, failing);
    return suite;
}
