/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/tokenizer/char_class.h"

#include <stdbool.h>
#include <stddef.h>
#include <utf8proc.h>

/* Script=Han of Unicode 15.1, ascending. Note U+3005 and U+3007 in, U+3006 and kana out. */
static const struct range {
    uint32_t first;
    uint32_t last;
} han[] = {
    {0x2E80, 0x2E99},   {0x2E9B, 0x2EF3},   {0x2F00, 0x2FD5},   {0x3005, 0x3005},
    {0x3007, 0x3007},   {0x3021, 0x3029},   {0x3038, 0x303B},   {0x3400, 0x4DBF},
    {0x4E00, 0x9FFF},   {0xF900, 0xFA6D},   {0xFA70, 0xFAD9},   {0x16FE2, 0x16FE3},
    {0x16FF0, 0x16FF1}, {0x20000, 0x2A6DF}, {0x2A700, 0x2B739}, {0x2B740, 0x2B81D},
    {0x2B820, 0x2CEA1}, {0x2CEB0, 0x2EBE0}, {0x2EBF0, 0x2EE5D}, {0x2F800, 0x2FA1D},
    {0x30000, 0x3134A}, {0x31350, 0x323AF},
};

static bool is_han(uint32_t code_point)
{
    size_t low = 0;
    size_t high = sizeof han / sizeof han[0];
    while (low < high) { /* ranges below `low` end before it, those from `high` on start after it */
        const size_t middle = low + (high - low) / 2;
        if (code_point > han[middle].last) {
            low = middle + 1;
        } else if (code_point < han[middle].first) {
            high = middle;
        } else {
            return true;
        }
    }
    return false;
}

static bool is_white_space(uint32_t c)
{
    return (c >= 0x09 && c <= 0x0D) || c == 0x20 || c == 0x85 || c == 0xA0 || c == 0x1680 ||
           (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F ||
           c == 0x205F || c == 0x3000;
}

static uint8_t space_classes(uint32_t c)
{
    uint8_t classes = 0;
    if (is_white_space(c)) {
        classes = K3_CHAR_SPACE | K3_CHAR_PY_SPACE;
    } else if (c >= 0x1C && c <= 0x1F) {
        classes = K3_CHAR_PY_SPACE;
    }
    if (c == '\r' || c == '\n') {
        classes |= K3_CHAR_NEWLINE;
    }
    return classes;
}

static uint8_t category_classes(utf8proc_category_t category)
{
    /* Categories that are neither letter, mark nor number have no class of their own. */
    static const uint8_t classes_of[] = {
        [UTF8PROC_CATEGORY_LU] = K3_CHAR_LETTER | K3_CHAR_UPPER,
        [UTF8PROC_CATEGORY_LL] = K3_CHAR_LETTER | K3_CHAR_LOWER,
        [UTF8PROC_CATEGORY_LT] = K3_CHAR_LETTER | K3_CHAR_UPPER,
        [UTF8PROC_CATEGORY_LM] = K3_CHAR_LETTER | K3_CHAR_UPPER | K3_CHAR_LOWER,
        [UTF8PROC_CATEGORY_LO] = K3_CHAR_LETTER | K3_CHAR_UPPER | K3_CHAR_LOWER,
        [UTF8PROC_CATEGORY_MN] = K3_CHAR_UPPER | K3_CHAR_LOWER,
        [UTF8PROC_CATEGORY_MC] = K3_CHAR_UPPER | K3_CHAR_LOWER,
        [UTF8PROC_CATEGORY_ME] = K3_CHAR_UPPER | K3_CHAR_LOWER,
        [UTF8PROC_CATEGORY_ND] = K3_CHAR_NUMBER,
        [UTF8PROC_CATEGORY_NL] = K3_CHAR_NUMBER,
        [UTF8PROC_CATEGORY_NO] = K3_CHAR_NUMBER,
    };
    return (size_t)category < sizeof classes_of ? classes_of[category] : 0;
}

uint8_t k3_char_classes(uint32_t code_point)
{
    const utf8proc_category_t category = utf8proc_category((utf8proc_int32_t)code_point);
    const uint8_t classes = category_classes(category) | space_classes(code_point);
    if (code_point < han[0].first || !is_han(code_point)) {
        return classes;
    }
    const uint8_t newer = category == UTF8PROC_CATEGORY_CN ? K3_CHAR_LETTER : 0;
    return (uint8_t)((classes & ~(K3_CHAR_UPPER | K3_CHAR_LOWER)) | K3_CHAR_HAN | newer);
}
