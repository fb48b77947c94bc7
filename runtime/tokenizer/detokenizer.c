/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/tokenizer/detokenizer.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/tokenizer/utf8.h"

#define HELD_BYTES_MAX (K3_UTF8_CHAR_BYTES_MAX - 1)

/* U+FFFD has 3 bytes, and an invalid byte may become one. */
#define REPLACEMENT_BYTES 3

struct k3_detokenizer {
    const struct k3_vocab *vocab;
    struct k3_detokenizer_options options;
    size_t pending_len; /* bytes at the start of `pending` that wait for the rest of a character */
    uint8_t *pending;   /* those, and a token's bytes behind them                                */
    uint8_t *output;
};

enum k3_code k3_detokenizer_create(const struct k3_vocab *vocab,
                                   struct k3_detokenizer_options options,
                                   struct k3_detokenizer **out_detokenizer, struct k3_error *err)
{
    struct k3_detokenizer *detokenizer = calloc(1, sizeof *detokenizer);
    if (!detokenizer) {
        return k3_fail_no_memory(err, "detokenizer");
    }
    const size_t pending_max = HELD_BYTES_MAX + k3_vocab_longest_bytes(vocab);
    detokenizer->vocab = vocab;
    detokenizer->options = options;
    detokenizer->pending = malloc(pending_max);
    detokenizer->output = malloc(pending_max * REPLACEMENT_BYTES);
    if (!detokenizer->pending || !detokenizer->output) {
        k3_detokenizer_destroy(detokenizer);
        return k3_fail_no_memory(err, "detokenizer");
    }
    *out_detokenizer = detokenizer;
    return K3_OK;
}

void k3_detokenizer_destroy(struct k3_detokenizer *detokenizer)
{
    if (detokenizer) {
        free(detokenizer->pending);
        free(detokenizer->output);
        free(detokenizer);
    }
}

/* Moves all of pending[0, len) that is certain to the output; returns how many bytes that became.
 */
static size_t release_certain(struct k3_detokenizer *detokenizer, size_t len)
{
    size_t at = 0;
    size_t output_len = 0;
    while (at < len) {
        const struct k3_utf8_step step = k3_utf8_decode(detokenizer->pending + at, len - at);
        if (step.kind == K3_UTF8_INCOMPLETE) {
            break;
        }
        output_len += k3_utf8_encode(step.code_point, detokenizer->output + output_len);
        at += step.len;
    }
    detokenizer->pending_len = len - at;
    memmove(detokenizer->pending, detokenizer->pending + at, len - at);
    return output_len;
}

enum k3_code k3_detokenizer_feed(struct k3_detokenizer *detokenizer, uint32_t id,
                                 const uint8_t **out_bytes, size_t *out_len, struct k3_error *err)
{
    const struct k3_vocab *vocab = detokenizer->vocab;
    if (id >= k3_vocab_count(vocab)) {
        return k3_fail(err, K3_ERR_USAGE, K3_ERROR_NO_OFFSET,
                       "token id %lu is not in the vocabulary of %lu", (unsigned long)id,
                       (unsigned long)k3_vocab_count(vocab));
    }
    *out_bytes = detokenizer->output;
    *out_len = 0;
    if (detokenizer->options.skips_special && k3_vocab_is_special(vocab, id)) {
        return K3_OK;
    }
    const struct k3_token_view token = k3_vocab_token(vocab, id);
    if (detokenizer->options.mode == K3_DETOKENIZE_RAW) {
        *out_bytes = token.bytes;
        *out_len = token.len;
        return K3_OK;
    }
    memcpy(detokenizer->pending + detokenizer->pending_len, token.bytes, token.len);
    *out_len = release_certain(detokenizer, detokenizer->pending_len + token.len);
    return K3_OK;
}

void k3_detokenizer_finish(struct k3_detokenizer *detokenizer, const uint8_t **out_bytes,
                           size_t *out_len)
{
    *out_bytes = detokenizer->output;
    *out_len = 0;
    if (detokenizer->pending_len > 0) { /* one maximal subsequence, by the way it was held back */
        *out_len = k3_utf8_encode(K3_UTF8_REPLACEMENT, detokenizer->output);
        detokenizer->pending_len = 0;
    }
}
