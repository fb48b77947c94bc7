/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/tokenizer/detokenizer.h"

#include <string.h>

#include "tests/support/suite_main.h"
#include "tests/unit/format/vocab/vocab_fixture.h"

#define SMILE "\xf0\x9f\x98\x80"
#define FFFD  "\xef\xbf\xbd"

/* Ranks from 256: parts of an emoji, broken bytes, a word; then markers from 261. */
static const char *const tokens[] = {"\xf0\x9f",
                                     "\x98\x80"
                                     "a",
                                     "\xff\xff",
                                     "word",
                                     "\xe4\xb8",
                                     NULL};
static const char config[] = "{\"added_tokens_decoder\":{"
                             "\"261\":{\"content\":\"[EOS]\",\"special\":true},"
                             "\"262\":{\"content\":\"<|open|>\",\"special\":false}}}";

enum {
    F0_9F = 256,
    X98_80_A,
    FF_FF,
    WORD,
    E4_B8,
    EOS,
    OPEN,
    RESERVED,
    /* single bytes in the released order */
    X_F0 = 94 + 12 + 0xF0 - 174,
    X_9F = 94 + 12 + 82 + 33 + 0x9F - 127,
    X_98 = 94 + 12 + 82 + 33 + 0x98 - 127,
    X_80 = 94 + 12 + 82 + 33 + 0x80 - 127,
    X_AD = 255,
    X_A = 64,
    X_NUL = 94 + 12 + 82
};

#define END UINT32_MAX

static const struct {
    uint32_t ids[8];
    const char *outputs[8]; /* after each id, then at the end */
    bool skips_special;
    const char *why;
} cases[] = {
    {{WORD, X_A, END}, {"word", "a", ""}, false, "whole characters at once"},
    {{F0_9F, X98_80_A, END}, {"", SMILE "a", ""}, false, "emoji over two tokens"},
    {{X_F0, X_9F, X_98, X_80, END}, {"", "", "", SMILE, ""}, false, "emoji byte by byte"},
    {{E4_B8, X_AD, WORD, END}, {"", "\xe4\xb8\xad", "word", ""}, false, "Han over two tokens"},
    {{F0_9F, END}, {"", FFFD}, false, "incomplete at the end"},
    {{F0_9F, X_98, END}, {"", "", FFFD}, false, "three bytes are one replacement"},
    {{F0_9F, WORD, END}, {"", FFFD "word", ""}, false, "incomplete before a word"},
    {{F0_9F, F0_9F, X98_80_A, END}, {"", FFFD, SMILE "a", ""}, false, "incomplete, then whole"},
    {{FF_FF, END}, {FFFD FFFD, ""}, false, "invalid at once"},
    {{X98_80_A, END}, {FFFD FFFD "a", ""}, false, "continuations alone"},
    {{EOS, WORD, END}, {"[EOS]", "word", ""}, false, "markers are spelled"},
    {{EOS, OPEN, RESERVED, WORD, END}, {"", "<|open|>", "", "word", ""}, true, "specials left out"},
    {{F0_9F, EOS, X98_80_A, END}, {"", "", SMILE "a", ""}, true, "a left out one breaks nothing"},
    {{F0_9F, EOS, X98_80_A, END},
     {"", FFFD "[EOS]", FFFD FFFD "a", ""},
     false,
     "a spelled one breaks a character"},
    {{END}, {""}, false, "nothing"},
};

static struct k3_detokenizer *create(const struct k3_vocab *vocab, enum k3_detokenize_mode mode,
                                     bool skips_special)
{
    struct k3_detokenizer *detokenizer = NULL;
    struct k3_error err = {0};
    const struct k3_detokenizer_options options = {mode, skips_special};
    ck_assert_ok(k3_detokenizer_create(vocab, options, &detokenizer, &err));
    return detokenizer;
}

static void expect(const uint8_t *bytes, size_t len, const char *expected, const char *why)
{
    ck_assert_msg(len == strlen(expected) && memcmp(bytes, expected, len) == 0,
                  "%s: '%.*s', expected '%s'", why, (int)len, (const char *)bytes, expected);
}

START_TEST(streams_text)
{
    struct k3_vocab *vocab = k3_fixture_vocab(tokens, config);
    struct k3_detokenizer *detokenizer = create(vocab, K3_DETOKENIZE_TEXT, cases[_i].skips_special);
    for (int again = 0; again < 2; again++) { /* finish leaves it as new */
        const uint8_t *bytes = NULL;
        size_t len = 0;
        size_t i = 0;
        for (; cases[_i].ids[i] != END; i++) {
            struct k3_error err = {0};
            ck_assert_ok(k3_detokenizer_feed(detokenizer, cases[_i].ids[i], &bytes, &len, &err));
            expect(bytes, len, cases[_i].outputs[i], cases[_i].why);
        }
        k3_detokenizer_finish(detokenizer, &bytes, &len);
        expect(bytes, len, cases[_i].outputs[i], cases[_i].why);
    }
    k3_detokenizer_destroy(detokenizer);
    k3_vocab_destroy(vocab);
}
END_TEST

