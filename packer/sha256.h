/* SPDX-License-Identifier: Apache-2.0 */
#ifndef K3_PACKER_SHA256_H
#define K3_PACKER_SHA256_H

#include "format/base/error.h"
#include "format/pack/provenance.h"

/* SHA-256 of bytes that arrive in pieces, by OpenSSL's libcrypto. Opaque; create/destroy. */
struct k3_sha256;

K3_MUST_CHECK enum k3_code k3_sha256_create(struct k3_sha256 **out_sha256, struct k3_error *err);
void k3_sha256_destroy(struct k3_sha256 *sha256); /* NULL is fine */
void k3_sha256_reset(struct k3_sha256 *sha256);
void k3_sha256_update(struct k3_sha256 *sha256, const void *bytes, size_t len);
/* Ends it: reset before more bytes. */
void k3_sha256_value(struct k3_sha256 *sha256, uint8_t out_bytes[K3_SHA256_BYTES]);

#define K3_SHA256_HEX_BYTES (2 * K3_SHA256_BYTES + 1)
void k3_sha256_hex(const uint8_t bytes[K3_SHA256_BYTES], char out_hex[K3_SHA256_HEX_BYTES]);

#endif
