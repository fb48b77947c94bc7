/* SPDX-License-Identifier: Apache-2.0 */
#include "format/safetensors/shard_header.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/suite_main.h"

#define T(name, dtype, shape, begin, end)                                                          \
    "\"" name "\":{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":[" #begin "," #end \
    "]}"

static struct k3_error err;

static enum k3_code parse(const char *json, uint64_t data_bytes, struct k3_shard_header *out)
{
    /* A copy of exactly this length: a sanitizer sees a byte read past it. */
    const size_t len = strlen(json);
    uint8_t *bytes = malloc(len ? len : 1);
    ck_assert_ptr_nonnull(bytes);
    memcpy(bytes, json, len);
    const enum k3_code code = k3_shard_header_parse(bytes, len, data_bytes, out, &err);
    free(bytes);
    return code;
}

static const struct {
    const char *json;
    uint64_t data_bytes;
    size_t entry_count;
    const char *why;
} good[] = {
    {"{}", 0, 0, "no tensor"},
    {"{}      ", 0, 0, "padding"},
    {"{\"__metadata__\":{\"format\":\"pt\"}}", 0, 0, "metadata alone"},
    {"{\"__metadata__\":{}," T("a", "U8", "[4]", 0, 4) "}", 4, 1, "metadata before"},
    {"{" T("a", "U8", "[4]", 0, 4) ",\"__metadata__\":{\"a\":\"\"}}", 4, 1, "metadata after"},
    {"{" T("a", "BF16", "[2,3]", 0, 12) "," T("b", "F32", "[1,1,2]", 12, 20) "}   ", 20, 2, "two"},
    {"{" T("b", "U8", "[4]", 4, 8) "," T("a", "U8", "[4]", 0, 4) "}", 8, 2, "other order"},
    {"{" T("a", "F32", "[]", 0, 4) "}", 4, 1, "a scalar"},
    {"{" T("a", "F32", "[0]", 0, 0) "}", 0, 1, "no items"},
    {"{" T("a", "F32", "[5,0]", 0, 0) "," T("b", "U8", "[1]", 0, 1) "}", 1, 2,
     "empty at the start"},
    {"{" T("a", "U8", "[0]", 1, 1) "," T("b", "U8", "[1]", 0, 1) "}", 1, 2, "empty at the end"},
    {"{" T("a", "U8", "[1,1,1,1,1,1,1,1]", 0, 1) "}", 1, 1, "eight dimensions"},
    {"{" T("a", "F4", "[2,8]", 0, 8) "}", 8, 1, "packed nibbles"},
    {"{" T("a", "F6_E2M3", "[4]", 0, 3) "}", 3, 1, "packed sixes"},
    {"{" T("a", "F64", "[1]", 0, 8) "," T("b", "BOOL", "[1]", 8, 9) "}", 9, 2, "strange dtypes"},
    {"{\"a\" : { \"shape\" : [ 4 ] ,\n\t\"data_offsets\":[0,4],\"dtype\":\"U8\"} }", 4, 1,
     "spaces"},
    {"{" T("", "U8", "[1]", 0, 1) "}", 1, 1, "an empty name"},
};

START_TEST(accepts)
{
    struct k3_shard_header header;
    const enum k3_code code = parse(good[_i].json, good[_i].data_bytes, &header);
    ck_assert_msg(code == K3_OK, "%s: %s", good[_i].why, err.message);
    ck_assert_uint_eq(header.entry_count, good[_i].entry_count);
    ck_assert_uint_eq(header.data_start, 8 + strlen(good[_i].json));
    ck_assert_uint_eq(header.data_bytes, good[_i].data_bytes);
    uint64_t end = 0;
    for (size_t i = 0; i < header.entry_count; i++) {
        ck_assert_uint_eq(header.entries[i].begin, end);
        end = header.entries[i].end;
    }
    ck_assert_uint_eq(end, good[_i].data_bytes);
    k3_shard_header_done(&header);
    ck_assert_ptr_null(header.entries);
}
END_TEST

