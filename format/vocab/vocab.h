/* SPDX-License-Identifier: Apache-2.0 */
#ifndef K3_FORMAT_VOCAB_VOCAB_H
#define K3_FORMAT_VOCAB_VOCAB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "format/base/error.h"

/* The vocabulary of a checkpoint: what each token id spells, and which id some bytes have.
 *
 *   ids [0, rank_count)                       ordinary tokens: id = rank = line of tiktoken.model
 *   ids [rank_count, rank_count + 256)        added tokens: markers such as [EOS] or <|open|>
 *
 * Nothing here knows the released counts or ids: rank_count is the number of lines, markers are
 * found by spelling. Immutable after creation, so any number of threads may read it.
 * Source: docs/tokenizer.md 1 and 2. */

#define K3_VOCAB_ADDED_COUNT        256u       /* slots after the ranks, named or not           */
#define K3_VOCAB_RANKS_MAX          (1u << 20) /* lines of tiktoken.model                       */
#define K3_VOCAB_TOKEN_BYTES_MAX    4096u      /* bytes of one ordinary token                   */
#define K3_VOCAB_SPELLING_BYTES_MAX 256u       /* bytes of one added token                      */
#define K3_VOCAB_TIKTOKEN_BYTES_MAX ((size_t)64 << 20) /* tiktoken.model, whole file            */
#define K3_VOCAB_CONFIG_BYTES_MAX   ((size_t)1 << 20)  /* tokenizer_config.json, whole file     */

struct k3_vocab;

/* Bytes of a token; may hold any bytes, NUL and broken UTF-8 included; not NUL-terminated. */
struct k3_token_view {
    const uint8_t *bytes;
    size_t len;
};

/* Parses and checks both files, given whole in memory. Neither buffer is kept.
 *
 *   tiktoken   bytes of tiktoken.model (format and refusals: docs/tokenizer.md 1)
 *   config     bytes of tokenizer_config.json, of which only added_tokens_decoder is read:
 *              "<id>": {"content": spelling, "special": bool, ...}; slots that are not named there
 *              spell <|reserved_token_<id>|> and are special (docs/tokenizer.md 2)
 *
 * Errors: MALFORMED, with the byte offset in tiktoken.model, or in tokenizer_config.json where the
 * JSON itself is broken (what its values mean has no offset); the message names the file.
 * NO_MEMORY. *out_vocab is the caller's: k3_vocab_destroy. */
K3_MUST_CHECK enum k3_code k3_vocab_create(const uint8_t *tiktoken, size_t tiktoken_len,
                                           const uint8_t *config, size_t config_len,
                                           struct k3_vocab **out_vocab, struct k3_error *err);

/* NULL is fine. */
void k3_vocab_destroy(struct k3_vocab *vocab);

/* How many ordinary tokens; also the id of the first added token. */
uint32_t k3_vocab_rank_count(const struct k3_vocab *vocab);

/* How many ids there are: rank_count + 256. */
uint32_t k3_vocab_count(const struct k3_vocab *vocab);

/* Length of the longest token, ordinary or added. */
size_t k3_vocab_longest_bytes(const struct k3_vocab *vocab);

/* Bytes of a token (an added token's are its spelling). Asserts id < k3_vocab_count: ids from
 * outside are compared with it first. The view lives as long as the vocabulary. */
struct k3_token_view k3_vocab_token(const struct k3_vocab *vocab, uint32_t id);

/* Rank of exactly these bytes among the ordinary tokens; false when they are no token. Never finds
 * an added token: spellings of markers inside text are text. O(len). */
bool k3_vocab_find_rank(const struct k3_vocab *vocab, const uint8_t *bytes, size_t len,
                        uint32_t *out_rank);

/* Id of the added token spelled so, e.g. "[EOS]" or "<|end_of_msg|>"; false when there is none.
 * Walks the 256 slots: meant for setting up, not for loops over text. */
bool k3_vocab_find_added(const struct k3_vocab *vocab, const char *spelling, uint32_t *out_id);

/* Is this an added token that printing with "skip special" leaves out? Ordinary tokens never are;
 * of the released markers <|open|>, <|close|> and <|sep|> are not. Asserts id < k3_vocab_count. */
bool k3_vocab_is_special(const struct k3_vocab *vocab, uint32_t id);

#endif
