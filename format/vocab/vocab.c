/* SPDX-License-Identifier: Apache-2.0 */
#include "format/vocab/vocab.h"

#include <stdlib.h>
#include <string.h>

#include "format/base/assert.h"
#include "format/vocab/added_tokens.h"
#include "format/vocab/rank_table.h"
#include "format/vocab/tiktoken.h"
#include "format/vocab/token_list.h"

struct k3_vocab {
    struct k3_token_list tokens; /* ranks, then added tokens */
    struct k3_rank_table ranks;
    uint32_t rank_count;
    bool is_special[K3_VOCAB_ADDED_COUNT];
};

static enum k3_code add_markers(struct k3_vocab *vocab, const uint8_t *config, size_t config_len,
                                struct k3_error *err)
{
    struct k3_added_token *slots = calloc(K3_VOCAB_ADDED_COUNT, sizeof *slots);
    if (!slots) {
        return k3_fail_no_memory(err, "added tokens");
    }
    const enum k3_code code =
        k3_added_tokens_parse(config, config_len, vocab->rank_count, slots, err);
    for (uint32_t i = 0; code == K3_OK && i < K3_VOCAB_ADDED_COUNT; i++) {
        const size_t len = strlen(slots[i].spelling);
        size_t room = 0;
        uint8_t *tail = k3_token_list_tail(&vocab->tokens, &room);
        k3_assert(len <= room);
        memcpy(tail, slots[i].spelling, len);
        k3_token_list_push(&vocab->tokens, len);
        vocab->is_special[i] = slots[i].is_special;
    }
    free(slots);
    return code;
}

enum k3_code k3_vocab_create(const uint8_t *tiktoken, size_t tiktoken_len, const uint8_t *config,
                             size_t config_len, struct k3_vocab **out_vocab, struct k3_error *err)
{
    struct k3_vocab *vocab = calloc(1, sizeof *vocab);
    if (!vocab) {
        return k3_fail_no_memory(err, "vocabulary");
    }
    const size_t spelling_bytes = (size_t)K3_VOCAB_ADDED_COUNT * K3_VOCAB_SPELLING_BYTES_MAX;
    enum k3_code code = k3_tiktoken_parse(tiktoken, tiktoken_len, K3_VOCAB_ADDED_COUNT,
                                          spelling_bytes, &vocab->tokens, &vocab->ranks, err);
    if (code == K3_OK) {
        vocab->rank_count = vocab->tokens.count;
        code = add_markers(vocab, config, config_len, err);
    }
    if (code != K3_OK) {
        k3_vocab_destroy(vocab);
        return code;
    }
    *out_vocab = vocab;
    return K3_OK;
}

void k3_vocab_destroy(struct k3_vocab *vocab)
{
    if (vocab) {
        k3_rank_table_done(&vocab->ranks);
        k3_token_list_done(&vocab->tokens);
        free(vocab);
    }
}

uint32_t k3_vocab_rank_count(const struct k3_vocab *vocab)
{
    return vocab->rank_count;
}

uint32_t k3_vocab_count(const struct k3_vocab *vocab)
{
    return vocab->tokens.count;
}

size_t k3_vocab_longest_bytes(const struct k3_vocab *vocab)
{
    return vocab->tokens.longest_bytes;
}

struct k3_token_view k3_vocab_token(const struct k3_vocab *vocab, uint32_t id)
{
    k3_assert(id < vocab->tokens.count);
    return k3_token_list_get(&vocab->tokens, id);
}

bool k3_vocab_find_rank(const struct k3_vocab *vocab, const uint8_t *bytes, size_t len,
                        uint32_t *out_rank)
{
    return k3_rank_table_find(&vocab->ranks, &vocab->tokens, bytes, len, out_rank);
}

bool k3_vocab_find_added(const struct k3_vocab *vocab, const char *spelling, uint32_t *out_id)
{
    const size_t len = strlen(spelling);
    for (uint32_t id = vocab->rank_count; id < vocab->tokens.count; id++) {
        const struct k3_token_view token = k3_token_list_get(&vocab->tokens, id);
        if (token.len == len && memcmp(token.bytes, spelling, len) == 0) {
            *out_id = id;
            return true;
        }
    }
    return false;
}

bool k3_vocab_is_special(const struct k3_vocab *vocab, uint32_t id)
{
    k3_assert(id < vocab->tokens.count);
    return id >= vocab->rank_count && vocab->is_special[id - vocab->rank_count];
}