START_TEST(fields)
{
    struct k3_shard_header header;
    const char json[] = "{" T("z\\u0041\\\"\\\\\\/\\u00e9\\ud83d\\ude00", "BF16", "[2,3]", 8,
                              20) "," T("y", "F32", "[2]", 0, 8) "}";
    ck_assert_ok(parse(json, 20, &header));
    ck_assert_uint_eq(header.entry_count, 2);
    const struct k3_tensor_entry *first = &header.entries[0];
    const struct k3_tensor_entry *second = &header.entries[1];
    ck_assert_str_eq(first->name, "y");
    ck_assert_int_eq(first->dtype, K3_SOURCE_F32);
    ck_assert_uint_eq(first->dims, 1);
    ck_assert_uint_eq(first->shape[0], 2);
    ck_assert_uint_eq(first->end, 8);
    ck_assert_uint_eq(first->name_at, 8 + (uint64_t)(strstr(json, "\"y\"") - json));
    ck_assert_str_eq(second->name, "zA\"\\/\xc3\xa9\xf0\x9f\x98\x80");
    ck_assert_int_eq(second->dtype, K3_SOURCE_BF16);
    ck_assert_uint_eq(second->dims, 2);
    ck_assert_uint_eq(second->shape[0], 2);
    ck_assert_uint_eq(second->shape[1], 3);
    ck_assert_uint_eq(second->shape[2], 0);
    ck_assert_uint_eq(second->begin, 8);
    ck_assert_uint_eq(second->name_at, 9);
    k3_shard_header_done(&header);
}
END_TEST

#define ANY UINT64_MAX

