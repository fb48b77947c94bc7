/* SPDX-License-Identifier: Apache-2.0 */
#include "format/vocab/vocab.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/suite_main.h"
#include "tests/unit/format/vocab/vocab_fixture.h"

static const char *const tokens[] = {"th", "the", " the", "[EOS]", NULL};
static const char config[] = "{\"added_tokens_decoder\":{"
                             "\"260\":{\"content\":\"[BOS]\",\"special\":true},"
                             "\"261\":{\"content\":\"[EOS]\",\"special\":true},"
                             "\"262\":{\"content\":\"<|open|>\",\"special\":false}}}";

START_TEST(ids_and_spellings)
{
    struct k3_vocab *vocab = k3_fixture_vocab(tokens, config);
    ck_assert_uint_eq(k3_vocab_rank_count(vocab), 260);
    ck_assert_uint_eq(k3_vocab_count(vocab), 516);
    ck_assert_uint_eq(k3_vocab_longest_bytes(vocab), strlen("<|reserved_token_263|>"));
    const struct k3_token_view the = k3_vocab_token(vocab, 258);
    ck_assert_mem_eq(the.bytes, " the", the.len);
    const struct k3_token_view open = k3_vocab_token(vocab, 262);
    ck_assert_mem_eq(open.bytes, "<|open|>", open.len);
    const struct k3_token_view last = k3_vocab_token(vocab, 515);
    ck_assert_mem_eq(last.bytes, "<|reserved_token_515|>", last.len);
    k3_vocab_destroy(vocab);
}
END_TEST

START_TEST(lookup)
{
    struct k3_vocab *vocab = k3_fixture_vocab(tokens, config);
    for (uint32_t rank = 0; rank < k3_vocab_rank_count(vocab); rank++) {
        const struct k3_token_view token = k3_vocab_token(vocab, rank);
        uint32_t found = 0;
        ck_assert(k3_vocab_find_rank(vocab, token.bytes, token.len, &found));
        ck_assert_uint_eq(found, rank);
        ck_assert(!k3_vocab_is_special(vocab, rank));
    }
    uint32_t found = 7;
    ck_assert(!k3_vocab_find_rank(vocab, (const uint8_t *)"[BOS]", 5, &found));
    ck_assert(!k3_vocab_find_rank(vocab, (const uint8_t *)"", 0, &found));
    ck_assert_uint_eq(found, 7);
    k3_vocab_destroy(vocab);
}
END_TEST

/* "[EOS]" is an ordinary token of this vocabulary too: the two never mix. */
START_TEST(markers_by_spelling)
{
    struct k3_vocab *vocab = k3_fixture_vocab(tokens, config);
    uint32_t id = 0;
    ck_assert(k3_vocab_find_added(vocab, "[EOS]", &id));
    ck_assert_uint_eq(id, 261);
    ck_assert(k3_vocab_is_special(vocab, id));
    ck_assert(k3_vocab_find_rank(vocab, (const uint8_t *)"[EOS]", 5, &id));
    ck_assert_uint_eq(id, 259);
    ck_assert(k3_vocab_find_added(vocab, "<|open|>", &id));
    ck_assert(!k3_vocab_is_special(vocab, id));
    ck_assert(k3_vocab_find_added(vocab, "<|reserved_token_300|>", &id));
    ck_assert_uint_eq(id, 300);
    ck_assert(k3_vocab_is_special(vocab, id));
    ck_assert(!k3_vocab_find_added(vocab, "<|reserved_token_261|>", &id));
    ck_assert(!k3_vocab_find_added(vocab, "the", &id));
    ck_assert(!k3_vocab_find_added(vocab, "[EOS", &id));
    ck_assert(!k3_vocab_find_added(vocab, "", &id));
    k3_vocab_destroy(vocab);
}
END_TEST