START_TEST(raw_is_exact)
{
    struct k3_vocab *vocab = k3_fixture_vocab(tokens, config);
    struct k3_detokenizer *detokenizer = create(vocab, K3_DETOKENIZE_RAW, _i != 0);
    struct k3_error err = {0};
    const uint8_t *bytes = NULL;
    size_t len = 0;
    for (uint32_t id = 0; id < k3_vocab_count(vocab); id++) {
        ck_assert_ok(k3_detokenizer_feed(detokenizer, id, &bytes, &len, &err));
        if (_i != 0 && k3_vocab_is_special(vocab, id)) {
            ck_assert_uint_eq(len, 0);
            continue;
        }
        const struct k3_token_view token = k3_vocab_token(vocab, id);
        ck_assert_uint_eq(len, token.len);
        ck_assert_mem_eq(bytes, token.bytes, len);
    }
    k3_detokenizer_finish(detokenizer, &bytes, &len);
    ck_assert_uint_eq(len, 0);
    k3_detokenizer_destroy(detokenizer);
    k3_vocab_destroy(vocab);
}
END_TEST

START_TEST(nul_is_a_character)
{
    struct k3_vocab *vocab = k3_fixture_vocab(tokens, config);
    struct k3_detokenizer *detokenizer = create(vocab, K3_DETOKENIZE_TEXT, false);
    struct k3_error err = {0};
    const uint8_t *bytes = NULL;
    size_t len = 0;
    ck_assert_ok(k3_detokenizer_feed(detokenizer, X_NUL, &bytes, &len, &err));
    ck_assert_uint_eq(len, 1);
    ck_assert_uint_eq(bytes[0], 0);
    k3_detokenizer_destroy(detokenizer);
    k3_vocab_destroy(vocab);
}
END_TEST

START_TEST(longest_token_all_invalid)
{
    static char longest[K3_VOCAB_TOKEN_BYTES_MAX + 1];
    memset(longest, 0x80, K3_VOCAB_TOKEN_BYTES_MAX);
    const char *const long_tokens[] = {longest, "\xf0\x9f\x98", NULL};
    struct k3_vocab *vocab = k3_fixture_vocab(long_tokens, K3_FIXTURE_EMPTY_CONFIG);
    struct k3_detokenizer *detokenizer = create(vocab, K3_DETOKENIZE_TEXT, false);
    struct k3_error err = {0};
    const uint8_t *bytes = NULL;
    size_t len = 0;
    ck_assert_ok(k3_detokenizer_feed(detokenizer, 257, &bytes, &len, &err));
    ck_assert_uint_eq(len, 0);
    ck_assert_ok(k3_detokenizer_feed(detokenizer, 256, &bytes, &len, &err));
    ck_assert_uint_eq(len, 4 + 3 * (K3_VOCAB_TOKEN_BYTES_MAX - 1));
    k3_detokenizer_destroy(detokenizer);
    k3_vocab_destroy(vocab);
}
END_TEST

START_TEST(id_outside_is_an_error)
{
    struct k3_vocab *vocab = k3_fixture_vocab(tokens, config);
    struct k3_detokenizer *detokenizer = create(vocab, K3_DETOKENIZE_TEXT, false);
    struct k3_error err = {0};
    const uint8_t *bytes = NULL;
    size_t len = 0;
    ck_assert_ok(k3_detokenizer_feed(detokenizer, F0_9F, &bytes, &len, &err));
    ck_assert_code(k3_detokenizer_feed(detokenizer, k3_vocab_count(vocab), &bytes, &len, &err),
                   K3_ERR_USAGE);
    ck_assert_code(k3_detokenizer_feed(detokenizer, UINT32_MAX, &bytes, &len, &err), K3_ERR_USAGE);
    ck_assert_ok(k3_detokenizer_feed(detokenizer, X98_80_A, &bytes, &len, &err));
    expect(bytes, len, SMILE "a", "what was held back is still there");
    k3_detokenizer_destroy(detokenizer);
    k3_detokenizer_destroy(NULL);
    k3_vocab_destroy(vocab);
}
END_TEST

Suite *k3_suite(void)
{
    Suite *suite = suite_create("detokenizer");
    TCase *text = tcase_create("text");
    tcase_add_loop_test(text, streams_text, 0, sizeof cases / sizeof cases[0]);
    tcase_add_test(text, nul_is_a_character);
    tcase_add_test(text, longest_token_all_invalid);
    suite_add_tcase(suite, text);
    TCase *raw = tcase_create("raw");
    tcase_add_loop_test(raw, raw_is_exact, 0, 2);
    suite_add_tcase(suite, raw);
    TCase *bounds = tcase_create("bounds");
    tcase_add_test(bounds, id_outside_is_an_error);
    suite_add_tcase(suite, bounds);
    return suite;
}
