/* SPDX-License-Identifier: Apache-2.0 */
#include "format/vocab/tiktoken.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/suite_main.h"
#include "tests/unit/format/vocab/vocab_fixture.h"

/* 256 single bytes and ranks 256 "ab", 257 "abc". */
static struct k3_tiktoken_text base_text(void)
{
    struct k3_tiktoken_text text = {0};
    k3_fixture_append_bytes(&text);
    k3_fixture_append(&text, "ab", 2);
    k3_fixture_append(&text, "abc", 3);
    return text;
}

static enum k3_code parse(const char *bytes, size_t len, struct k3_token_list *list,
                          struct k3_rank_table *table, struct k3_error *err)
{
    /* An exact copy, so that a sanitizer sees a byte too far. */
    uint8_t *copy = malloc(len ? len : 1);
    memcpy(copy, bytes, len);
    const enum k3_code code = k3_tiktoken_parse(copy, len, 2, 10, list, table, err);
    free(copy);
    return code;
}

static void expect_refused(const char *bytes, size_t len, uint64_t offset, const char *why)
{
    struct k3_token_list list;
    struct k3_rank_table table;
    struct k3_error err = {0};
    const enum k3_code code = parse(bytes, len, &list, &table, &err);
    ck_assert_msg(code == K3_ERR_MALFORMED && err.code == code, "%s: %s", why, k3_code_name(code));
    ck_assert_msg(err.file_offset == offset, "%s: at %" PRIu64 ", not %" PRIu64 ": %s", why,
                  err.file_offset, offset, err.message);
    ck_assert_int_eq(k3_tiktoken_parse((const uint8_t *)bytes, len, 0, 0, &list, &table, NULL),
                     code);
}

START_TEST(round_trip)
{
    struct k3_tiktoken_text text = base_text();
    struct k3_token_list list;
    struct k3_rank_table table;
    struct k3_error err = {0};
    const size_t last_lf = (size_t)_i; /* with the last LF and without */
    ck_assert_ok(parse(text.bytes, text.len - last_lf, &list, &table, &err));
    ck_assert_uint_eq(list.count, 258);
    ck_assert_uint_eq(list.longest_bytes, 3);
    uint32_t rank = 0;
    ck_assert(k3_rank_table_find(&table, &list, (const uint8_t *)"abc", 3, &rank));
    ck_assert_uint_eq(rank, 257);
    ck_assert(k3_rank_table_find(&table, &list, (const uint8_t *)"\n", 1, &rank));
    ck_assert_uint_eq(rank, 198);
    ck_assert(!k3_rank_table_find(&table, &list, (const uint8_t *)"ac", 2, &rank));
    ck_assert(!k3_rank_table_find(&table, &list, (const uint8_t *)"abcd", 4, &rank));
    size_t room = 0;
    k3_token_list_tail(&list, &room);
    ck_assert_uint_ge(room, 10);
    k3_token_list_done(&list);
    k3_rank_table_done(&table);
    free(text.bytes);
}
END_TEST

/* Each row puts `line` in the place of rank 257's line. */
static const struct {
    const char *line;
    uint64_t offset; /* from the start of the line */
    const char *why;
} bad_lines[] = {
    {"YWJj 258\n", 5, "gap"},
    {"YWJj 256\n", 5, "repeat"},
    {"YWJj 0257\n", 5, "leading zero"},
    {"YWJj +257\n", 5, "sign"},
    {"YWJj 257 \n", 8, "space after the rank"},
    {"YWJj 257\r\n", 8, "CR LF"},
    {"YWJj  257\n", 5, "two spaces"},
    {"YWJj\t257\n", 4, "tab"},
    {"YWJj 257x\n", 8, "trailing garbage on the line"},
    {"YWJj 18446744073709551873\n", 5, "rank that wraps to 257"},
    {"YWJj \n", 5, "no rank"},
    {"YWJj\n", 4, "no space"},
    {"YWJj", 4, "cut before the space"},
    {"YWJj ", 5, "cut before the rank"},
    {"YWJj 25", 5, "cut in the rank"},
    {"YW", 2, "cut in the token"},
    {" 257\n", 0, "empty token"},
    {"==== 257\n", 0, "padding only"},
    {"YWJ 257\n", 3, "padding missing"},
    {"YW*j 257\n", 2, "not base64"},
    {"YWJ= 257\n", 2, "the bytes of rank 256 in another form"},
    {"YWI= 257\n", 0, "the bytes of rank 256 again"},
    {"\n", 0, "empty line"},
    {"YWJj 257\n\n", 9, "empty line at the end"},
    {"YWJj 257\nx", 10, "trailing garbage"},
};

START_TEST(refuses_line)
{
    struct k3_tiktoken_text text = base_text();
    const size_t line_at = text.len - strlen("YWJj 257\n");
    char bytes[8192];
    memcpy(bytes, text.bytes, line_at);
    const size_t line_len = strlen(bad_lines[_i].line);
    memcpy(bytes + line_at, bad_lines[_i].line, line_len);
    expect_refused(bytes, line_at + line_len, line_at + bad_lines[_i].offset, bad_lines[_i].why);
    free(text.bytes);
}
END_TEST

