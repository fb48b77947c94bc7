/* SPDX-License-Identifier: Apache-2.0 */
#ifndef K3_FORMAT_BASE_BYTES_H
#define K3_FORMAT_BASE_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Little-endian fields, one by one: no struct is ever laid over bytes. */

static inline uint16_t k3_le16_get(const uint8_t *p)
{
    return (uint16_t)(p[0] | (unsigned)p[1] << 8);
}

static inline uint32_t k3_le32_get(const uint8_t *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static inline uint64_t k3_le64_get(const uint8_t *p)
{
    return (uint64_t)k3_le32_get(p) | (uint64_t)k3_le32_get(p + 4) << 32;
}

static inline void k3_le16_put(uint8_t *p, uint16_t v)
{
    p[0] = (uint8_t)v;
    p[1] = (uint8_t)(v >> 8);
}

static inline void k3_le32_put(uint8_t *p, uint32_t v)
{
    k3_le16_put(p, (uint16_t)v);
    k3_le16_put(p + 2, (uint16_t)(v >> 16));
}

static inline void k3_le64_put(uint8_t *p, uint64_t v)
{
    k3_le32_put(p, (uint32_t)v);
    k3_le32_put(p + 4, (uint32_t)(v >> 32));
}

static inline float k3_f32_from_bits(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline uint32_t k3_f32_to_bits(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline float k3_bf16_widen(uint16_t bits)
{
    return k3_f32_from_bits((uint32_t)bits << 16);
}

/* Are all `len` bytes zero? Compares the buffer with itself one step on, at memcmp speed. */
static inline bool k3_bytes_are_zero(const void *bytes, size_t len)
{
    const uint8_t *p = bytes;
    return len == 0 || (p[0] == 0 && memcmp(p, p + 1, len - 1) == 0);
}

#endif
