/* SPDX-License-Identifier: Apache-2.0 */
#ifndef K3_RUNTIME_TOKENIZER_UTF8_H
#define K3_RUNTIME_TOKENIZER_UTF8_H

#include <stddef.h>
#include <stdint.h>

/* One step of decoding UTF-8 (Unicode 15, tables 3-7 and section "U+FFFD Substitution of Maximal
 * Subparts", the practice of the W3C encoding standard and of Python's errors="replace"). */
enum k3_utf8_kind {
    K3_UTF8_VALID,     /* a character                                                          */
    K3_UTF8_INVALID,   /* a maximal invalid subsequence, to be replaced by one U+FFFD          */
    K3_UTF8_INCOMPLETE /* the bytes end within a sequence that more bytes might make a character;
                          at the end of a text, one U+FFFD                                     */
};

struct k3_utf8_step {
    enum k3_utf8_kind kind;
    size_t len;          /* bytes it takes, 1 to 4              */
    uint32_t code_point; /* U+FFFD unless the kind is VALID     */
};

#define K3_UTF8_REPLACEMENT    0xFFFDu
#define K3_UTF8_CHAR_BYTES_MAX 4

/* What stands at the start of bytes[0, len); len > 0 (asserted). */
struct k3_utf8_step k3_utf8_decode(const uint8_t *bytes, size_t len);

/* Writes a code point (not a surrogate, at most U+10FFFF) and returns how many bytes it took. */
size_t k3_utf8_encode(uint32_t code_point, uint8_t out_bytes[static K3_UTF8_CHAR_BYTES_MAX]);

#endif