static const struct {
    const char *json;
    uint64_t data_bytes;
    uint64_t offset; /* expected in the error, or ANY */
    const char *why;
} bad[] = {
    {"", 0, 8, "nothing"},
    {"[]", 0, 8, "a list"},
    {" {}", 0, 8, "white space first"},
    {"\xef\xbb\xbf{}", 0, 8, "a byte order mark"},
    {"{", 0, 9, "cut after the brace"},
    {"{}\n", 0, 10, "a newline as padding"},
    {"{}\t", 0, 10, "a tab as padding"},
    {"{}  x", 0, 12, "a letter after the padding"},
    {"{}{}", 0, 10, "two objects"},
    {"{" T("a", "U8", "[4]", 0, 4) ",}", 4, ANY, "a comma too many"},
    {"{," T("a", "U8", "[4]", 0, 4) "}", 4, 9, "a comma first"},
    {"{" T("a", "U8", "[4]", 0, 4) T("b", "U8", "[4]", 4, 8) "}", 8, ANY, "a comma too few"},
    {"{\"a\"}", 0, 12, "a name alone"},
    {"{\"a\":}", 0, ANY, "no value"},
    {"{a:1}", 0, 9, "no quotes"},
    {"{1:2}", 0, 9, "a number for a name"},
    {"{\"a\":1}", 0, 9, "a number for an entry"},
    {"{\"a\":[]}", 0, 9, "a list for an entry"},
    {"{\"a\":null}", 0, 9, "null for an entry"},
    {"{\"a\":{}}", 0, 9, "an empty entry"},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[4]}}", 4, 9, "no offsets"},
    {"{\"a\":{\"dtype\":\"U8\",\"data_offsets\":[0,4]}}", 4, 9, "no shape"},
    {"{\"a\":{\"shape\":[4],\"data_offsets\":[0,4]}}", 4, 9, "no dtype"},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4],\"x\":1}}", 4, 9,
     "a fourth key"},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"offsets\":[0,4]}}", 4, 9, "another key"},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"shape\":[4],\"data_offsets\":[0,4]}}", 4, ANY,
     "a key twice in an entry"},
    {"{" T("a", "U8", "[4]", 0, 4) "," T("a", "U8", "[4]", 4, 8) "}", 8, ANY, "a name twice"},
    {"{" T("a", "U8", "[4]", 0, 4) "," T("\\u0061", "U8", "[4]", 4, 8) "}", 8, ANY,
     "a name twice, once escaped"},
    {"{" T("a", "U8", "[0]", 0, 0) "," T("a", "U8", "[0]", 0, 0) "}", 0, ANY,
     "a name twice, empty"},
    {"{" T("a", "U9", "[4]", 0, 4) "}", 4, 9, "an unknown dtype"},
    {"{" T("a", "u8", "[4]", 0, 4) "}", 4, 9, "a dtype in small letters"},
    {"{\"a\":{\"dtype\":8,\"shape\":[4],\"data_offsets\":[0,4]}}", 4, 9, "a number for a dtype"},
    {"{" T("a", "U8", "4", 0, 4) "}", 4, 9, "a number for a shape"},
    {"{" T("a", "U8", "[-4]", 0, 4) "}", 4, 9, "a negative dimension"},
    {"{" T("a", "U8", "[4.0]", 0, 4) "}", 4, 9, "a real dimension"},
    {"{" T("a", "U8", "[\\\"4\\\"]", 0, 4) "}", 4, ANY, "text for a dimension"},
    {"{" T("a", "U8", "[true]", 0, 1) "}", 1, 9, "a boolean dimension"},
    {"{" T("a", "U8", "[1,1,1,1,1,1,1,1,1]", 0, 1) "}", 1, 9, "nine dimensions"},
    {"{" T("a", "U8", "[4294967296,4294967296]", 0, 0) "}", 0, 9, "a product that wraps to 0"},
    {"{" T("a", "F32", "[4611686018427387905]", 0, 4) "}", 4, 9, "bytes that wrap to 4"},
    {"{" T("a", "U8", "[18446744073709551615]", 0, 4) "}", 4, ANY, "a dimension beyond 63 bits"},
    {"{" T("a", "F4", "[3]", 0, 1) "}", 1, 9, "half a byte"},
    {"{" T("a", "BF16", "[2,3]", 0, 6) "}", 6, 9, "items counted as bytes"},
    {"{" T("a", "U8", "[4]", 0, 5) "}", 5, 9, "longer than its shape"},
    {"{" T("a", "U8", "[4]", -4, 0) "}", 0, 9, "a negative offset"},
    {"{" T("a", "U8", "[4]", 0, 4.0) "}", 4, 9, "a real offset"},
    {"{" T("a", "U8", "[4]", 0, 4e0) "}", 4, 9, "an offset with an exponent"},
    {"{" T("a", "U8", "[4]", 4, 0) "}", 4, 9, "an end before its begin"},
    {"{" T("a", "U8", "[4]", 18446744073709551614, 2) "}", 4, ANY, "an offset that wraps"},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0]}}", 4, 9, "one offset"},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4,8]}}", 4, 9, "three offsets"},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":{\"0\":0,\"1\":4}}}", 4, 9,
     "an object of offsets"},
    {"{" T("a", "U8", "[4]", 0, 4) "," T("b", "U8", "[4]", 3, 7) "}", 7, ANY, "an overlap"},
    {"{" T("a", "U8", "[4]", 0, 4) "," T("b", "U8", "[4]", 0, 4) "}", 4, ANY, "the same bytes"},
    {"{" T("a", "U8", "[8]", 0, 8) "," T("b", "U8", "[2]", 3, 5) "}", 8, ANY, "one inside another"},
    {"{" T("a", "U8", "[8]", 0, 8) "," T("b", "U8", "[0]", 3, 3) "}", 8, ANY,
     "an empty one inside another"},
    {"{" T("a", "U8", "[4]", 0, 4) "," T("b", "U8", "[4]", 5, 9) "}", 9, ANY, "a gap"},
    {"{" T("a", "U8", "[4]", 1, 5) "}", 5, 9, "a gap at the start"},
    {"{" T("a", "U8", "[4]", 0, 4) "}", 3, ANY, "data cut by one byte"},
    {"{" T("a", "U8", "[4]", 0, 4) "}", 0, ANY, "no data at all"},
    {"{" T("a", "U8", "[4]", 0, 4) "}", 5, ANY, "one byte too many"},
    {"{}", 1, 10, "a byte that belongs to nothing"},
    {"{}", UINT64_MAX, ANY, "more data than a file can have"},
    {"{\"__metadata__\":[]}", 0, 9, "metadata that is a list"},
    {"{\"__metadata__\":{\"a\":1}}", 0, 9, "metadata that is no string"},
    {"{\"__metadata__\":{\"a\":{}}}", 0, 9, "metadata that nests"},
    {"{\"__metadata__\":{},\"__metadata__\":{}}", 0, ANY, "metadata twice"},
    {"{\"__metadata__\":{\"a\":\"\",\"a\":\"\"}}", 0, ANY, "a key twice in the metadata"},
    {"{" T("a\\u0000", "U8", "[1]", 0, 1) "}", 1, ANY, "a NUL in a name"},
    {"{" T("a\\u001b[31m", "U8", "[1]", 0, 1) "}", 1, 9, "terminal codes in a name"},
    {"{" T("a\\n", "U8", "[1]", 0, 1) "}", 1, 9, "a newline in a name"},
    {"{" T("a\x7f", "U8", "[1]", 0, 1) "}", 1, 9, "DEL in a name"},
    {"{" T("a\xff", "U8", "[1]", 0, 1) "}", 1, ANY, "a name that is not UTF-8"},
    {"{" T("a\\ud800", "U8", "[1]", 0, 1) "}", 1, ANY, "half a surrogate pair"},
    {"{" T("a\\x", "U8", "[1]", 0, 1) "}", 1, ANY, "an unknown escape"},
    {"{\"a", 0, ANY, "cut in a name"},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_off", 4, ANY, "cut in an entry"},
};

START_TEST(refuses)
{
    struct k3_shard_header header = {.entry_count = 77};
    const enum k3_code code = parse(bad[_i].json, bad[_i].data_bytes, &header);
    ck_assert_msg(code == K3_ERR_MALFORMED, "%s: %s", bad[_i].why, k3_code_name(code));
    ck_assert_msg(bad[_i].offset == ANY || err.file_offset == bad[_i].offset,
                  "%s: at %llu, expected %llu (%s)", bad[_i].why,
                  (unsigned long long)err.file_offset, (unsigned long long)bad[_i].offset,
                  err.message);
    ck_assert_msg(err.file_offset != K3_ERROR_NO_OFFSET, "%s: %s", bad[_i].why, err.message);
    ck_assert_uint_eq(header.entry_count, 77);
}
END_TEST

