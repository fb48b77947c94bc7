/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/tokenizer/pretokenize.h"

#include <stdlib.h>
#include <string.h>

#include "tests/support/suite_main.h"

#define E_ACUTE   "\xc3\xa9"         /* Ll                                 */
#define E_CAPITAL "\xc3\x89"         /* Lu                                 */
#define ACUTE     "\xcc\x81"         /* Mn, U+0301                         */
#define SMALL_H   "\xca\xb0"         /* Lm, U+02B0                         */
#define LONG_S    "\xc5\xbf"         /* U+017F, folds to s                 */
#define DZ_TITLE  "\xc7\x85"         /* Lt                                 */
#define ALEF      "\xd7\x90"         /* Lo                                 */
#define HAN       "\xe4\xb8\xad"     /* U+4E2D                             */
#define REPEAT    "\xe3\x80\x85"     /* U+3005, Han and Lm                 */
#define ZERO      "\xe3\x80\x87"     /* U+3007, Han and Nl                 */
#define CLOSE     "\xe3\x80\x86"     /* U+3006, Lo, not Han                */
#define KANA      "\xe3\x81\x82"     /* Lo                                 */
#define RADICAL   "\xe2\xba\x80"     /* U+2E80, Han and So                 */
#define READING   "\xf0\x96\xbf\xb0" /* U+16FF0, Han and Mc                */
#define ARABIC_3  "\xd9\xa3"         /* Nd                                 */
#define ROMAN_8   "\xe2\x85\xa7"     /* Nl                                 */
#define HALF      "\xc2\xbd"         /* No                                 */
#define NBSP      "\xc2\xa0"         /* White_Space                        */
#define NEL       "\xc2\x85"         /* White_Space, not CR or LF          */
#define WIDE      "\xe3\x80\x80"     /* White_Space, U+3000                */
#define LINE_SEP  "\xe2\x80\xa8"     /* White_Space, not CR or LF          */
#define SMILE     "\xf0\x9f\x98\x80" /* So                                 */
#define ZWJ       "\xe2\x80\x8d"     /* Cf                                 */
#define QUOTE     "\xe2\x80\x99"     /* the curly apostrophe               */
#define NEW_HAN   "\xf0\xae\xaf\xb0" /* U+2EBF0, Han since Unicode 15.1    */

