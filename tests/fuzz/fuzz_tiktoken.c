/* SPDX-License-Identifier: Apache-2.0 */
/* Input: tiktoken.model, and after the first NUL, if there is one, tokenizer_config.json. What is
 * accepted must give the same file when it is written out again. */
#include <stdlib.h>
#include <string.h>

#include "format/base/assert.h"
#include "tests/fuzz/fuzz.h"
#include "tests/unit/format/vocab/vocab_fixture.h"

static void check_serialises_to_itself(const struct k3_vocab *vocab, const uint8_t *model,
                                       size_t model_len)
{
    struct k3_tiktoken_text text = k3_fixture_serialise(vocab);
    const bool lacks_last_lf = model_len + 1 == text.len;
    k3_assert(model_len == text.len || lacks_last_lf);
    k3_assert(memcmp(text.bytes, model, model_len) == 0);
    free(text.bytes);
}

static void check_added_tokens(const struct k3_vocab *vocab)
{
    k3_assert(k3_vocab_count(vocab) == k3_vocab_rank_count(vocab) + K3_VOCAB_ADDED_COUNT);
    for (uint32_t id = k3_vocab_rank_count(vocab); id < k3_vocab_count(vocab); id++) {
        const struct k3_token_view token = k3_vocab_token(vocab, id);
        char spelling[K3_VOCAB_SPELLING_BYTES_MAX + 1] = {0};
        k3_assert(token.len > 0 && token.len < sizeof spelling);
        memcpy(spelling, token.bytes, token.len);
        uint32_t found = 0;
        k3_assert(k3_vocab_find_added(vocab, spelling, &found) && found == id);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    static const char empty_config[] = K3_FIXTURE_EMPTY_CONFIG;
    const uint8_t *config = (const uint8_t *)empty_config;
    size_t config_len = strlen(empty_config);
    size_t model_len = len;
    const uint8_t *nul = len ? memchr(bytes, 0, len) : NULL;
    if (nul) {
        model_len = (size_t)(nul - bytes);
        config = nul + 1;
        config_len = len - model_len - 1;
    }
    struct k3_vocab *vocab = NULL;
    if (k3_vocab_create(bytes, model_len, config, config_len, &vocab, NULL) == K3_OK) {
        check_serialises_to_itself(vocab, bytes, model_len);
        check_added_tokens(vocab);
        k3_vocab_destroy(vocab);
    }
    return 0;
}
