/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/tokenizer/char_class.h"

#include <stdbool.h>
#include <stddef.h>

#include "tests/support/suite_main.h"

enum {
    L = K3_CHAR_LETTER,
    N = K3_CHAR_NUMBER,
    S = K3_CHAR_SPACE | K3_CHAR_PY_SPACE,
    NL = K3_CHAR_NEWLINE,
    HAN = K3_CHAR_HAN,
    U = K3_CHAR_UPPER,
    W = K3_CHAR_LOWER,
    PY = K3_CHAR_PY_SPACE
};

static const struct {
    uint32_t code_point;
    unsigned classes;
    const char *why;
} cases[] = {
    {'A', L | U, "Lu"},
    {'z', L | W, "Ll"},
    {0x01C5, L | U, "Lt"},
    {0x02B0, L | U | W, "Lm, modifier letter small h"},
    {0x05D0, L | U | W, "Lo, Hebrew alef"},
    {0x00AA, L | U | W, "Lo since Unicode 6.1, feminine ordinal"},
    {0x017F, L | W, "Ll, long s"},
    {0x0301, U | W, "Mn"},
    {0x0903, U | W, "Mc"},
    {0x20DD, U | W, "Me"},
    {0xFE0F, U | W, "Mn, variation selector"},
    {'7', N, "Nd"},
    {0x0663, N, "Nd, Arabic"},
    {0x2167, N, "Nl, Roman numeral"},
    {0x00BD, N, "No, one half"},
    {0x24B6, 0, "So, though Alphabetic: circled A"},
    {'_', 0, "Pc: not a word character here"},
    {'\'', 0, "Po"},
    {0x1F600, 0, "So, emoji"},
    {0x200B, 0, "Cf, zero width space is no space"},
    {0x200D, 0, "Cf, joiner"},
    {0xFEFF, 0, "Cf, byte order mark"},
    {0x180E, 0, "Cf, Mongolian vowel separator: no space since Unicode 6.3"},
    {0xE000, 0, "Co, private use"},
    {0x0378, 0, "Cn, unassigned"},
    {0xFFFD, 0, "replacement character"},
    {0x10FFFF, 0, "Cn, the last one"},
    {0, 0, "NUL"},
    {0x08, 0, "before the controls that are spaces"},
    {'\t', S, "tab"},
    {'\n', S | NL, "LF"},
    {0x0B, S, "VT"},
    {0x0C, S, "FF is no newline"},
    {'\r', S | NL, "CR"},
    {0x0E, 0, "after them"},
    {0x1B, 0, "before Python's extra spaces"},
    {0x1C, PY, "Python's extra spaces"},
    {0x1F, PY, "Python's extra spaces"},
    {' ', S, "space"},
    {0x85, S, "NEL is no newline"},
    {0xA0, S, "no-break space"},
    {0x1680, S, "Ogham space"},
    {0x2000, S, "en quad"},
    {0x200A, S, "hair space"},
    {0x2028, S, "line separator is no newline"},
    {0x2029, S, "paragraph separator"},
    {0x202F, S, "narrow no-break space"},
    {0x205F, S, "mathematical space"},
    {0x3000, S, "ideographic space"},
    {0x2E7F, 0, "before the first Han"},
    {0x2E80, HAN, "radicals are So"},
    {0x2E99, HAN, "end of the first range"},
    {0x2E9A, 0, "the hole in the radicals"},
    {0x2E9B, HAN, "after the hole"},
    {0x2EF3, HAN, "last radical"},
    {0x2EF4, 0, "after it"},
    {0x2F00, HAN, "Kangxi"},
    {0x2FD5, HAN, "last Kangxi"},
    {0x3004, 0, "JIS symbol"},
    {0x3005, HAN | L, "iteration mark, Lm: not in the word sets"},
    {0x3006, L | U | W, "closing mark is Lo but not Han"},
    {0x3007, HAN | N, "ideographic zero is a number too"},
    {0x3008, 0, "bracket"},
    {0x3021, HAN | N, "Hangzhou one"},
    {0x3029, HAN | N, "Hangzhou nine"},
    {0x302A, U | W, "tone mark after it"},
    {0x3038, HAN | N, "Hangzhou ten"},
    {0x303B, HAN | L, "vertical iteration mark"},
    {0x303C, L | U | W, "masu mark"},
    {0x3042, L | U | W, "hiragana"},
    {0x30FC, L | U | W, "prolonged sound mark"},
    {0x3400, HAN | L, "extension A"},
    {0x4DBF, HAN | L, "its end"},
    {0x4DC0, 0, "hexagram"},
    {0x4E00, HAN | L, "one"},
    {0x9FFF, HAN | L, "end of the block"},
    {0xA000, L | U | W, "Yi"},
    {0xAC00, L | U | W, "Hangul"},
    {0xF900, HAN | L, "compatibility"},
    {0xFA6D, HAN | L, "end of its first part"},
    {0xFA6E, 0, "unassigned between"},
    {0xFA70, HAN | L, "its second part"},
    {0xFAD9, HAN | L, "end of its second part"},
    {0xFADA, 0, "after it"},
    {0x16FE2, HAN, "old Chinese hook mark, Po"},
    {0x16FE3, HAN | L, "old Chinese iteration mark, Lm"},
    {0x16FE4, U | W, "Khitan filler, Mn, not Han"},
    {0x16FF0, HAN, "Vietnamese reading mark, Mc: not in the word sets"},
    {0x16FF1, HAN, "the other one"},
    {0x20000, HAN | L, "extension B"},
    {0x2A6DF, HAN | L, "its end"},
    {0x2A6E0, 0, "after it"},
    {0x2B739, HAN | L, "end of extension C"},
    {0x2B81D, HAN | L, "end of D"},
    {0x2CEA1, HAN | L, "end of E"},
    {0x2EBE0, HAN | L, "end of F"},
    {0x2EBF0, HAN | L, "extension I (15.1): a letter also where utf8proc is older"},
    {0x2EE5D, HAN | L, "its end"},
    {0x2FA1D, HAN | L, "end of the compatibility supplement"},
    {0x3134A, HAN | L, "end of G"},
    {0x31350, HAN | L, "extension H"},
    {0x323AF, HAN | L, "its end"},
    {0x323B0, 0, "after it"},
};

