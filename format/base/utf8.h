/* SPDX-License-Identifier: Apache-2.0 */
#ifndef K3_FORMAT_BASE_UTF8_H
#define K3_FORMAT_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Length of the UTF-8 sequence at p[0, len), 0 where there is none (also when it is cut): no
 * overlong forms, no surrogates, nothing above U+10FFFF. len >= 1. */
static inline size_t k3_utf8_sequence(const uint8_t *p, size_t len)
{
    const size_t need = p[0] < 0x80   ? 1
                        : p[0] < 0xc2 ? 0
                        : p[0] < 0xe0 ? 2
                        : p[0] < 0xf0 ? 3
                        : p[0] < 0xf5 ? 4
                                      : 0;
    if (need == 0 || need > len) {
        return 0;
    }
    for (size_t i = 1; i < need; i++) {
        if ((p[i] & 0xc0) != 0x80) {
            return 0;
        }
    }
    const bool is_bad =
        need > 2 && ((p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xed && p[1] > 0x9f) ||
                     (p[0] == 0xf0 && p[1] < 0x90) || (p[0] == 0xf4 && p[1] > 0x8f));
    return is_bad ? 0 : need;
}

#endif
