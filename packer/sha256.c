/* SPDX-License-Identifier: Apache-2.0 */
#include "packer/sha256.h"

#include <openssl/evp.h>
#include <stdlib.h>

#include "format/base/assert.h"

struct k3_sha256 {
    EVP_MD_CTX *context;
};

enum k3_code k3_sha256_create(struct k3_sha256 **out_sha256, struct k3_error *err)
{
    struct k3_sha256 *s = malloc(sizeof *s);
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    if (!s || !context || EVP_DigestInit_ex(context, EVP_sha256(), NULL) != 1) {
        EVP_MD_CTX_free(context);
        free(s);
        return k3_fail_no_memory(err, "SHA-256");
    }
    s->context = context;
    *out_sha256 = s;
    return K3_OK;
}

void k3_sha256_destroy(struct k3_sha256 *sha256)
{
    if (sha256) {
        EVP_MD_CTX_free(sha256->context);
    }
    free(sha256);
}

/* These cannot fail once the algorithm was found; if one did, no digest must come out. */
static void demand(int result)
{
    k3_assert(result == 1);
}

void k3_sha256_reset(struct k3_sha256 *sha256)
{
    demand(EVP_DigestInit_ex(sha256->context, NULL, NULL));
}

void k3_sha256_update(struct k3_sha256 *sha256, const void *bytes, size_t len)
{
    demand(EVP_DigestUpdate(sha256->context, bytes, len));
}

void k3_sha256_value(struct k3_sha256 *sha256, uint8_t out_bytes[K3_SHA256_BYTES])
{
    unsigned len = 0;
    demand(EVP_DigestFinal_ex(sha256->context, out_bytes, &len));
    k3_assert(len == K3_SHA256_BYTES);
}

void k3_sha256_hex(const uint8_t bytes[K3_SHA256_BYTES], char out_hex[K3_SHA256_HEX_BYTES])
{
    static const char digits[] = "0123456789abcdef";
    for (unsigned i = 0; i < K3_SHA256_BYTES; i++) {
        out_hex[2 * i] = digits[bytes[i] >> 4];
        out_hex[2 * i + 1] = digits[bytes[i] & 15];
    }
    out_hex[2 * K3_SHA256_BYTES] = '\0';
}
