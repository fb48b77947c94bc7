/* SPDX-License-Identifier: Apache-2.0 */
#ifndef K3_RUNTIME_TOKENIZER_DETOKENIZER_H
#define K3_RUNTIME_TOKENIZER_DETOKENIZER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "format/base/error.h"
#include "format/vocab/vocab.h"

/* Token ids to text, one id at a time, as a printer needs it (docs/tokenizer.md 4).
 *
 * A character may straddle tokens. K3_DETOKENIZE_TEXT gives whole characters only: a trailing
 * sequence that the next token may complete is held back (at most 3 bytes), and what can no longer
 * become a character turns into U+FFFD, one per maximal invalid subsequence. All outputs together
 * are what decoding all bytes at once would give. K3_DETOKENIZE_RAW gives every byte at once,
 * exactly as the tokens spell it. Not for use by two threads at a time. */
struct k3_detokenizer;

enum k3_detokenize_mode {
    K3_DETOKENIZE_TEXT, /* valid UTF-8, always */
    K3_DETOKENIZE_RAW   /* exact bytes         */
};

struct k3_detokenizer_options {
    enum k3_detokenize_mode mode;
    bool skips_special; /* leave out added tokens for which k3_vocab_is_special says so */
};

/* `vocab` is borrowed and must outlive the detokenizer.
 * Errors: NO_MEMORY. *out_detokenizer is the caller's: k3_detokenizer_destroy. */
K3_MUST_CHECK enum k3_code k3_detokenizer_create(const struct k3_vocab *vocab,
                                                 struct k3_detokenizer_options options,
                                                 struct k3_detokenizer **out_detokenizer,
                                                 struct k3_error *err);

/* NULL is fine. */
void k3_detokenizer_destroy(struct k3_detokenizer *detokenizer);

/* Gives the bytes that became certain with `id`, possibly none. They stay valid until the next call
 * with this detokenizer. Allocates nothing. Errors: USAGE for an id outside the vocabulary; the
 * detokenizer is then unchanged. */
K3_MUST_CHECK enum k3_code k3_detokenizer_feed(struct k3_detokenizer *detokenizer, uint32_t id,
                                               const uint8_t **out_bytes, size_t *out_len,
                                               struct k3_error *err);

/* No more ids: gives U+FFFD if a sequence was left incomplete, else nothing. Afterwards the
 * detokenizer is as new. Bytes as above. */
void k3_detokenizer_finish(struct k3_detokenizer *detokenizer, const uint8_t **out_bytes,
                           size_t *out_len);

#endif
