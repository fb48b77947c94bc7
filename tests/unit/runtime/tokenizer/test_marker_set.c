/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/tokenizer/marker_set.h"

#include <string.h>

#include "tests/support/suite_main.h"
#include "tests/unit/format/vocab/vocab_fixture.h"

#define SLOT(id, content) "\"" id "\":{\"content\":\"" content "\",\"special\":true}"

static const char *const no_tokens[] = {NULL};
static const char config[] =
    "{\"added_tokens_decoder\":{" SLOT("256", "[EOS]") "," SLOT("257", "<|open|>") "," SLOT(
        "258", "ab") "," SLOT("259",
                              "abcd") "," SLOT("260",
                                               "a") "," SLOT("261",
                                                             "\xc3\xa9") "," SLOT("511",
                                                                                  "[PAD]") "}}";

static const struct {
    const char *text;
    uint32_t id; /* 0: none */
    const char *why;
} cases[] = {
    {"[EOS]", 256, "whole text"},
    {"[EOS]more", 256, "text behind"},
    {"[EOS", 0, "cut"},
    {"[EOT]", 0, "not in this vocabulary"},
    {"", 0, "empty text"},
    {"x[EOS]", 0, "only at the start"},
    {"<|open|>", 257, "marker"},
    {"<|Open|>", 0, "case counts"},
    {"a", 260, "the shortest"},
    {"abx", 258, "the longest that fits"},
    {"abc", 258, "not the one that is cut"},
    {"abcd", 259, "the longest"},
    {"\xc3\xa9", 261, "beyond ASCII"},
    {"\xc3", 0, "half a character"},
    {"<|reserved_token_262|>", 262, "first without a name"},
    {"<|reserved_token_510|>", 510, "last without a name"},
    {"<|reserved_token_511|>", 0, "the slot has a name"},
    {"<|reserved_token_512|>", 0, "no slot"},
    {"<|reserved_token_26|>", 0, "a digit short"},
    {"[PAD]", 511, "the last slot"},
};

START_TEST(matches)
{
    struct k3_vocab *vocab = k3_fixture_vocab(no_tokens, config);
    static struct k3_marker_set set;
    k3_marker_set_init(&set, vocab);
    const struct k3_marker *marker =
        k3_marker_set_match(&set, (const uint8_t *)cases[_i].text, strlen(cases[_i].text));
    const uint32_t id = marker ? marker->id : 0;
    ck_assert_msg(id == cases[_i].id, "%s: %u", cases[_i].why, id);
    k3_vocab_destroy(vocab);
}
END_TEST

START_TEST(every_spelling)
{
    struct k3_vocab *vocab = k3_fixture_vocab(no_tokens, config);
    static struct k3_marker_set set;
    k3_marker_set_init(&set, vocab);
    for (uint32_t id = 256; id < 512; id++) {
        const struct k3_token_view spelling = k3_vocab_token(vocab, id);
        const struct k3_marker *marker = k3_marker_set_match(&set, spelling.bytes, spelling.len);
        ck_assert_ptr_nonnull(marker);
        ck_assert_uint_eq(marker->id, id);
    }
    k3_vocab_destroy(vocab);
}
END_TEST

Suite *k3_suite(void)
{
    Suite *suite = suite_create("marker_set");
    TCase *match = tcase_create("match");
    tcase_add_loop_test(match, matches, 0, sizeof cases / sizeof cases[0]);
    tcase_add_test(match, every_spelling);
    suite_add_tcase(suite, match);
    return suite;
}
