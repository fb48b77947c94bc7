/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/tokenizer/tokenizer.h"

#include <stdlib.h>

#include "format/base/assert.h"
#include "runtime/tokenizer/bpe.h"
#include "runtime/tokenizer/marker_set.h"
#include "runtime/tokenizer/pretokenize.h"
#include "runtime/tokenizer/text_chunk.h"

struct k3_tokenizer {
    const struct k3_vocab *vocab;
    struct k3_text_caps caps;
    struct k3_marker_set markers;
};

/* One call of k3_tokenizer_encode. */
struct encoding {
    const struct k3_tokenizer *tokenizer;
    enum k3_encode_mode mode;
    struct k3_text_chunk chunk;
    struct k3_bpe_scratch scratch;
    struct k3_token_ids *ids;
    struct k3_error *err;
};

enum k3_code k3_tokenizer_create(const struct k3_vocab *vocab, struct k3_text_caps caps,
                                 struct k3_tokenizer **out_tokenizer, struct k3_error *err)
{
    k3_assert(caps.chunk_chars >= 1 && caps.run_chars >= 1);
    struct k3_tokenizer *tokenizer = calloc(1, sizeof *tokenizer);
    if (!tokenizer) {
        return k3_fail_no_memory(err, "tokenizer");
    }
    tokenizer->vocab = vocab;
    tokenizer->caps = caps;
    k3_marker_set_init(&tokenizer->markers, vocab);
    *out_tokenizer = tokenizer;
    return K3_OK;
}

void k3_tokenizer_destroy(struct k3_tokenizer *tokenizer)
{
    free(tokenizer);
}

/* Characters [from, end) without markers: pieces, each to ids. */
static enum k3_code encode_plain(struct encoding *encoding, size_t from, size_t end)
{
    const struct k3_text_chunk *chunk = &encoding->chunk;
    while (from < end) {
        const size_t piece_end = k3_pretokenize_next(chunk, from, end);
        const enum k3_code code = k3_bpe_encode(
            encoding->tokenizer->vocab, &encoding->scratch, chunk->bytes + chunk->starts[from],
            chunk->starts[piece_end] - chunk->starts[from], encoding->ids, encoding->err);
        if (code != K3_OK) {
            return code;
        }
        from = piece_end;
    }
    return K3_OK;
}

static const struct k3_marker *marker_at(const struct encoding *encoding, size_t at, size_t end)
{
    const struct k3_text_chunk *chunk = &encoding->chunk;
    return k3_marker_set_match(&encoding->tokenizer->markers, chunk->bytes + chunk->starts[at],
                               chunk->starts[end] - chunk->starts[at]);
}

/* Characters [from, end): markers to their ids, the text before each as if it stood alone. */
static enum k3_code encode_with_markers(struct encoding *encoding, size_t from, size_t end)
{
    const uint32_t *starts = encoding->chunk.starts;
    for (size_t at = from; at < end;) {
        const struct k3_marker *marker = marker_at(encoding, at, end);
        if (!marker) {
            at++;
            continue;
        }
        enum k3_code code = encode_plain(encoding, from, at);
        if (code == K3_OK) {
            code = k3_token_ids_append(encoding->ids, marker->id, encoding->err);
        }
        if (code != K3_OK) {
            return code;
        }
        /* Spelling and text are both UTF-8, so the spelling ends where a character does. */
        const size_t marker_end = starts[at] + marker->spelling.len;
        while (starts[at] < marker_end) {
            at++;
        }
        from = at;
    }
    return encode_plain(encoding, from, end);
}

static enum k3_code encode_chunk(struct encoding *encoding)
{
    enum k3_code code = K3_OK;
    size_t from = 0;
    while (code == K3_OK && from < encoding->chunk.count) {
        const size_t end =
            k3_text_chunk_run_end(&encoding->chunk, from, encoding->tokenizer->caps.run_chars);
        code = encoding->mode == K3_ENCODE_MARKERS ? encode_with_markers(encoding, from, end)
                                                   : encode_plain(encoding, from, end);
        from = end;
    }
    return code;
}

static enum k3_code encode_text(struct encoding *encoding, const uint8_t *text, size_t len)
{
    const size_t cap = encoding->tokenizer->caps.chunk_chars;
    enum k3_code code = k3_text_chunk_init(&encoding->chunk, len < cap ? len : cap, encoding->err);
    while (code == K3_OK && len > 0) {
        const size_t taken = k3_text_chunk_fill(&encoding->chunk, text, len);
        text += taken;
        len -= taken;
        code = encode_chunk(encoding);
    }
    k3_text_chunk_done(&encoding->chunk);
    k3_bpe_scratch_done(&encoding->scratch);
    return code;
}

enum k3_code k3_tokenizer_encode(const struct k3_tokenizer *tokenizer, const void *text,
                                 size_t text_len, enum k3_encode_mode mode,
                                 struct k3_token_ids *ids, struct k3_error *err)
{
    if (text_len == 0) {
        return K3_OK;
    }
    struct encoding encoding = {.tokenizer = tokenizer, .mode = mode, .ids = ids, .err = err};
    const size_t count_before = ids->count;
    const enum k3_code code = encode_text(&encoding, text, text_len);
    if (code != K3_OK) {
        ids->count = count_before;
    }
    return code;
}
