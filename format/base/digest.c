/* SPDX-License-Identifier: Apache-2.0 */
#include "format/base/digest.h"

#include <stdio.h>
#include <string.h>
#include <xxhash.h>

#include "format/base/assert.h"

static struct k3_digest canonical(XXH128_hash_t hash)
{
    XXH128_canonical_t form;
    XXH128_canonicalFromHash(&form, hash);
    struct k3_digest digest;
    memcpy(digest.bytes, form.digest, sizeof digest.bytes);
    return digest;
}

struct k3_digest k3_digest_of(const void *bytes, size_t len)
{
    return canonical(XXH3_128bits(bytes, len));
}

bool k3_digest_equal(const struct k3_digest *a, const struct k3_digest *b)
{
    return memcmp(a->bytes, b->bytes, sizeof a->bytes) == 0;
}

void k3_digest_hex(const struct k3_digest *digest, char out_hex[K3_DIGEST_HEX_BYTES])
{
    for (size_t i = 0; i < K3_DIGEST_BYTES; i++) {
        snprintf(out_hex + 2 * i, 3, "%02x", digest->bytes[i]);
    }
}

/* The opaque stream is xxHash's own state under our name. */
static XXH3_state_t *state_of(struct k3_digest_stream *stream)
{
    return (XXH3_state_t *)(void *)stream;
}

enum k3_code k3_digest_stream_create(struct k3_digest_stream **out_stream, struct k3_error *err)
{
    XXH3_state_t *state = XXH3_createState();
    if (!state) {
        return k3_fail_no_memory(err, "digest state");
    }
    XXH3_128bits_reset(state);
    *out_stream = (struct k3_digest_stream *)(void *)state;
    return K3_OK;
}

void k3_digest_stream_destroy(struct k3_digest_stream *stream)
{
    XXH3_freeState(state_of(stream));
}

void k3_digest_stream_reset(struct k3_digest_stream *stream)
{
    const XXH_errorcode status = XXH3_128bits_reset(state_of(stream));
    k3_assert(status == XXH_OK);
}

void k3_digest_stream_update(struct k3_digest_stream *stream, const void *bytes, size_t len)
{
    const XXH_errorcode status = XXH3_128bits_update(state_of(stream), bytes, len);
    k3_assert(status == XXH_OK);
}

struct k3_digest k3_digest_stream_value(const struct k3_digest_stream *stream)
{
    return canonical(XXH3_128bits_digest((const XXH3_state_t *)(const void *)stream));
}
