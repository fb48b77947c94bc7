/* SPDX-License-Identifier: Apache-2.0 */
#ifndef K3_FORMAT_VOCAB_BASE64_H
#define K3_FORMAT_VOCAB_BASE64_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Standard base64 (RFC 4648 section 4) in its one canonical form: alphabet A-Z a-z 0-9 + /, padded
 * with '=' to a multiple of four, unused bits zero, no white space. So bytes that are accepted are
 * exactly what encoding the result gives back. */

/* Room that decoding `text_len` characters may need, canonical or not. */
static inline size_t k3_base64_decoded_max(size_t text_len)
{
    return (text_len + 3) / 4 * 3;
}

/* Decodes all of text[0, text_len) into out_bytes (room: k3_base64_decoded_max). False when it is
 * not canonical; *out_bad_at is then the first character at fault, or text_len if some are missing.
 * out_bytes may be written either way. */
bool k3_base64_decode(const uint8_t *text, size_t text_len, uint8_t *out_bytes, size_t *out_len,
                      size_t *out_bad_at);

#endif
