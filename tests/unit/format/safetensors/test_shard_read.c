/* SPDX-License-Identifier: Apache-2.0 */
#include "format/safetensors/shard_header.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/base/bytes.h"
#include "tests/support/failing.h"
#include "tests/support/suite_main.h"
#include "tests/support/temp_folder.h"
#include "tests/unit/format/safetensors/shard_fixture.h"

static const char json[] =
    "{\"__metadata__\":{\"format\":\"pt\"},"
    "\"a.weight\":{\"dtype\":\"BF16\",\"shape\":[2,3],\"data_offsets\":[0,12]},"
    "\"b.weight_packed\":{\"dtype\":\"U8\",\"shape\":[2,16],\"data_offsets\":[12,44]}}    ";

static const char *folder;
static char *path;
static uint8_t *shard;
static size_t shard_len;
static struct k3_error err;

static void set_up(void)
{
    folder = k3_temp_folder_make();
    path = k3_path_join(folder, "s.safetensors");
    shard = k3_shard_bytes(json, 44, &shard_len);
}

static void tear_down(void)
{
    free(shard);
    free(path);
    k3_temp_folder_remove(folder);
}

static enum k3_code read_bytes(const void *bytes, size_t len, struct k3_shard_header *out_header)
{
    struct k3_file file = K3_FILE_CLOSED;
    k3_temp_file_write(folder, "s.safetensors", bytes, len);
    ck_assert_ok(k3_file_open_read(path, &file, &err));
    const enum k3_code code = k3_shard_header_read(&file, out_header, &err);
    k3_file_close(&file);
    return code;
}

START_TEST(reads)
{
    struct k3_shard_header header;
    ck_assert_ok(read_bytes(shard, shard_len, &header));
    ck_assert_uint_eq(header.entry_count, 2);
    ck_assert_uint_eq(header.data_start, 8 + strlen(json));
    ck_assert_uint_eq(header.data_bytes, 44);
    ck_assert_str_eq(header.entries[1].name, "b.weight_packed");
    k3_shard_header_done(&header);
}
END_TEST

START_TEST(every_cut_is_refused)
{
    struct k3_shard_header header;
    for (size_t len = 0; len < shard_len; len++) {
        ck_assert_msg(read_bytes(shard, len, &header) == K3_ERR_MALFORMED, "cut to %zu", len);
    }
}
END_TEST

START_TEST(every_extension_is_refused)
{
    struct k3_shard_header header;
    uint8_t *longer = calloc(1, shard_len + 4096);
    ck_assert_ptr_nonnull(longer);
    memcpy(longer, shard, shard_len);
    static const size_t extra[] = {1, 2, 8, 4096};
    for (size_t i = 0; i < sizeof extra / sizeof extra[0]; i++) {
        ck_assert_code(read_bytes(longer, shard_len + extra[i], &header), K3_ERR_MALFORMED);
        ck_assert_uint_eq(err.file_offset, shard_len);
    }
    free(longer);
}
END_TEST

/* A flipped header byte may still be a header (another letter of a name), never a crash. */
START_TEST(every_flip_is_survived)
{
    static const uint8_t masks[] = {0x01, 0x20, 0x80, 0xff};
    for (size_t at = 0; at < 8 + strlen(json); at++) {
        for (size_t i = 0; i < sizeof masks; i++) {
            struct k3_shard_header header = {0};
            shard[at] ^= masks[i];
            const enum k3_code code = read_bytes(shard, shard_len, &header);
            shard[at] ^= masks[i];
            ck_assert_msg(code == K3_OK || code == K3_ERR_MALFORMED, "byte %zu: %s", at,
                          k3_code_name(code));
            ck_assert_msg(at >= 8 || code == K3_ERR_MALFORMED, "length byte %zu", at);
            k3_shard_header_done(&header);
        }
    }
}
END_TEST

static const struct {
    const char *text;
    const char *word; /* that the message must have */
    const char *why;
} impostors[] = {
    {"", "empty", "an empty file"},
    {"abc", "8", "three bytes"},
    {"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 16990916912\n", "git-lfs",
     "a git-lfs pointer"},
    {"<!DOCTYPE html><html><head>", "web page", "a web page"},
    {"<html>", "web page", "a web page, cut"},
    {"{\"error\":\"Access to model moonshotai/Kimi-K3 is restricted\"}", "error", "an error, JSON"},
    {"Access to model x is restricted", "error", "an error, text"},
    {"Entry not found", "not there", "an error of the hub"},
    {"GGUF\x03 and more", "GGUF", "a GGUF file"},
    {"PK\x03\x04 and more", "zip", "a PyTorch file"},
    {"some text or other, long enough", "not a safetensors", "any text"},
};

