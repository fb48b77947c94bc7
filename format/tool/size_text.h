/* SPDX-License-Identifier: Apache-2.0 */
#ifndef K3_FORMAT_TOOL_SIZE_TEXT_H
#define K3_FORMAT_TOOL_SIZE_TEXT_H

#include <stdint.h>

#include "format/base/error.h"

#define K3_SIZE_TEXT_BYTES 16

/* "512 B", "17.3 KiB", "1.42 TiB": three digits, binary units. */
void k3_size_format(uint64_t bytes, char out_text[K3_SIZE_TEXT_BYTES]);

/* "12GiB", "1.5 GiB", "512M", "8GB", "4096": a decimal number with at most 6 digits after the
 * point, perhaps one space, and a unit. KiB MiB GiB TiB and K M G T are powers of 1024; kB (or KB)
 * MB GB TB are powers of 1000; B or nothing is bytes. Nothing else is accepted: no sign, no
 * exponent, no other spelling. A fraction of a byte is dropped.
 * Errors: USAGE. */
K3_MUST_CHECK enum k3_code k3_size_parse(const char *text, uint64_t *out_bytes,
                                         struct k3_error *err);

#endif
