/* SPDX-License-Identifier: Apache-2.0 */
#include "format/pack/file_bundle.h"

#include <stdlib.h>
#include <string.h>

#include "format/base/bytes.h"
#include "tests/support/suite_main.h"

static struct k3_error err;

/* One record of docs/format.md 9.1. */
struct record {
    const char *name, *content;
};

/* count, then records that are written as they are given. */
static size_t write_records(uint8_t *out, uint32_t count, const struct record *records, size_t n)
{
    k3_le32_put(out, count);
    size_t at = 4;
    for (size_t i = 0; i < n; i++) {
        const size_t name_len = strlen(records[i].name);
        const size_t len = strlen(records[i].content);
        k3_le32_put(out + at, (uint32_t)name_len);
        k3_le64_put(out + at + 4, len);
        memcpy(out + at + 12, records[i].name, name_len);
        memcpy(out + at + 12 + name_len, records[i].content, len);
        at += 12 + name_len + len;
    }
    return at;
}

#define C                                                                                          \
    {                                                                                              \
        "config.json", "{}"                                                                        \
    }
#define G                                                                                          \
    {                                                                                              \
        "generation_config.json", ""                                                               \
    }
#define T                                                                                          \
    {                                                                                              \
        "tiktoken.model", "AA== 0\n"                                                               \
    }
#define K                                                                                          \
    {                                                                                              \
        "tokenizer_config.json", "[1]"                                                             \
    }
#define L                                                                                          \
    {                                                                                              \
        "LICENSE", "do as you like"                                                                \
    }

static const struct {
    struct record records[6];
    size_t n;
    uint32_t count;
    bool is_good;
    const char *why;
} cases[] = {
    {{C, G, T, K, L}, 5, 5, true, "all files"},
    {{C, T, K}, 3, 3, true, "only what must be there"},
    {{C, T, K, L}, 4, 4, true, "one that need not"},
    {{T, K}, 2, 2, false, "no config.json"},
    {{C, K, L}, 3, 3, false, "no tiktoken.model"},
    {{C, G, T, L}, 4, 4, false, "no tokenizer_config.json"},
    {{C, T, G, K}, 4, 4, false, "another order"},
    {{C, C, T, K}, 4, 4, false, "one file twice"},
    {{C, T, K, {"README", ""}}, 4, 4, false, "unknown name"},
    {{C, T, K, {"LICENS", ""}}, 4, 4, false, "a name cut"},
    {{C, T, K, {"LICENSE2", ""}}, 4, 4, false, "a name longer"},
    {{C, T, K, {"", ""}}, 4, 4, false, "no name"},
    {{C, T, K}, 3, 2, false, "a record more than the count"},
    {{C, T, K}, 3, 4, false, "a record less than the count"},
    {{C, T, K}, 3, UINT32_MAX, false, "a count without bound"},
    {{C}, 0, 0, false, "nothing"},
};

START_TEST(records)
{
    uint8_t buffer[512];
    const size_t len = write_records(buffer, cases[_i].count, cases[_i].records, cases[_i].n);
    uint8_t *bytes = malloc(len);
    memcpy(bytes, buffer, len);
    struct k3_file_bundle bundle = {0};
    const enum k3_code code = k3_file_bundle_decode(bytes, len, &bundle, &err);
    ck_assert_msg(code == (cases[_i].is_good ? K3_OK : K3_ERR_MALFORMED), "%s: %s", cases[_i].why,
                  k3_code_name(code));
    if (code == K3_OK) {
        uint8_t *again = NULL;
        size_t again_len = 0;
        ck_assert_ok(k3_file_bundle_encode(&bundle, &again, &again_len, &err));
        ck_assert_uint_eq(again_len, len);
        ck_assert_mem_eq(again, bytes, len);
        ck_assert_str_eq((const char *)bundle.files[K3_BUNDLED_CONFIG].bytes, "{}");
        free(again);
    }
    k3_file_bundle_done(&bundle);
    free(bytes);
}
END_TEST

START_TEST(cut_and_extended)
{
    static const struct record all[] = {C, G, T, K, L};
    uint8_t buffer[512];
    const size_t whole = write_records(buffer, 5, all, 5);
    buffer[whole] = 0;
    for (size_t len = 0; len <= whole + 1; len++) {
        uint8_t *bytes = malloc(len ? len : 1);
        memcpy(bytes, buffer, len);
        struct k3_file_bundle bundle = {0};
        const enum k3_code code = k3_file_bundle_decode(bytes, len, &bundle, &err);
        ck_assert_msg(code == (len == whole ? K3_OK : K3_ERR_MALFORMED), "%zu bytes", len);
        k3_file_bundle_done(&bundle);
        free(bytes);
    }
}
END_TEST

/* Lengths that would wrap or reach past the end. */
START_TEST(lying_lengths)
{
    static const struct record all[] = {C, T, K};
    static const uint64_t lengths[] = {3, 200, UINT32_MAX, UINT64_MAX, UINT64_MAX - 11};
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        uint8_t bytes[256];
        const size_t len = write_records(bytes, 3, all, 3);
        k3_le64_put(bytes + 8, lengths[i]);
        struct k3_file_bundle bundle;
        ck_assert_code(k3_file_bundle_decode(bytes, len, &bundle, NULL), K3_ERR_MALFORMED);
        write_records(bytes, 3, all, 3);
        k3_le32_put(bytes + 4, (uint32_t)lengths[i]);
        ck_assert_code(k3_file_bundle_decode(bytes, len, &bundle, NULL), K3_ERR_MALFORMED);
    }
}
END_TEST

START_TEST(known_names)
{
    static const char *const names[] = {"config.json", "generation_config.json", "tiktoken.model",
                                        "tokenizer_config.json", "LICENSE"};
    for (unsigned i = 0; i < K3_BUNDLED_COUNT; i++) {
        ck_assert_str_eq(k3_bundled_name((enum k3_bundled_file)i), names[i]);
        ck_assert(k3_bundled_is_required((enum k3_bundled_file)i) == (i == 0 || i == 2 || i == 3));
    }
}
END_TEST

/* A writer that forgot a file must hear it, not the reader of the pack. */
START_TEST(encode_needs_what_decode_needs)
{
    uint8_t text[] = "x";
    for (unsigned missing = 0; missing < K3_BUNDLED_COUNT; missing++) {
        struct k3_file_bundle bundle = {0};
        for (unsigned i = 0; i < K3_BUNDLED_COUNT; i++) {
            bundle.files[i].bytes = i == missing ? NULL : text;
            bundle.files[i].len = i == missing ? 0 : 1;
        }
        uint8_t *bytes = NULL;
        size_t len = 0;
        const enum k3_code code = k3_file_bundle_encode(&bundle, &bytes, &len, &err);
        const bool is_required = k3_bundled_is_required((enum k3_bundled_file)missing);
        ck_assert_code(code, is_required ? K3_ERR_MALFORMED : K3_OK);
        free(bytes);
    }
}
END_TEST

Suite *k3_suite(void)
{
    Suite *suite = suite_create("file_bundle");
    TCase *contract = tcase_create("contract");
    tcase_add_loop_test(contract, records, 0, sizeof cases / sizeof cases[0]);
    tcase_add_test(contract, known_names);
    tcase_add_test(contract, encode_needs_what_decode_needs);
    suite_add_tcase(suite, contract);
    TCase *damage = tcase_create("damage");
    tcase_add_test(damage, cut_and_extended);
    tcase_add_test(damage, lying_lengths);
    suite_add_tcase(suite, damage);
    return suite;
}
