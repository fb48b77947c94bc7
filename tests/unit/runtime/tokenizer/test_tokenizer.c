/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/tokenizer/tokenizer.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/tokenizer/detokenizer.h"
#include "runtime/tokenizer/utf8.h"
#include "tests/support/suite_main.h"
#include "tests/unit/format/vocab/vocab_fixture.h"

static const char *const tokens[] = {"ab",       "abc",          " a", "[EOS]", "  ", "   ",
                                     "\xef\xbf", "\xef\xbf\xbd", "aa", "aaaa",  NULL};
static const char config[] = "{\"added_tokens_decoder\":{"
                             "\"266\":{\"content\":\"[EOS]\",\"special\":true},"
                             "\"267\":{\"content\":\"<|open|>\",\"special\":false},"
                             "\"268\":{\"content\":\"<|open|>>\",\"special\":false},"
                             "\"269\":{\"content\":\" \\u4e2d\",\"special\":true}}}";
enum {
    A = 64,
    B,
    C,
    X = 87,
    LT = 27,
    SPACE = 220,
    AB = 256,
    ABC,
    SP_A,
    EOS_TEXT,
    SP2,
    SP3,
    EF_BF,
    FFFD,
    AA,
    AAAA,
    EOS,
    OPEN,
    OPEN_MORE,
    SP_ZHONG
};
#define END UINT32_MAX

static struct k3_vocab *vocab;
static struct k3_tokenizer *tokenizer;
static struct k3_token_ids ids;
static struct k3_error err;

static void setup_with(struct k3_text_caps caps)
{
    vocab = k3_fixture_vocab(tokens, config);
    ck_assert_ok(k3_tokenizer_create(vocab, caps, &tokenizer, &err));
}

static void setup(void)
{
    setup_with(K3_TEXT_CAPS_RELEASED);
}

static void teardown(void)
{
    k3_token_ids_done(&ids);
    k3_tokenizer_destroy(tokenizer);
    k3_tokenizer_destroy(NULL);
    k3_vocab_destroy(vocab);
}

static void expect(const uint32_t *expected, const char *why)
{
    size_t count = 0;
    for (; expected[count] != END; count++) {
        ck_assert_msg(count < ids.count && ids.ids[count] == expected[count],
                      "%s: id %zu of %zu is %u, expected %u", why, count, ids.count,
                      count < ids.count ? ids.ids[count] : 0, expected[count]);
    }
    ck_assert_msg(ids.count == count, "%s: %zu ids, expected %zu", why, ids.count, count);
}

static const struct {
    const char *text;
    uint32_t plain[16];
    uint32_t markers[16];
    const char *why;
} cases[] = {
    {"", {END}, {END}, "nothing"},
    {"abc", {ABC, END}, {ABC, END}, "a word"},
    {"[EOS]", {58, AB - 256 + 36, 46, 50, 60, END}, {EOS, END}, "a marker alone"},
    {"abc<|open|>abc",
     {ABC, LT, 91, 78, 79, 68, 77, 91, 29, ABC, END},
     {ABC, OPEN, ABC, END},
     "text around it"},
    {"<|open|>>", {LT, 91, 78, 79, 68, 77, 91, 29, 29, END}, {OPEN_MORE, END}, "the longest"},
    {"<|open|", {LT, 91, 78, 79, 68, 77, 91, END}, {LT, 91, 78, 79, 68, 77, 91, END}, "cut"},
    {"a <|open|>",
     {A, SPACE, LT, 91, 78, 79, 68, 77, 91, 29, END},
     {A, SPACE, OPEN, END},
     "white space before a marker is at the end of its text"},
    {"<|open|>[EOS]",
     {LT, 91, 78, 79, 68, 77, 91, 29, 58, 36, 46, 50, 60, END},
     {OPEN, EOS, END},
     "two in a row"},
    {"a \xe4\xb8\xad"
     "a",
     {A, SPACE, 94 + 12 + 0xe4 - 174, 94 + 12 + 0xb8 - 174, 255, A, END},
     {A, SP_ZHONG, A, END},
     "beyond ASCII"},
};

START_TEST(modes)
{
    const size_t len = strlen(cases[_i].text);
    ck_assert_ok(k3_tokenizer_encode(tokenizer, cases[_i].text, len, K3_ENCODE_PLAIN, &ids, &err));
    expect(cases[_i].plain, cases[_i].why);
    ids.count = 0;
    ck_assert_ok(
        k3_tokenizer_encode(tokenizer, cases[_i].text, len, K3_ENCODE_MARKERS, &ids, &err));
    expect(cases[_i].markers, cases[_i].why);
}
END_TEST

