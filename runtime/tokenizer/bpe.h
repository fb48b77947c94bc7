/* SPDX-License-Identifier: Apache-2.0 */
#ifndef K3_RUNTIME_TOKENIZER_BPE_H
#define K3_RUNTIME_TOKENIZER_BPE_H

#include <stddef.h>
#include <stdint.h>

#include "format/base/error.h"
#include "format/vocab/vocab.h"
#include "runtime/tokenizer/token_ids.h"

/* Byte pair encoding of one piece (docs/tokenizer.md 3.4). */

struct k3_bpe_part {
    uint32_t end;       /* the part is bytes [its index, end) of the piece             */
    uint32_t previous;  /* index of the part to its left; the first one's is not used  */
    uint32_t rank;      /* its own                                                     */
    uint32_t pair_rank; /* of it joined with its right neighbour, or none              */
};

/* Working memory that one caller uses again and again. Zeroed is empty; 32 bytes per byte of the
 * longest piece that was no token as a whole. */
struct k3_bpe_scratch {
    struct k3_bpe_part *parts; /* by the index of the byte where a part starts */
    uint64_t *heap;            /* candidates for joining: rank << 32 | index   */
    size_t heap_count;
    size_t piece_bytes_max;
};

void k3_bpe_scratch_done(struct k3_bpe_scratch *scratch);

/* Appends the ids of piece[0, len), 0 < len < 2^32 (asserted): the piece's own rank if it is a
 * token; otherwise single bytes, of which the adjacent pair with the lowest joint rank is joined,
 * the leftmost of equals, until no pair is a token. O(len log len). Errors: NO_MEMORY; `ids` may
 * then hold a part of the piece. */
K3_MUST_CHECK enum k3_code k3_bpe_encode(const struct k3_vocab *vocab,
                                         struct k3_bpe_scratch *scratch, const uint8_t *piece,
                                         size_t len, struct k3_token_ids *ids,
                                         struct k3_error *err);

#endif
