/* SPDX-License-Identifier: Apache-2.0 */
#ifndef K3_RUNTIME_TOKENIZER_TEXT_CHUNK_H
#define K3_RUNTIME_TOKENIZER_TEXT_CHUNK_H

#include <stddef.h>
#include <stdint.h>

#include "format/base/error.h"

/* A stretch of text, at most the chunk cap long, made ready for matching: valid UTF-8 and, per
 * character, where it starts and its classes. Positions below are character indices. */
struct k3_text_chunk {
    uint8_t *bytes;   /* valid UTF-8: U+FFFD stands where the input was not */
    uint32_t *starts; /* character i is bytes[starts[i], starts[i + 1])     */
    uint8_t *classes; /* enum k3_char_class of character i                  */
    size_t count;     /* characters                                         */
    size_t chars_max; /* room                                               */
};

/* Room for chars_max characters (>= 1, < 2^30, asserted). Errors: NO_MEMORY. */
K3_MUST_CHECK enum k3_code k3_text_chunk_init(struct k3_text_chunk *chunk, size_t chars_max,
                                              struct k3_error *err);

void k3_text_chunk_done(struct k3_text_chunk *chunk);

/* Takes characters from text[0, len) until there is no more text or no more room, and returns how
 * many bytes of the text that was. What the chunk held before is gone. */
size_t k3_text_chunk_fill(struct k3_text_chunk *chunk, const uint8_t *text, size_t len);

/* Where the stretch that starts at `from` must end under the cap on runs: at the first character
 * that makes a run of white space, or of anything else, longer than run_chars, else at the end of
 * the chunk. White space here is Python's str.isspace (docs/tokenizer.md 3.2). */
size_t k3_text_chunk_run_end(const struct k3_text_chunk *chunk, size_t from, size_t run_chars);

#endif