static const struct {
    const char *pieces[9]; /* what the joined text is cut into */
    const char *why;
} cases[] = {
    /* 1: Han */
    {{HAN HAN HAN}, "a Han run"},
    {{HAN ZERO REPEAT RADICAL HAN}, "all of script Han"},
    {{HAN, "a"}, "Han does not continue a word"},
    {{"a", HAN}, "a word does not continue into Han"},
    {{" ", HAN}, "no leading space for Han"},
    {{"!", HAN}, "no leading symbol for Han"},
    {{HAN, KANA, HAN}, "kana between"},
    {{HAN, CLOSE}, "U+3006 is not Han"},
    {{"A", REPEAT, "b"}, "U+3005 is a letter, but not one of words"},
    {{READING HAN}, "a Han mark"},
    {{"a", READING}, "a Han mark does not continue a word"},
    {{HAN, ACUTE}, "a mark that is not Han"},
    {{HAN, ACUTE "b"}, "which then leads a word"},
    {{HAN NEW_HAN}, "a newer ideograph"},
    /* 2: words ending in lower case */
    {{"hello"}, "lower case"},
    {{"Hello"}, "capitalised"},
    {{"HELLOworld"}, "capitals before lower case"},
    {{"hello", "World"}, "camel case"},
    {{"hello", "WORLD"}, "capitals after lower case"},
    {{"XMLHttp", "Request"}, "camel case with an abbreviation"},
    {{" hello", " world"}, "leading spaces"},
    {{"\thello"}, "leading tab"},
    {{NBSP "hello"}, "leading no-break space"},
    {{LINE_SEP "hello"}, "leading line separator"},
    {{"!hello"}, "leading symbol"},
    {{"(hello", ")"}, "brackets"},
    {{"!!", "hello"}, "only if single: symbols match first"},
    {{SMILE "hello"}, "leading emoji"},
    {{"\n", "hello"}, "no leading line break"},
    {{"\r", "hello"}, "nor this one"},
    {{"1", "hello"}, "no leading number"},
    {{"_name"}, "underscore is a symbol"},
    {{"snake", "_case"}, "so it leads"},
    {{"e" ACUTE "t" ACUTE}, "marks within a word"},
    {{ACUTE "abc"}, "a mark leads"},
    {{ACUTE ACUTE ACUTE}, "marks alone are a word"},
    {{" " ACUTE, "A"}, "space, mark: the mark ends as lower case, capital after"},
    {{SMALL_H}, "modifier letter alone"},
    {{SMALL_H, "A"}, "backtracking: the modifier letter is the lower case"},
    {{"A" SMALL_H, "A"}, "backtracking from the end"},
    {{"AB" SMALL_H "CD" SMALL_H, "EF"}, "backtracking to the last one"},
    {{"AB" ACUTE, "CD"}, "marks make capitals end"},
    {{E_CAPITAL E_ACUTE}, "beyond ASCII"},
    {{ALEF ALEF "abc"}, "no case counts as both"},
    {{"abc" ALEF}, "either way"},
    {{ALEF, "ABC"}, "a word of no case ends before capitals"},
    {{DZ_TITLE "x"}, "title case begins"},
    {{"x", DZ_TITLE}, "title case does not continue"},
    {{"a", ZWJ "b"}, "a joiner is a symbol"},
    /* contractions */
    {{"it's"}, "'s"},
    {{"I'll"}, "'ll"},
    {{"I'LL"}, "any case"},
    {{"they're"}, "'re"},
    {{"they'vE"}, "'ve"},
    {{"can't", " I'm", " he'd"}, "'t 'm 'd"},
    {{"it'" LONG_S}, "long s folds to s"},
    {{"it's", "ome"}, "the word ends after it"},
    {{"it", "'l"}, "cut short"},
    {{"it", "'lx"}, "'l alone is none"},
    {{"it", "'r"}, "'r alone is none"},
    {{"it", "'"}, "at the end of the text"},
    {{"it", "''", "s"}, "two apostrophes are symbols"},
    {{"it", QUOTE "s"}, "ASCII apostrophe only"},
    {{"1", "'s"}, "numbers have none"},
    {{HAN, "'s"}, "Han has none"},
    {{"'s's"}, "apostrophe leads, then a contraction"},
    {{"'s't", "x"}, "only one"},
    {{"IT'S"}, "after capitals"},
    {{"IT'S", "X"}, "after capitals, and ends there"},
    /* 3: capitals */
    {{"HELLO"}, "capitals alone"},
    {{" HELLO", " WORLD"}, "with spaces"},
    {{"-A"}, "with a symbol"},
    {{"A"}, "one"},
    /* 4: numbers */
    {{"123", "456", "7"}, "threes"},
    {{" ", "123"}, "no leading space"},
    {{"12", "a"}, "a letter ends them"},
    {{ARABIC_3 ROMAN_8 HALF, ARABIC_3}, "all numbers"},
    {{"12" ZERO, HAN}, "the Han zero is a number when numbers lead"},
    {{ZERO, "12"}, "and Han when it leads"},
    {{"1", ".", "5"}, "a point between"},
    /* 5: symbols */
    {{"!?!"}, "symbols"},
    {{" !?!"}, "leading space"},
    {{NBSP, "!"}, "only U+0020 leads"},
    {{" ", " !"}, "only one"},
    {{"!\n\r\n", "a"}, "line breaks after"},
    {{"!\n", " a"}, "then a space"},
    {{"!", " \n"}, "no space between"},
    {{SMILE ZWJ SMILE}, "joined emoji"},
    {{"!" RADICAL}, "radicals are symbols"},
    {{"!", REPEAT}, "but this one is a letter"},
    {{"!", NEW_HAN}, "and so is a newer ideograph"},
    {{"a", "\xef\xbf\xbd"}, "replacement character"},
    /* 6 and 7: white space */
    {{"\n"}, "line break"},
    {{"\n\n\n"}, "line breaks"},
    {{" \n \r\n", " a"}, "up to the last line break"},
    {{"a", " \r", "b"}, "CR is one too"},
    {{"!\r\r", "b"}, "also after symbols"},
    {{"  \n", "  ", " a"}, "the rest behind it"},
    {{"   "}, "at the end of the text all of it"},
    {{"a", "   "}, "after a word"},
    {{"  ", " a"}, "the last one leads the word"},
    {{"  ", " ", "1"}, "a number takes none"},
    {{"  ", " ", HAN}, "nor does Han"},
    {{"  ", " !"}, "a symbol does"},
    {{"\t", " a"}, "mixed"},
    {{" ", "\ta"}, "mixed"},
    {{" ", "\t", "!"}, "a symbol takes U+0020 only"},
    {{NEL, NEL "a"}, "NEL is white space but no line break"},
    {{WIDE WIDE, " a"}, "wide"},
    {{WIDE "\n", WIDE "a"}, "wide and line break"},
    {{"a", "\n", "b"}, "one between words"},
    {{"a", "\n", " b"}, "and a space behind it"},
    {{"a", " \n", "b"}, "and a space before it"},
    {{"a", "\x1c"
           "b"},
     "U+001C is no white space for the pattern"},
};