START_TEST(refusals_leave_the_output_alone)
{
    struct k3_tiktoken_text text = {0};
    k3_fixture_append_bytes(&text);
    struct k3_vocab *vocab = NULL;
    struct k3_error err = {0};
    const uint8_t *bytes = (const uint8_t *)text.bytes;
    ck_assert_code(k3_vocab_create(bytes, text.len, (const uint8_t *)"{", 1, &vocab, &err),
                   K3_ERR_MALFORMED);
    ck_assert_code(k3_vocab_create(bytes, text.len - 2, (const uint8_t *)"{", 1, &vocab, &err),
                   K3_ERR_MALFORMED);
    ck_assert_ptr_null(vocab);
    k3_vocab_destroy(NULL);
    free(text.bytes);
}
END_TEST

/* As many tokens as the released file has, made up from a counter. */
START_TEST(released_size)
{
    struct k3_tiktoken_text text = {0};
    k3_fixture_append_bytes(&text);
    char *bytes = realloc(text.bytes, 8u << 20);
    ck_assert_ptr_nonnull(bytes);
    text.bytes = bytes;
    struct k3_tiktoken_text line = {0};
    for (line.lines = text.lines; line.lines < 163584;) {
        char token[32];
        line.len = 0;
        const int len = snprintf(token, sizeof token, " token%u", line.lines);
        k3_fixture_append(&line, token, (size_t)len);
        memcpy(text.bytes + text.len, line.bytes, line.len);
        text.len += line.len;
    }
    struct k3_vocab *vocab = NULL;
    struct k3_error err = {0};
    const char *none = K3_FIXTURE_EMPTY_CONFIG;
    ck_assert_ok(k3_vocab_create((const uint8_t *)text.bytes, text.len, (const uint8_t *)none,
                                 strlen(none), &vocab, &err));
    ck_assert_uint_eq(k3_vocab_count(vocab), 163840);
    for (uint32_t id = 163000; id < 163584; id++) {
        const struct k3_token_view token = k3_vocab_token(vocab, id);
        uint32_t rank = 0;
        ck_assert(k3_vocab_find_rank(vocab, token.bytes, token.len, &rank));
        ck_assert_uint_eq(rank, id);
    }
    k3_vocab_destroy(vocab);
    free(line.bytes);
    free(text.bytes);
}
END_TEST

START_TEST(serialises_to_itself)
{
    struct k3_vocab *vocab = k3_fixture_vocab(tokens, config);
    struct k3_tiktoken_text text = k3_fixture_serialise(vocab);
    struct k3_vocab *again = NULL;
    struct k3_error err = {0};
    ck_assert_ok(k3_vocab_create((const uint8_t *)text.bytes, text.len, (const uint8_t *)config,
                                 strlen(config), &again, &err));
    struct k3_tiktoken_text text_again = k3_fixture_serialise(again);
    ck_assert_uint_eq(text.len, text_again.len);
    ck_assert_mem_eq(text.bytes, text_again.bytes, text.len);
    free(text.bytes);
    free(text_again.bytes);
    k3_vocab_destroy(vocab);
    k3_vocab_destroy(again);
}
END_TEST

START_TEST(id_outside_is_our_bug)
{
    struct k3_vocab *vocab = k3_fixture_vocab(tokens, config);
    (void)k3_vocab_token(vocab, k3_vocab_count(vocab));
}
END_TEST

Suite *k3_suite(void)
{
    Suite *suite = suite_create("vocab");
    TCase *contents = tcase_create("contents");
    tcase_add_test(contents, ids_and_spellings);
    tcase_add_test(contents, lookup);
    tcase_add_test(contents, markers_by_spelling);
    tcase_add_test(contents, released_size);
    tcase_add_test(contents, serialises_to_itself);
    suite_add_tcase(suite, contents);
    TCase *contract = tcase_create("contract");
    tcase_set_tags(contract, "fork");
    tcase_add_test_raise_signal(contract, id_outside_is_our_bug, SIGABRT);
    suite_add_tcase(suite, contract);
    TCase *damage = tcase_create("damage");
    tcase_add_test(damage, refusals_leave_the_output_alone);
    suite_add_tcase(suite, damage);
    return suite;
}