START_TEST(refuses_missing_byte)
{
    struct k3_tiktoken_text text = {0};
    for (unsigned byte = 0; byte < 256; byte++) {
        const uint8_t pair[2] = {(uint8_t)byte, (uint8_t)byte};
        k3_fixture_append(&text, pair, byte == (unsigned)_i ? 2 : 1);
    }
    expect_refused(text.bytes, text.len, text.len, "a byte is missing");
    free(text.bytes);
}
END_TEST

START_TEST(any_order_of_bytes_is_fine)
{
    struct k3_tiktoken_text text = {0};
    k3_fixture_append(&text, "ab", 2);
    for (unsigned byte = 256; byte-- > 0;) {
        const uint8_t single = (uint8_t)byte;
        k3_fixture_append(&text, &single, 1);
    }
    struct k3_token_list list;
    struct k3_rank_table table;
    struct k3_error err = {0};
    ck_assert_ok(parse(text.bytes, text.len, &list, &table, &err));
    k3_token_list_done(&list);
    k3_rank_table_done(&table);
    free(text.bytes);
}
END_TEST

START_TEST(empty_file)
{
    expect_refused("", 0, 0, "empty file");
    expect_refused("\n", 1, 0, "a line break alone");
    expect_refused("\0", 1, 0, "a NUL alone");
}
END_TEST

START_TEST(length_of_a_token)
{
    static uint8_t token[K3_VOCAB_TOKEN_BYTES_MAX + 1];
    struct k3_tiktoken_text text = {0};
    k3_fixture_append_bytes(&text);
    const size_t start = text.len;
    const size_t too_long = (size_t)_i;
    k3_fixture_append(&text, token, K3_VOCAB_TOKEN_BYTES_MAX + too_long);
    if (too_long) {
        expect_refused(text.bytes, text.len, start, "one byte too long");
    } else {
        struct k3_token_list list;
        struct k3_rank_table table;
        struct k3_error err = {0};
        ck_assert_ok(parse(text.bytes, text.len, &list, &table, &err));
        ck_assert_uint_eq(list.longest_bytes, K3_VOCAB_TOKEN_BYTES_MAX);
        k3_token_list_done(&list);
        k3_rank_table_done(&table);
    }
    free(text.bytes);
}
END_TEST

START_TEST(cut_anywhere)
{
    struct k3_tiktoken_text text = base_text();
    for (size_t len = 0; len < text.len; len++) {
        struct k3_token_list list;
        struct k3_rank_table table;
        const enum k3_code code =
            k3_tiktoken_parse((const uint8_t *)text.bytes, len, 0, 0, &list, &table, NULL);
        if (code == K3_OK) { /* only at the ends of lines that nothing is missing from */
            ck_assert(text.bytes[len] == '\n' || text.bytes[len - 1] == '\n');
            ck_assert_uint_ge(list.count, 256);
            k3_token_list_done(&list);
            k3_rank_table_done(&table);
        } else {
            ck_assert_int_eq(code, K3_ERR_MALFORMED);
        }
    }
    free(text.bytes);
}
END_TEST

START_TEST(too_many_lines)
{
    const size_t len = (size_t)K3_VOCAB_RANKS_MAX + 1;
    char *lines = malloc(len);
    memset(lines, '\n', len);
    expect_refused(lines, len, 0, "too many lines");
    expect_refused(lines, len - 1, 0, "as many as allowed, but empty");
    free(lines);
}
END_TEST

START_TEST(too_large)
{
    struct k3_token_list list;
    struct k3_rank_table table;
    struct k3_error err = {0};
    /* Told by the length alone: the bytes are not looked at. */
    ck_assert_code(k3_tiktoken_parse((const uint8_t *)"", K3_VOCAB_TIKTOKEN_BYTES_MAX + 1, 0, 0,
                                     &list, &table, &err),
                   K3_ERR_MALFORMED);
    ck_assert_uint_eq(err.file_offset, 0);
}
END_TEST

Suite *k3_suite(void)
{
    Suite *suite = suite_create("tiktoken");
    TCase *round = tcase_create("round trip");
    tcase_add_loop_test(round, round_trip, 0, 2);
    tcase_add_test(round, any_order_of_bytes_is_fine);
    suite_add_tcase(suite, round);
    TCase *damage = tcase_create("damage");
    tcase_add_loop_test(damage, refuses_line, 0, sizeof bad_lines / sizeof bad_lines[0]);
    tcase_add_loop_test(damage, refuses_missing_byte, 0, 256);
    tcase_add_test(damage, empty_file);
    tcase_add_test(damage, cut_anywhere);
    suite_add_tcase(suite, damage);
    TCase *bounds = tcase_create("bounds");
    tcase_add_loop_test(bounds, length_of_a_token, 0, 2);
    tcase_add_test(bounds, too_many_lines);
    tcase_add_test(bounds, too_large);
    suite_add_tcase(suite, bounds);
    return suite;
}