struct cut {
    struct k3_text_chunk chunk;
    size_t at;
};

static void cut_open(struct cut *cut, const char *text, size_t len)
{
    struct k3_error err = {0};
    ck_assert_ok(k3_text_chunk_init(&cut->chunk, len, &err));
    ck_assert_uint_eq(k3_text_chunk_fill(&cut->chunk, (const uint8_t *)text, len), len);
    cut->at = 0;
}

START_TEST(pieces)
{
    char text[256] = "";
    for (const char *const *piece = cases[_i].pieces; *piece; piece++) {
        strcat(text, *piece);
    }
    struct cut cut;
    cut_open(&cut, text, strlen(text));
    for (const char *const *piece = cases[_i].pieces; *piece; piece++) {
        const size_t end = k3_pretokenize_next(&cut.chunk, cut.at, cut.chunk.count);
        const char *start = (const char *)cut.chunk.bytes + cut.chunk.starts[cut.at];
        const size_t len = cut.chunk.starts[end] - cut.chunk.starts[cut.at];
        ck_assert_msg(len == strlen(*piece) && memcmp(start, *piece, len) == 0,
                      "%s: '%s': found '%.*s', expected '%s'", cases[_i].why, text, (int)len, start,
                      *piece);
        cut.at = end;
    }
    ck_assert_uint_eq(cut.at, cut.chunk.count);
    k3_text_chunk_done(&cut.chunk);
}
END_TEST

/* The pattern ends where it is told to, not where the chunk does. */
START_TEST(end_is_the_end_of_the_text)
{
    struct cut cut;
    cut_open(&cut, "it's   x", 8);
    ck_assert_uint_eq(k3_pretokenize_next(&cut.chunk, 0, 3), 2);
    ck_assert_uint_eq(k3_pretokenize_next(&cut.chunk, 0, 4), 4);
    ck_assert_uint_eq(k3_pretokenize_next(&cut.chunk, 4, 7), 7);
    ck_assert_uint_eq(k3_pretokenize_next(&cut.chunk, 4, 8), 6);
    k3_text_chunk_done(&cut.chunk);
}
END_TEST

/* Texts on which looking again and again would take quadratic time: 10^12 steps here. */
static const struct {
    const char *unit;
    const char *last;
} long_texts[] = {
    {"A", ""},
    {"A", "!"},
    {ACUTE, ""},
    {ACUTE "A", ""},
    {SMALL_H, ""},
    {SMALL_H "A", ""},
    {SMALL_H "AA", ""},
    {"AA" ACUTE, "A"},
    {" ", ""},
    {" ", "a"},
    {" ", "\n"},
    {"\n ", "a"},
    {"\r\n\t", ""},
    {"'", ""},
    {"'s", ""},
    {"'l", ""},
    {"a'", ""},
    {"!\n", ""},
    {"! ", ""},
    {"1", ""},
    {HAN, ""},
    {HAN ACUTE, ""},
    {ZERO "1", ""},
    {" A", ""},
    {" " ACUTE "A", ""},
    {ALEF, "A"},
    {ALEF "A", ""},
    {NEL, "x"},
    {"\xef\xbf\xbd", ""},
    {"_", "a"},
    {"a_", ""},
    {"\n!", ""},
};

START_TEST(linear_time)
{
    const size_t units = 1000000;
    const size_t unit_len = strlen(long_texts[_i].unit);
    const size_t last_len = strlen(long_texts[_i].last);
    char *text = malloc(units * unit_len + last_len);
    for (size_t i = 0; i < units; i++) {
        memcpy(text + i * unit_len, long_texts[_i].unit, unit_len);
    }
    memcpy(text + units * unit_len, long_texts[_i].last, last_len);
    struct cut cut;
    cut_open(&cut, text, units * unit_len + last_len);
    while (cut.at < cut.chunk.count) {
        cut.at = k3_pretokenize_next(&cut.chunk, cut.at, cut.chunk.count);
    }
    k3_text_chunk_done(&cut.chunk);
    free(text);
}
END_TEST

Suite *k3_suite(void)
{
    Suite *suite = suite_create("pretokenize");
    TCase *pattern = tcase_create("pattern");
    tcase_add_loop_test(pattern, pieces, 0, sizeof cases / sizeof cases[0]);
    tcase_add_test(pattern, end_is_the_end_of_the_text);
    suite_add_tcase(suite, pattern);
    TCase *speed = tcase_create("linear time");
    tcase_set_timeout(speed, 20);
    tcase_add_loop_test(speed, linear_time, 0, sizeof long_texts / sizeof long_texts[0]);
    suite_add_tcase(suite, speed);
    return suite;
}
