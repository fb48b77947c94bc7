/* SPDX-License-Identifier: Apache-2.0 */
#ifndef K3_FORMAT_PACK_BYTE_READER_H
#define K3_FORMAT_PACK_BYTE_READER_H

#include "format/base/bytes.h"

/* Walks unaligned fields in order. Reading past the end gives zeros and sets `failed`, so callers
 * check once per record. */
struct k3_byte_reader {
    const uint8_t *bytes;
    size_t len, at;
    bool failed;
};

static inline const uint8_t *k3_reader_take(struct k3_byte_reader *r, uint64_t count)
{
    if (r->failed || count > r->len - r->at) {
        r->failed = true;
        return NULL;
    }
    const uint8_t *p = r->bytes + r->at;
    r->at += (size_t)count;
    return p;
}

static inline uint16_t k3_reader_u16(struct k3_byte_reader *r)
{
    const uint8_t *p = k3_reader_take(r, 2);
    return p ? k3_le16_get(p) : 0;
}

static inline uint32_t k3_reader_u32(struct k3_byte_reader *r)
{
    const uint8_t *p = k3_reader_take(r, 4);
    return p ? k3_le32_get(p) : 0;
}

static inline uint64_t k3_reader_u64(struct k3_byte_reader *r)
{
    const uint8_t *p = k3_reader_take(r, 8);
    return p ? k3_le64_get(p) : 0;
}

/* The counterpart: bytes == NULL only counts, so that one function sizes and writes. */
struct k3_byte_writer {
    uint8_t *bytes;
    size_t at;
};

static inline void k3_writer_put(struct k3_byte_writer *w, const void *bytes, size_t len)
{
    if (w->bytes && len > 0) {
        memcpy(w->bytes + w->at, bytes, len);
    }
    w->at += len;
}

static inline void k3_writer_u16(struct k3_byte_writer *w, uint16_t v)
{
    uint8_t p[2];
    k3_le16_put(p, v);
    k3_writer_put(w, p, sizeof p);
}

static inline void k3_writer_u32(struct k3_byte_writer *w, uint32_t v)
{
    uint8_t p[4];
    k3_le32_put(p, v);
    k3_writer_put(w, p, sizeof p);
}

static inline void k3_writer_u64(struct k3_byte_writer *w, uint64_t v)
{
    uint8_t p[8];
    k3_le64_put(p, v);
    k3_writer_put(w, p, sizeof p);
}

#endif
