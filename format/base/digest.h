/* SPDX-License-Identifier: Apache-2.0 */
#ifndef K3_FORMAT_BASE_DIGEST_H
#define K3_FORMAT_BASE_DIGEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "format/base/error.h"

/* XXH3-128 with seed 0, in its canonical (big-endian) byte order: the hex of `bytes` is what
 * `xxhsum -H2` prints. It finds damage; it does not defend against an adversary. */
#define K3_DIGEST_BYTES 16

struct k3_digest {
    uint8_t bytes[K3_DIGEST_BYTES];
};

#define K3_DIGEST_HEX_BYTES (2 * K3_DIGEST_BYTES + 1)

struct k3_digest k3_digest_of(const void *bytes, size_t len);
bool k3_digest_equal(const struct k3_digest *a, const struct k3_digest *b);
void k3_digest_hex(const struct k3_digest *digest, char out_hex[K3_DIGEST_HEX_BYTES]);

/* The same of bytes that arrive in pieces. Opaque; create/destroy. */
struct k3_digest_stream;

K3_MUST_CHECK enum k3_code k3_digest_stream_create(struct k3_digest_stream **out_stream,
                                                   struct k3_error *err);
void k3_digest_stream_destroy(struct k3_digest_stream *stream);
void k3_digest_stream_reset(struct k3_digest_stream *stream);
void k3_digest_stream_update(struct k3_digest_stream *stream, const void *bytes, size_t len);
struct k3_digest k3_digest_stream_value(const struct k3_digest_stream *stream);

#endif