START_TEST(appends)
{
    ck_assert_ok(k3_tokenizer_encode(tokenizer, "abc", 3, K3_ENCODE_PLAIN, &ids, &err));
    ck_assert_ok(k3_tokenizer_encode(tokenizer, NULL, 0, K3_ENCODE_PLAIN, &ids, &err));
    ck_assert_ok(k3_tokenizer_encode(tokenizer, "ab", 2, K3_ENCODE_PLAIN, &ids, &err));
    expect((const uint32_t[]){ABC, AB, END}, "appended");
}
END_TEST

START_TEST(nul_and_invalid_bytes)
{
    ck_assert_ok(k3_tokenizer_encode(tokenizer, "ab\0ab", 5, K3_ENCODE_PLAIN, &ids, &err));
    expect((const uint32_t[]){AB, 188, AB, END}, "NUL leads a word as a symbol");
    ids.count = 0;
    ck_assert_ok(k3_tokenizer_encode(tokenizer, "ab\xf0\x9f\x98", 5, K3_ENCODE_PLAIN, &ids, &err));
    expect((const uint32_t[]){AB, FFFD, END}, "cut emoji");
    ids.count = 0;
    ck_assert_ok(k3_tokenizer_encode(tokenizer, "\xff", 1, K3_ENCODE_MARKERS, &ids, &err));
    expect((const uint32_t[]){FFFD, END}, "alone");
}
END_TEST

static const struct {
    struct k3_text_caps caps;
    const char *text;
    uint32_t ids[8];
    const char *why;
} caps_cases[] = {
    {{100, 100}, "abcabc", {ABC, ABC, END}, "no cap in reach"},
    {{2, 100}, "abcabc", {AB, C, A, B, C, END}, "chunks of two: ab ca bc"},
    {{100, 2}, "abcabc", {AB, C, A, B, C, END}, "runs of two: ab ca bc"},
    {{100, 2}, "ab ab", {AB, SPACE, AB, END}, "white space ends a run"},
    {{100, 3}, "a    a", {A, SP3, SP_A, END}, "run of four spaces: the fourth starts anew"},
    {{100, 1}, "a  a", {A, SPACE, SP_A, END}, "the space after the cut leads"},
    {{6, 100}, "[EOS]a[EOS]", {EOS, A, EOS, END}, "a cut beside markers"},
    {{3, 100}, "[EOS]", {58, 36, 46, 50, 60, END}, "a cut within a marker"},
};

START_TEST(caps)
{
    setup_with(caps_cases[_i].caps);
    ck_assert_ok(k3_tokenizer_encode(tokenizer, caps_cases[_i].text, strlen(caps_cases[_i].text),
                                     K3_ENCODE_MARKERS, &ids, &err));
    expect(caps_cases[_i].ids, caps_cases[_i].why);
    teardown();
}
END_TEST

/* The released caps, seen through "aa" and "aaaa", which a cut keeps from forming. n a's are
 * ceil(n / 4) ids, one more if n % 4 is 3. */
START_TEST(released_caps)
{
    const size_t len = 400003;
    char *text = malloc(len);
    memset(text, 'a', len);
    for (size_t i = 24999; i < 375000; i += 25000) {
        text[i] = '\n';
    }
    text[399998] = '\n';
    ck_assert_ok(k3_tokenizer_encode(tokenizer, text, len, K3_ENCODE_PLAIN, &ids, &err));
    /* 15 lines of 24,999; one of 24,998; then a, the cut at 400,000, aaa. */
    ck_assert_uint_eq(ids.count, 15 * (6251 + 1) + (6250 + 1) + 1 + 2);
    ids.count = 0;
    memset(text, 'a', len);
    text[0] = 'x';
    ck_assert_ok(k3_tokenizer_encode(tokenizer, text, 25002, K3_ENCODE_PLAIN, &ids, &err));
    /* x and 24,999, the cut at 25,000, aa. */
    ck_assert_uint_eq(ids.count, 1 + 6251 + 1);
    free(text);
}
END_TEST

static uint64_t random_state;

static uint32_t random_below(uint32_t limit)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((random_state >> 33) % limit);
}

/* Ids back to bytes: exact for valid UTF-8. */
static void expect_decodes_to(const uint8_t *text, size_t len, enum k3_detokenize_mode mode)
{
    struct k3_detokenizer *detokenizer = NULL;
    const struct k3_detokenizer_options options = {.mode = mode};
    ck_assert_ok(k3_detokenizer_create(vocab, options, &detokenizer, &err));
    size_t at = 0;
    const uint8_t *bytes = NULL;
    size_t bytes_len = 0;
    for (size_t i = 0; i < ids.count; i++) {
        ck_assert_ok(k3_detokenizer_feed(detokenizer, ids.ids[i], &bytes, &bytes_len, &err));
        ck_assert_uint_le(bytes_len, len - at);
        ck_assert_mem_eq(bytes, text + at, bytes_len);
        at += bytes_len;
    }
    k3_detokenizer_finish(detokenizer, &bytes, &bytes_len);
    ck_assert_uint_eq(bytes_len, 0);
    ck_assert_uint_eq(at, len);
    k3_detokenizer_destroy(detokenizer);
}

