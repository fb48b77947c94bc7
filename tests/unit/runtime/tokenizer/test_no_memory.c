/* SPDX-License-Identifier: Apache-2.0 */
/* The n-th allocation fails, for every n: an error comes back, nothing leaks (AddressSanitizer says
 * so), outputs are as before. */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/tokenizer/detokenizer.h"
#include "runtime/tokenizer/tokenizer.h"
#include "tests/support/failing.h"
#include "tests/support/suite_main.h"
#include "tests/unit/format/vocab/vocab_fixture.h"

static const char *const tokens[] = {"ab", "abc", NULL};

/* `attempt` returns K3_OK, or fails and has checked that nothing else happened. At least
 * failures_min allocations must have been there to fail. */
static void fail_each_allocation(enum k3_code (*attempt)(struct k3_error *err),
                                 uint64_t failures_min, enum k3_failing_mode mode)
{
    for (uint64_t nth = 1;; nth++) {
        struct k3_error err = {0};
        k3_failing_arm(K3_FAILING_ALLOC, mode, nth);
        const enum k3_code code = attempt(&err);
        if (!k3_failing_disarm()) {
            ck_assert_int_eq(code, K3_OK);
            ck_assert_uint_gt(nth, failures_min);
            return;
        }
        ck_assert_msg(code == K3_ERR_NO_MEMORY && err.code == code, "allocation %llu: %s",
                      (unsigned long long)nth, err.message);
    }
}

static const enum k3_failing_mode modes[] = {K3_FAILING_ONCE, K3_FAILING_FROM};

static struct k3_tiktoken_text text;

static enum k3_code create_vocab(struct k3_error *err)
{
    struct k3_vocab *vocab = NULL;
    const char *config = K3_FIXTURE_EMPTY_CONFIG;
    const enum k3_code code = k3_vocab_create((const uint8_t *)text.bytes, text.len,
                                              (const uint8_t *)config, strlen(config), &vocab, err);
    const bool is_consistent = (code == K3_OK) == (vocab != NULL);
    k3_vocab_destroy(vocab);
    return is_consistent ? code : K3_ERR_USAGE;
}

START_TEST(vocab)
{
    k3_fixture_append_bytes(&text);
    fail_each_allocation(create_vocab, 5, modes[_i]);
    free(text.bytes);
}
END_TEST

static struct k3_vocab *shared_vocab;
static struct k3_tokenizer *shared_tokenizer;

static enum k3_code create_tokenizer(struct k3_error *err)
{
    struct k3_tokenizer *tokenizer = NULL;
    const enum k3_code code =
        k3_tokenizer_create(shared_vocab, K3_TEXT_CAPS_RELEASED, &tokenizer, err);
    k3_tokenizer_destroy(tokenizer);
    return code;
}

static enum k3_code create_detokenizer(struct k3_error *err)
{
    struct k3_detokenizer *detokenizer = NULL;
    const struct k3_detokenizer_options options = {.mode = K3_DETOKENIZE_TEXT};
    const enum k3_code code = k3_detokenizer_create(shared_vocab, options, &detokenizer, err);
    k3_detokenizer_destroy(detokenizer);
    return code;
}

/* Long enough for the ids and the scratch to grow several times. */
static enum k3_code encode(struct k3_error *err)
{
    static char long_text[8000];
    for (size_t i = 0; i < sizeof long_text; i++) {
        long_text[i] = i % (i / 100 + 2) == 0 ? ' ' : 'x';
    }
    memcpy(long_text + 4000, "<|reserved_token_300|>", 22);
    struct k3_token_ids ids = {0};
    const enum k3_code code = k3_tokenizer_encode(shared_tokenizer, long_text, sizeof long_text,
                                                  K3_ENCODE_MARKERS, &ids, err);
    const bool is_consistent = (code == K3_OK) == (ids.count > 0);
    k3_token_ids_done(&ids);
    return is_consistent ? code : K3_ERR_USAGE;
}

START_TEST(tokenizer)
{
    struct k3_error err = {0};
    shared_vocab = k3_fixture_vocab(tokens, K3_FIXTURE_EMPTY_CONFIG);
    fail_each_allocation(create_tokenizer, 1, modes[_i]);
    fail_each_allocation(create_detokenizer, 3, modes[_i]);
    ck_assert_ok(k3_tokenizer_create(shared_vocab, K3_TEXT_CAPS_RELEASED, &shared_tokenizer, &err));
    fail_each_allocation(encode, 6, modes[_i]);
    k3_tokenizer_destroy(shared_tokenizer);
    k3_vocab_destroy(shared_vocab);
}
END_TEST

Suite *k3_suite(void)
{
    Suite *suite = suite_create("no_memory");
    TCase *each = tcase_create("fail everything once");
    tcase_add_loop_test(each, vocab, 0, 2);
    tcase_add_loop_test(each, tokenizer, 0, 2);
    suite_add_tcase(suite, each);
    return suite;
}
