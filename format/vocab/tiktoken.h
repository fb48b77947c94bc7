/* SPDX-License-Identifier: Apache-2.0 */
#ifndef K3_FORMAT_VOCAB_TIKTOKEN_H
#define K3_FORMAT_VOCAB_TIKTOKEN_H

#include <stddef.h>
#include <stdint.h>

#include "format/base/error.h"
#include "format/vocab/rank_table.h"
#include "format/vocab/token_list.h"

/* tiktoken.model: line n is `base64(bytes of token n)`, one space, `n` in decimal, LF. Only the
 * last LF may be missing. Refused, with the offset of the byte at fault (docs/tokenizer.md 1):
 *
 *   CR, an empty line, anything else that is not this form     where it stands
 *   base64 that is not canonical, an empty or a longer token   where it stands
 *   a rank that is not the line's number (gap, repeat)         where the rank stands
 *   the same bytes twice                                       start of the later line
 *   a single byte that is no token                             end of the file
 *   too many lines, too large a file                           0
 *
 * So an accepted file is what writing the tokens out again would give.
 *
 * `list` (uninitialised) gets the tokens, with room for spare_tokens more of spare_bytes together;
 * `table` (uninitialised) their ranks. Both are the caller's on success only.
 * Errors: MALFORMED, NO_MEMORY. */
K3_MUST_CHECK enum k3_code k3_tiktoken_parse(const uint8_t *bytes, size_t len,
                                             uint32_t spare_tokens, size_t spare_bytes,
                                             struct k3_token_list *list,
                                             struct k3_rank_table *table, struct k3_error *err);

#endif
