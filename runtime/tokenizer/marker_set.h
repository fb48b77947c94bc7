/* SPDX-License-Identifier: Apache-2.0 */
#ifndef K3_RUNTIME_TOKENIZER_MARKER_SET_H
#define K3_RUNTIME_TOKENIZER_MARKER_SET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "format/vocab/vocab.h"

/* The spellings of the added tokens, ready for being looked for in text (docs/tokenizer.md 3.5). */
struct k3_marker {
    struct k3_token_view spelling; /* borrowed from the vocabulary */
    uint32_t id;
};

struct k3_marker_set {
    struct k3_marker markers[K3_VOCAB_ADDED_COUNT]; /* by their bytes, ascending              */
    bool starts_one[256];                           /* does a spelling start with this byte?  */
};

/* Allocates nothing; `vocab` must outlive the set. */
void k3_marker_set_init(struct k3_marker_set *set, const struct k3_vocab *vocab);

/* The longest spelling that bytes[0, len) start with, or NULL. Takes a bounded number of steps
 * (spelling length + 256), so that looking at every character of a text is linear. */
const struct k3_marker *k3_marker_set_match(const struct k3_marker_set *set, const uint8_t *bytes,
                                            size_t len);

#endif
