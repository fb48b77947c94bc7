/* SPDX-License-Identifier: Apache-2.0 */
/* Input: a byte that picks mode and caps, then text. Ids must spell the text again, with U+FFFD
 * where it was not UTF-8; in plain mode none is an added token. */
#include <stdlib.h>
#include <string.h>

#include "format/base/assert.h"
#include "runtime/tokenizer/detokenizer.h"
#include "runtime/tokenizer/tokenizer.h"
#include "tests/fuzz/fuzz.h"
#include "tests/unit/format/vocab/vocab_fixture.h"

static const char *const tokens[] = {"th",           "he",       "the",          " the", "in",
                                     "ing",          "'s",       "  ",           "\n\n", "aa",
                                     "aaaa",         "12",       "123",          "AB",   "\xe4\xb8",
                                     "\xe4\xb8\xad", "\xf0\x9f", "\xef\xbf\xbd", NULL};

static const struct k3_vocab *the_vocab(void)
{
    static struct k3_vocab *vocab;
    if (!vocab) {
        vocab = k3_fixture_vocab(tokens, "{\"added_tokens_decoder\":{"
                                         "\"274\":{\"content\":\"[EOS]\",\"special\":true},"
                                         "\"275\":{\"content\":\"<|\",\"special\":true},"
                                         "\"276\":{\"content\":\"<|open|>\",\"special\":false},"
                                         "\"277\":{\"content\":\" \\u4e2d\",\"special\":true}}}");
    }
    return vocab;
}

/* Bytes that grow; out of memory aborts. */
struct text {
    uint8_t *bytes;
    size_t len;
};

static void add(struct text *text, const uint8_t *bytes, size_t len)
{
    text->bytes = realloc(text->bytes, text->len + len + 1);
    k3_assert(text->bytes != NULL);
    memcpy(text->bytes + text->len, bytes, len);
    text->len += len;
}

static struct text decode(const struct k3_token_ids *ids, enum k3_detokenize_mode mode)
{
    struct k3_detokenizer *detokenizer = NULL;
    const struct k3_detokenizer_options options = {.mode = mode};
    k3_assert(k3_detokenizer_create(the_vocab(), options, &detokenizer, NULL) == K3_OK);
    struct text text = {0};
    const uint8_t *bytes = NULL;
    size_t len = 0;
    for (size_t i = 0; i < ids->count; i++) {
        k3_assert(k3_detokenizer_feed(detokenizer, ids->ids[i], &bytes, &len, NULL) == K3_OK);
        add(&text, bytes, len);
    }
    k3_detokenizer_finish(detokenizer, &bytes, &len);
    add(&text, bytes, len);
    k3_detokenizer_destroy(detokenizer);
    return text;
}

/* The text as the tokenizer must see it, by another way: each byte as a token of its own, streamed.
 */
static struct text as_utf8(const uint8_t *bytes, size_t len)
{
    struct k3_token_ids ids = {0};
    for (size_t i = 0; i < len; i++) {
        uint32_t id = 0;
        k3_assert(k3_vocab_find_rank(the_vocab(), bytes + i, 1, &id));
        k3_assert(k3_token_ids_append(&ids, id, NULL) == K3_OK);
    }
    const struct text text = decode(&ids, K3_DETOKENIZE_TEXT);
    k3_token_ids_done(&ids);
    return text;
}

static void encode(const uint8_t *bytes, size_t len, struct k3_text_caps caps,
                   enum k3_encode_mode mode, struct k3_token_ids *ids)
{
    struct k3_tokenizer *tokenizer = NULL;
    k3_assert(k3_tokenizer_create(the_vocab(), caps, &tokenizer, NULL) == K3_OK);
    k3_assert(k3_tokenizer_encode(tokenizer, bytes, len, mode, ids, NULL) == K3_OK);
    k3_tokenizer_destroy(tokenizer);
}

static void check_equal(struct text found, const struct text *expected)
{
    k3_assert(found.len == expected->len && memcmp(found.bytes, expected->bytes, found.len) == 0);
    free(found.bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    const uint8_t choice = len ? bytes[0] : 0;
    const size_t skip = len ? 1 : 0;
    const enum k3_encode_mode mode = choice & 1 ? K3_ENCODE_MARKERS : K3_ENCODE_PLAIN;
    struct k3_text_caps caps = K3_TEXT_CAPS_RELEASED;
    if (choice & 2) {
        caps = (struct k3_text_caps){1 + (choice >> 2 & 7), 1 + (choice >> 5)};
    }
    struct k3_token_ids ids = {0};
    encode(bytes + skip, len - skip, caps, mode, &ids);
    for (size_t i = 0; i < ids.count; i++) {
        k3_assert(mode == K3_ENCODE_MARKERS || ids.ids[i] < k3_vocab_rank_count(the_vocab()));
    }
    struct text expected = as_utf8(bytes + skip, len - skip);
    check_equal(decode(&ids, K3_DETOKENIZE_RAW), &expected);
    check_equal(decode(&ids, K3_DETOKENIZE_TEXT), &expected);
    free(expected.bytes);
    k3_token_ids_done(&ids);
    return 0;
}