START_TEST(have_and_need)
{
    struct k3_shard_header header;
    const char json[] = "{" T("a", "U8", "[4000]", 0, 4000) "}";
    char text[64];
    ck_assert_code(parse(json, 1500, &header), K3_ERR_MALFORMED);
    snprintf(text, sizeof text, "has %zu bytes", 8 + strlen(json) + 1500);
    ck_assert_msg(strstr(err.message, text) != NULL, "%s", err.message);
    snprintf(text, sizeof text, "need %zu", 8 + strlen(json) + 4000);
    ck_assert_msg(strstr(err.message, text) != NULL, "%s", err.message);
    ck_assert_uint_eq(err.file_offset, 8 + strlen(json) + 1500);
}
END_TEST

START_TEST(lengths_are_bounded)
{
    struct k3_shard_header header;
    uint8_t *bytes = malloc(K3_SHARD_HEADER_MAX + 1);
    ck_assert_ptr_nonnull(bytes);
    memset(bytes, ' ', K3_SHARD_HEADER_MAX + 1);
    bytes[0] = '{';
    bytes[1] = '}';
    ck_assert_ok(k3_shard_header_parse(bytes, K3_SHARD_HEADER_MAX, 0, &header, &err));
    k3_shard_header_done(&header);
    ck_assert_code(k3_shard_header_parse(bytes, K3_SHARD_HEADER_MAX + 1, 0, &header, &err),
                   K3_ERR_MALFORMED);
    /* An entry, a name and metadata that never end. */
    static const char *const starts[] = {"{\"a\":{\"shape\":[", "{\"",
                                         "{\"__metadata__\":{\"a\":\""};
    for (size_t i = 0; i < 3; i++) {
        memset(bytes, '1', K3_SHARD_HEADER_MAX);
        memcpy(bytes, starts[i], strlen(starts[i]));
        ck_assert_code(k3_shard_header_parse(bytes, K3_SHARD_HEADER_MAX, 0, &header, &err),
                       K3_ERR_MALFORMED);
    }
    free(bytes);
}
END_TEST

START_TEST(deep_nesting)
{
    struct k3_shard_header header;
    char text[6000] = "{\"a\":";
    memset(text + 5, '[', 5000);
    ck_assert_code(parse(text, 0, &header), K3_ERR_MALFORMED);
    memcpy(text, "{\"__metadata__\":", 16);
    ck_assert_code(parse(text, 0, &header), K3_ERR_MALFORMED);
}
END_TEST

START_TEST(many_entries)
{
    enum { COUNT = 20000 };
    char *json = malloc(COUNT * 100);
    ck_assert_ptr_nonnull(json);
    size_t len = (size_t)sprintf(json, "{");
    for (unsigned i = 0; i < COUNT; i++) {
        /* In no order: 7919 and 20000 have no common factor. */
        const unsigned at = i * 7919U % COUNT;
        len += (size_t)sprintf(
            json + len, "%s\"t.%u\":{\"dtype\":\"U8\",\"shape\":[1,3],\"data_offsets\":[%u,%u]}",
            i ? "," : "", at, 3 * at, 3 * at + 3);
    }
    sprintf(json + len, "}");
    struct k3_shard_header header;
    ck_assert_ok(parse(json, 3 * COUNT, &header));
    ck_assert_uint_eq(header.entry_count, COUNT);
    for (unsigned i = 0; i < COUNT; i++) {
        char name[16];
        snprintf(name, sizeof name, "t.%u", i);
        ck_assert_str_eq(header.entries[i].name, name);
        ck_assert_uint_eq(header.entries[i].begin, 3 * i);
    }
    k3_shard_header_done(&header);
    free(json);
}
END_TEST

Suite *k3_suite(void)
{
    Suite *suite = suite_create("shard_header");
    TCase *contract = tcase_create("contract");
    tcase_add_loop_test(contract, accepts, 0, sizeof good / sizeof good[0]);
    tcase_add_test(contract, fields);
    tcase_add_loop_test(contract, refuses, 0, sizeof bad / sizeof bad[0]);
    tcase_add_test(contract, have_and_need);
    tcase_add_test(contract, many_entries);
    suite_add_tcase(suite, contract);
    TCase *bounds = tcase_create("bounds");
    tcase_add_test(bounds, lengths_are_bounded);
    tcase_add_test(bounds, deep_nesting);
    suite_add_tcase(suite, bounds);
    return suite;
}
