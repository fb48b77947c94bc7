/* SPDX-License-Identifier: Apache-2.0 */
#ifndef K3_RUNTIME_TOKENIZER_TOKENIZER_H
#define K3_RUNTIME_TOKENIZER_TOKENIZER_H

#include <stddef.h>
#include <stdint.h>

#include "format/base/error.h"
#include "format/vocab/vocab.h"
#include "runtime/tokenizer/token_ids.h"

/* Text to token ids, exactly as the released tokenizer does it (docs/tokenizer.md 3). The other way
 * is detokenizer.h. Immutable after creation: any number of threads may encode with one. */
struct k3_tokenizer;

/* Who wrote the text decides. A spelling such as <|open|> in text from a user, a tool or a file is
 * text: parsing it would let a pasted marker open a system turn. */
enum k3_encode_mode {
    K3_ENCODE_PLAIN,  /* every byte is text; never yields an added token            */
    K3_ENCODE_MARKERS /* spellings of added tokens become their ids: trusted text   */
};

/* Very long text is cut before anything else looks at it; the ids at the cuts depend on where. */
struct k3_text_caps {
    size_t chunk_chars; /* code points that are looked at together           */
    size_t run_chars;   /* longest run of all white space, or of none of it  */
};

/* Those of the released tokenizer. */
#define K3_TEXT_CAPS_RELEASED ((struct k3_text_caps){.chunk_chars = 400000, .run_chars = 25000})

/* `vocab` is borrowed and must outlive the tokenizer; caps are >= 1 (asserted).
 * Errors: NO_MEMORY. *out_tokenizer is the caller's: k3_tokenizer_destroy. */
K3_MUST_CHECK enum k3_code k3_tokenizer_create(const struct k3_vocab *vocab,
                                               struct k3_text_caps caps,
                                               struct k3_tokenizer **out_tokenizer,
                                               struct k3_error *err);

/* NULL is fine. */
void k3_tokenizer_destroy(struct k3_tokenizer *tokenizer);

/* Appends the ids of text[0, text_len) to `ids`. Nothing is put in front or behind: no [BOS].
 *
 * Text should be UTF-8; each maximal invalid subsequence counts as one U+FFFD (docs/tokenizer.md
 * 3.1). NUL is a character like others; text may be NULL when text_len is 0. Where several
 * spellings begin at the same place, the longest wins. Encoding two texts and joining the ids may
 * differ from joining the texts: separate parts are meant to stay separate.
 *
 * Time O(n log n), memory O(n) with at most about 50 bytes per byte of the longest piece.
 * Errors: NO_MEMORY; `ids` then holds what it held before. */
K3_MUST_CHECK enum k3_code k3_tokenizer_encode(const struct k3_tokenizer *tokenizer,
                                               const void *text, size_t text_len,
                                               enum k3_encode_mode mode, struct k3_token_ids *ids,
                                               struct k3_error *err);

#endif
