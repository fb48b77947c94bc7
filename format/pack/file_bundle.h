/* SPDX-License-Identifier: Apache-2.0 */
#ifndef K3_FORMAT_PACK_FILE_BUNDLE_H
#define K3_FORMAT_PACK_FILE_BUNDLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "format/base/error.h"

/* The checkpoint's small files that a pack carries along: docs/format.md 9.1. */
enum k3_bundled_file {
    K3_BUNDLED_CONFIG,
    K3_BUNDLED_GENERATION_CONFIG,
    K3_BUNDLED_TIKTOKEN,
    K3_BUNDLED_TOKENIZER_CONFIG,
    K3_BUNDLED_LICENSE,
    K3_BUNDLED_COUNT
};

struct k3_file_bundle {
    struct {
        uint8_t *bytes; /* owned; NULL: not there */
        size_t len;
    } files[K3_BUNDLED_COUNT];
};

const char *k3_bundled_name(enum k3_bundled_file file);
bool k3_bundled_is_required(enum k3_bundled_file file);

void k3_file_bundle_done(struct k3_file_bundle *bundle);

/* To fresh memory (the caller's to free) and back. Both refuse a missing required file (MALFORMED);
 * decode also unknown or repeated names, wrong order and trailing bytes. */
K3_MUST_CHECK enum k3_code k3_file_bundle_encode(const struct k3_file_bundle *bundle,
                                                 uint8_t **out_bytes, size_t *out_len,
                                                 struct k3_error *err);
K3_MUST_CHECK enum k3_code k3_file_bundle_decode(const uint8_t *bytes, size_t len,
                                                 struct k3_file_bundle *out_bundle,
                                                 struct k3_error *err);

#endif