START_TEST(impostors_are_named)
{
    struct k3_shard_header header;
    const char *text = impostors[_i].text;
    ck_assert_msg(read_bytes(text, strlen(text), &header) == K3_ERR_MALFORMED, "%s",
                  impostors[_i].why);
    ck_assert_msg(strstr(err.message, impostors[_i].word) != NULL, "%s: %s", impostors[_i].why,
                  err.message);
}
END_TEST

static const struct {
    uint64_t header_len;
    const char *why;
} lengths[] = {
    {UINT64_MAX, "8 + H wraps to 7"},
    {UINT64_MAX - 7, "8 + H wraps to 0"},
    {UINT64_C(1) << 63, "negative, if signed"},
    {UINT64_C(1) << 32, "0, if cut to 32 bits"},
    {K3_SHARD_HEADER_MAX + 1, "above the cap"},
    {K3_SHARD_HEADER_MAX, "at the cap, beyond the file"},
    {1000, "beyond the file"},
    {0, "no header"},
};

START_TEST(lengths_are_checked)
{
    struct k3_shard_header header;
    k3_le64_put(shard, lengths[_i].header_len);
    ck_assert_msg(read_bytes(shard, shard_len, &header) == K3_ERR_MALFORMED, "%s", lengths[_i].why);
}
END_TEST

static const enum k3_failing_kind failing_kinds[] = {K3_FAILING_ALLOC, K3_FAILING_READ};

START_TEST(every_call_fails_once)
{
    const enum k3_failing_kind kind = failing_kinds[_i];
    struct k3_file file = K3_FILE_CLOSED;
    k3_temp_file_write(folder, "s.safetensors", shard, shard_len);
    ck_assert_ok(k3_file_open_read(path, &file, &err));
    for (uint64_t nth = 1;; nth++) {
        struct k3_shard_header header = {0};
        k3_failing_arm(kind, K3_FAILING_ONCE, nth);
        const enum k3_code code = k3_shard_header_read(&file, &header, &err);
        const bool hit = k3_failing_disarm();
        k3_shard_header_done(&header);
        if (!hit) {
            ck_assert_int_eq(code, K3_OK);
            ck_assert_uint_gt(nth, kind == K3_FAILING_ALLOC ? 20 : 3);
            break;
        }
        ck_assert_int_eq(code, kind == K3_FAILING_ALLOC ? K3_ERR_NO_MEMORY : K3_ERR_IO);
    }
    k3_file_close(&file);
}
END_TEST

START_TEST(short_reads_change_nothing)
{
    struct k3_file file = K3_FILE_CLOSED;
    struct k3_shard_header header = {0};
    k3_temp_file_write(folder, "s.safetensors", shard, shard_len);
    ck_assert_ok(k3_file_open_read(path, &file, &err));
    k3_failing_arm(K3_FAILING_READ, K3_FAILING_SHORT, 1);
    const enum k3_code code = k3_shard_header_read(&file, &header, &err);
    ck_assert(k3_failing_disarm());
    ck_assert_int_eq(code, K3_OK);
    ck_assert_uint_eq(header.entry_count, 2);
    k3_shard_header_done(&header);
    k3_file_close(&file);
}
END_TEST

Suite *k3_suite(void)
{
    Suite *suite = suite_create("shard_read");
    TCase *contract = tcase_create("contract");
    tcase_add_checked_fixture(contract, set_up, tear_down);
    tcase_add_test(contract, reads);
    tcase_add_loop_test(contract, impostors_are_named, 0, sizeof impostors / sizeof impostors[0]);
    tcase_add_loop_test(contract, lengths_are_checked, 0, sizeof lengths / sizeof lengths[0]);
    suite_add_tcase(suite, contract);
    TCase *damage = tcase_create("damage");
    tcase_add_checked_fixture(damage, set_up, tear_down);
    tcase_add_test(damage, every_cut_is_refused);
    tcase_add_test(damage, every_extension_is_refused);
    tcase_add_test(damage, every_flip_is_survived);
    suite_add_tcase(suite, damage);
    TCase *failing = tcase_create("fail everything once");
    tcase_add_checked_fixture(failing, set_up, tear_down);
    tcase_add_loop_test(failing, every_call_fails_once, 0, 2);
    tcase_add_test(failing, short_reads_change_nothing);
    suite_add_tcase(suite, failing);
    return suite;
}
