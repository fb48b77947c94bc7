/* SPDX-License-Identifier: Apache-2.0 */
#include "format/vocab/base64.h"

/* 0..63, or -1 for what is not in the alphabet. */
static int digit_value(uint8_t c)
{
    if (c >= 'A' && c <= 'Z') {
        return c - 'A';
    }
    if (c >= 'a' && c <= 'z') {
        return c - 'a' + 26;
    }
    if (c >= '0' && c <= '9') {
        return c - '0' + 52;
    }
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

/* How many '=' end the text: 0, 1 or 2. More are found to be no digits. */
static size_t padding_of(const uint8_t *text, size_t text_len)
{
    size_t padding = 0;
    while (padding < 2 && padding < text_len && text[text_len - 1 - padding] == '=') {
        padding++;
    }
    return padding;
}

bool k3_base64_decode(const uint8_t *text, size_t text_len, uint8_t *out_bytes, size_t *out_len,
                      size_t *out_bad_at)
{
    const size_t digits = text_len - padding_of(text, text_len);
    uint32_t bits = 0;
    unsigned bit_count = 0;
    size_t len = 0;
    for (size_t i = 0; i < digits; i++) {
        const int value = digit_value(text[i]);
        if (value < 0) {
            *out_bad_at = i;
            return false;
        }
        bits = bits << 6 | (uint32_t)value;
        bit_count += 6;
        if (bit_count >= 8) {
            bit_count -= 8;
            out_bytes[len++] = (uint8_t)(bits >> bit_count);
            bits &= (1u << bit_count) - 1;
        }
    }
    if (text_len % 4 != 0) {
        *out_bad_at = text_len;
        return false;
    }
    if (bits != 0) {
        *out_bad_at = digits - 1;
        return false;
    }
    *out_len = len;
    return true;
}
