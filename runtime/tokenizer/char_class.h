/* SPDX-License-Identifier: Apache-2.0 */
#ifndef K3_RUNTIME_TOKENIZER_CHAR_CLASS_H
#define K3_RUNTIME_TOKENIZER_CHAR_CLASS_H

#include <stdint.h>

/* The classes that the split pattern and the caps ask about (docs/tokenizer.md 3.3). A character
 * may be in several. Marks (M*) and modifier and other letters (Lm, Lo) are in UPPER and LOWER
 * both, which is why the matcher must backtrack. */
enum k3_char_class {
    K3_CHAR_LETTER = 1 << 0,   /* \p{L}                                                   */
    K3_CHAR_NUMBER = 1 << 1,   /* \p{N}                                                   */
    K3_CHAR_SPACE = 1 << 2,    /* \s: White_Space                                         */
    K3_CHAR_NEWLINE = 1 << 3,  /* CR or LF                                                */
    K3_CHAR_HAN = 1 << 4,      /* Script=Han                                              */
    K3_CHAR_UPPER = 1 << 5,    /* not Han and one of Lu, Lt, Lm, Lo, M*                   */
    K3_CHAR_LOWER = 1 << 6,    /* not Han and one of Ll, Lm, Lo, M*                       */
    K3_CHAR_PY_SPACE = 1 << 7, /* Python's str.isspace: White_Space and U+001C to U+001F  */
};

/* Classes of a code point (<= U+10FFFF), or-ed together; constant time. General categories are
 * those of the utf8proc that is linked (Unicode 15 or later), White_Space and Han our own ranges. A
 * Han code point without a category there is an ideograph newer than utf8proc: a letter. */
uint8_t k3_char_classes(uint32_t code_point);

#endif
