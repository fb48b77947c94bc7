/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/tokenizer/utf8.h"

#include "format/base/assert.h"

struct lead {
    size_t len;         /* of the whole sequence; 0: no sequence starts so */
    uint8_t second_min; /* the second byte shuts out overlong forms,       */
    uint8_t second_max; /* surrogates and what lies above U+10FFFF         */
};

static struct lead lead_of(uint8_t byte)
{
    if (byte < 0x80) {
        return (struct lead){1, 0, 0};
    }
    if (byte < 0xC2 || byte > 0xF4) {
        return (struct lead){0, 0, 0};
    }
    if (byte < 0xE0) {
        return (struct lead){2, 0x80, 0xBF};
    }
    if (byte < 0xF0) {
        return (struct lead){3, byte == 0xE0 ? 0xA0 : 0x80, byte == 0xED ? 0x9F : 0xBF};
    }
    return (struct lead){4, byte == 0xF0 ? 0x90 : 0x80, byte == 0xF4 ? 0x8F : 0xBF};
}

struct k3_utf8_step k3_utf8_decode(const uint8_t *bytes, size_t len)
{
    k3_assert(len > 0);
    static const uint8_t lead_bits[] = {0, 0x7F, 0x1F, 0x0F, 0x07};
    const struct lead lead = lead_of(bytes[0]);
    if (lead.len == 0) {
        return (struct k3_utf8_step){K3_UTF8_INVALID, 1, K3_UTF8_REPLACEMENT};
    }
    uint32_t code_point = bytes[0] & lead_bits[lead.len];
    for (size_t i = 1; i < lead.len; i++) {
        if (i == len) {
            return (struct k3_utf8_step){K3_UTF8_INCOMPLETE, i, K3_UTF8_REPLACEMENT};
        }
        const uint8_t min = i == 1 ? lead.second_min : 0x80;
        const uint8_t max = i == 1 ? lead.second_max : 0xBF;
        if (bytes[i] < min || bytes[i] > max) {
            return (struct k3_utf8_step){K3_UTF8_INVALID, i, K3_UTF8_REPLACEMENT};
        }
        code_point = code_point << 6 | (bytes[i] & 0x3Fu);
    }
    return (struct k3_utf8_step){K3_UTF8_VALID, lead.len, code_point};
}

size_t k3_utf8_encode(uint32_t code_point, uint8_t out_bytes[static K3_UTF8_CHAR_BYTES_MAX])
{
    if (code_point < 0x80) {
        out_bytes[0] = (uint8_t)code_point;
        return 1;
    }
    const size_t len = code_point < 0x800 ? 2 : code_point < 0x10000 ? 3 : 4;
    for (size_t i = len - 1; i > 0; i--) {
        out_bytes[i] = (uint8_t)(0x80 | (code_point & 0x3F));
        code_point >>= 6;
    }
    static const uint8_t lead_marks[] = {0, 0, 0xC0, 0xE0, 0xF0};
    out_bytes[0] = (uint8_t)(lead_marks[len] | code_point);
    return len;
}