START_TEST(classes)
{
    const unsigned found = k3_char_classes(cases[_i].code_point);
    ck_assert_msg(found == cases[_i].classes, "U+%04X, %s: 0x%02x, expected 0x%02x",
                  cases[_i].code_point, cases[_i].why, found, cases[_i].classes);
}
END_TEST

static bool is_consistent(uint32_t c, unsigned found)
{
    const bool is_space = (found & K3_CHAR_SPACE) != 0;
    return !((found & L) && (found & N)) && (!is_space || (found & PY)) &&
           !(is_space && (found & (L | N | U | W | HAN))) &&
           !((found & HAN) && (found & (U | W))) &&
           (((found & NL) != 0) == (c == '\r' || c == '\n')) &&
           (!(found & L) || (found & (U | W | HAN)));
}

START_TEST(rules_that_hold_for_all)
{
    size_t han = 0;
    size_t space = 0;
    for (uint32_t c = 0; c <= 0x10FFFF; c++) {
        const unsigned found = k3_char_classes(c);
        if (!is_consistent(c, found)) {
            ck_abort_msg("U+%04X: 0x%02x", c, found);
        }
        han += (found & HAN) != 0;
        space += (found & K3_CHAR_SPACE) != 0;
    }
    ck_assert_uint_eq(space, 25);  /* PropList.txt: total of White_Space */
    ck_assert_uint_eq(han, 99030); /* Scripts.txt 15.1: total of Han     */
}
END_TEST

Suite *k3_suite(void)
{
    Suite *suite = suite_create("char_class");
    TCase *table = tcase_create("table");
    tcase_add_loop_test(table, classes, 0, sizeof cases / sizeof cases[0]);
    tcase_add_test(table, rules_that_hold_for_all);
    suite_add_tcase(suite, table);
    return suite;
}