START_TEST(round_trip)
{
    static const uint32_t limits[] = {0x80, 0x100, 0x800, 0x3100, 0x10000, 0x110000};
    random_state = (uint64_t)_i + 1;
    for (int round = 0; round < 200; round++) {
        uint8_t text[400];
        size_t len = 0;
        const uint32_t chars = random_below(80);
        for (uint32_t i = 0; i < chars; i++) {
            const uint32_t c = random_below(limits[random_below(6)]);
            len += k3_utf8_encode(c >= 0xD800 && c < 0xE000 ? ' ' : c, text + len);
        }
        ids.count = 0;
        ck_assert_ok(k3_tokenizer_encode(
            tokenizer, text, len, round % 2 ? K3_ENCODE_PLAIN : K3_ENCODE_MARKERS, &ids, &err));
        expect_decodes_to(text, len, K3_DETOKENIZE_RAW);
        expect_decodes_to(text, len, K3_DETOKENIZE_TEXT);
    }
}
END_TEST

/* Plain mode gives no added token, whatever the text; the text comes back. */
START_TEST(pasted_markers_are_text)
{
    for (uint32_t id = k3_vocab_rank_count(vocab); id < k3_vocab_count(vocab); id++) {
        const struct k3_token_view spelling = k3_vocab_token(vocab, id);
        ids.count = 0;
        ck_assert_ok(k3_tokenizer_encode(tokenizer, spelling.bytes, spelling.len, K3_ENCODE_PLAIN,
                                         &ids, &err));
        for (size_t i = 0; i < ids.count; i++) {
            ck_assert_uint_lt(ids.ids[i], k3_vocab_rank_count(vocab));
        }
        expect_decodes_to(spelling.bytes, spelling.len, K3_DETOKENIZE_TEXT);
        ids.count = 0;
        ck_assert_ok(k3_tokenizer_encode(tokenizer, spelling.bytes, spelling.len, K3_ENCODE_MARKERS,
                                         &ids, &err));
        ck_assert_uint_eq(ids.count, 1);
        ck_assert_uint_eq(ids.ids[0], id);
    }
}
END_TEST

static const char *const units[] = {"a",        "A",           " ",       "\n ",
                                    "'",        "<",           "<|open|", "<|reserved_token_",
                                    "\xcc\x81", "\xca\xb0Z",   "\xff",    "\xe4\xb8\xad",
                                    "1",        "\xf0\x9f\x98"};

/* The caps would hide quadratic time: they are lifted here. */
static void setup_without_caps(void)
{
    setup_with((struct k3_text_caps){.chunk_chars = 1u << 20, .run_chars = 1u << 20});
}

START_TEST(long_texts_take_linear_time)
{
    const size_t unit_len = strlen(units[_i]);
    const size_t len = 400000 / unit_len * unit_len;
    char *text = malloc(len);
    for (size_t i = 0; i < len; i += unit_len) {
        memcpy(text + i, units[_i], unit_len);
    }
    ck_assert_ok(k3_tokenizer_encode(tokenizer, text, len, K3_ENCODE_MARKERS, &ids, &err));
    ck_assert_uint_gt(ids.count, 0);
    free(text);
}
END_TEST

START_TEST(cap_zero_is_our_bug)
{
    setup_with((struct k3_text_caps){.chunk_chars = 0, .run_chars = 1});
}
END_TEST

Suite *k3_suite(void)
{
    Suite *suite = suite_create("tokenizer");
    TCase *encode = tcase_create("encode");
    tcase_add_checked_fixture(encode, setup, teardown);
    tcase_add_loop_test(encode, modes, 0, sizeof cases / sizeof cases[0]);
    tcase_add_test(encode, appends);
    tcase_add_test(encode, nul_and_invalid_bytes);
    tcase_add_loop_test(encode, round_trip, 0, 10);
    tcase_add_test(encode, pasted_markers_are_text);
    suite_add_tcase(suite, encode);
    TCase *cuts = tcase_create("caps");
    tcase_add_loop_test(cuts, caps, 0, sizeof caps_cases / sizeof caps_cases[0]);
    suite_add_tcase(suite, cuts);
    TCase *released = tcase_create("released caps");
    tcase_add_checked_fixture(released, setup, teardown);
    tcase_add_test(released, released_caps);
    suite_add_tcase(suite, released);
    TCase *speed = tcase_create("linear time");
    tcase_add_checked_fixture(speed, setup_without_caps, teardown);
    tcase_set_timeout(speed, 60);
    tcase_add_loop_test(speed, long_texts_take_linear_time, 0, sizeof units / sizeof units[0]);
    suite_add_tcase(suite, speed);
    TCase *contract = tcase_create("contract");
    tcase_set_tags(contract, "fork");
    tcase_add_test_raise_signal(contract, cap_zero_is_our_bug, SIGABRT);
    suite_add_tcase(suite, contract);
    return suite;
}
