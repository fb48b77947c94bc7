/* SPDX-License-Identifier: Apache-2.0 */
#ifndef K3_RUNTIME_TOKENIZER_PRETOKENIZE_H
#define K3_RUNTIME_TOKENIZER_PRETOKENIZE_H

#include <stddef.h>

#include "runtime/tokenizer/text_chunk.h"

/* The released split pattern by hand (docs/tokenizer.md 3.3): where the piece that starts at
 * character `from` ends. The text is characters [from, end) of the chunk, and `end` is its end for
 * the pattern too; from < end (asserted). The result is in (from, end].
 *
 * Cutting a whole text this way takes linear time, whatever the text: a run of letters is looked at
 * by at most three pieces, and so is a run of white space. */
size_t k3_pretokenize_next(const struct k3_text_chunk *chunk, size_t from, size_t end);

#endif
