/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/tokenizer/bpe.h"

#include <stdlib.h>
#include <string.h>

#include "tests/support/suite_main.h"
#include "tests/unit/format/vocab/vocab_fixture.h"

/* Ranks from 256 on. Single bytes: 'a' is 64, 'b' 65, ... */
static const char *const table_tokens[] = {"bc", "ab", "cd", "abc", "aa", "aaaa", "bcd", NULL};
enum { A = 64, B, C, D, BC = 256, AB, CD, ABC, AA, AAAA, BCD };

static const struct {
    const char *piece;
    uint32_t ids[6];
    size_t count;
    const char *why;
} cases[] = {
    {"a", {A}, 1, "one byte"},
    {"ac", {A, C}, 2, "no pair"},
    {"abc", {ABC}, 1, "the whole piece is a token"},
    {"abcd", {ABC, D}, 2, "lowest rank first: bc, then its pairs by rank: abc 259 before bcd 262"},
    {"xabc", {87, ABC}, 2, "merged up"},
    {"aab", {A, AB}, 2, "ab 257 before aa 260"},
    {"aaa", {AA, A}, 2, "leftmost of equals"},
    {"aaaa", {AAAA}, 1, "whole"},
    {"aaaaa", {AAAA, A}, 2, "leftmost twice, then their pair"},
    {"aaaaaa", {AAAA, AA}, 2, "three pairs, the first two joined"},
    {"dcdc", {D, CD, C}, 3, "in the middle"},
    {"abab", {AB, AB}, 2, "twice the same"},
};

static void encode(const struct k3_vocab *vocab, const uint8_t *piece, size_t len,
                   struct k3_token_ids *ids)
{
    struct k3_bpe_scratch scratch = {0};
    struct k3_error err = {0};
    ck_assert_ok(k3_bpe_encode(vocab, &scratch, piece, len, ids, &err));
    k3_bpe_scratch_done(&scratch);
}

START_TEST(table)
{
    struct k3_vocab *vocab = k3_fixture_vocab(table_tokens, K3_FIXTURE_EMPTY_CONFIG);
    struct k3_token_ids ids = {0};
    encode(vocab, (const uint8_t *)cases[_i].piece, strlen(cases[_i].piece), &ids);
    ck_assert_msg(ids.count == cases[_i].count, "%s: %zu ids", cases[_i].why, ids.count);
    for (size_t i = 0; i < ids.count; i++) {
        ck_assert_msg(ids.ids[i] == cases[_i].ids[i], "%s: id %zu is %u", cases[_i].why, i,
                      ids.ids[i]);
    }
    k3_token_ids_done(&ids);
    k3_vocab_destroy(vocab);
}
END_TEST

static uint64_t random_state;

static uint32_t random_below(uint32_t limit)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((random_state >> 33) % limit);
}

/* Merges as the definition says it, looking at every pair every time. */
static size_t slow_encode(const struct k3_vocab *vocab, const uint8_t *piece, size_t len,
                          uint32_t *out_ids)
{
    size_t ends[64];
    size_t count = len;
    for (size_t i = 0; i < len; i++) {
        ends[i] = i + 1;
    }
    for (;;) {
        uint32_t best_rank = UINT32_MAX;
        size_t best = 0;
        for (size_t i = 0; i + 1 < count; i++) {
            const size_t start = i ? ends[i - 1] : 0;
            uint32_t rank = 0;
            if (k3_vocab_find_rank(vocab, piece + start, ends[i + 1] - start, &rank) &&
                rank < best_rank) {
                best_rank = rank;
                best = i;
            }
        }
        if (best_rank == UINT32_MAX) {
            break;
        }
        memmove(&ends[best], &ends[best + 1], (count - best - 1) * sizeof ends[0]);
        count--;
    }
    for (size_t i = 0; i < count; i++) {
        const size_t start = i ? ends[i - 1] : 0;
        ck_assert(k3_vocab_find_rank(vocab, piece + start, ends[i] - start, &out_ids[i]));
    }
    return count;
}

/* A vocabulary of random words over few letters, in random order, so that merges compete. */
static struct k3_vocab *random_vocab(void)
{
    static char words[40][8];
    const char *tokens[41];
    size_t count = 0;
    while (count < 40) {
        char word[8] = "";
        const size_t len = 2 + random_below(5);
        for (size_t i = 0; i < len; i++) {
            word[i] = (char)('a' + random_below(3));
        }
        bool is_new = true;
        for (size_t i = 0; i < count; i++) {
            is_new = is_new && strcmp(words[i], word) != 0;
        }
        if (is_new) {
            memcpy(words[count], word, sizeof word);
            tokens[count] = words[count];
            count++;
        }
    }
    tokens[count] = NULL;
    return k3_fixture_vocab(tokens, K3_FIXTURE_EMPTY_CONFIG);
}

START_TEST(agrees_with_the_definition)
{
    random_state = (uint64_t)_i + 1;
    struct k3_vocab *vocab = random_vocab();
    for (int round = 0; round < 300; round++) {
        uint8_t piece[48];
        const size_t len = 1 + random_below(sizeof piece);
        for (size_t i = 0; i < len; i++) {
            piece[i] = (uint8_t)('a' + random_below(3));
        }
        uint32_t rank = 0;
        if (k3_vocab_find_rank(vocab, piece, len, &rank)) {
            continue; /* whole pieces are a rule of their own */
        }
        uint32_t expected[48];
        const size_t expected_count = slow_encode(vocab, piece, len, expected);
        struct k3_token_ids ids = {0};
        encode(vocab, piece, len, &ids);
        ck_assert_uint_eq(ids.count, expected_count);
        ck_assert_mem_eq(ids.ids, expected, expected_count * sizeof expected[0]);
        k3_token_ids_done(&ids);
    }
    k3_vocab_destroy(vocab);
}
END_TEST

START_TEST(scratch_is_used_again)
{
    struct k3_vocab *vocab = k3_fixture_vocab(table_tokens, K3_FIXTURE_EMPTY_CONFIG);
    struct k3_bpe_scratch scratch = {0};
    struct k3_token_ids ids = {0};
    struct k3_error err = {0};
    uint8_t piece[5000];
    memset(piece, 'a', sizeof piece);
    static const size_t lens[] = {5, 700, 6, 5000, 5};
    for (size_t i = 0; i < sizeof lens / sizeof lens[0]; i++) {
        ids.count = 0;
        ck_assert_ok(k3_bpe_encode(vocab, &scratch, piece, lens[i], &ids, &err));
        ck_assert_uint_eq(ids.count, lens[i] / 4 + (lens[i] % 4 + 1) / 2);
    }
    k3_token_ids_done(&ids);
    k3_bpe_scratch_done(&scratch);
    k3_bpe_scratch_done(&scratch);
    k3_vocab_destroy(vocab);
}
END_TEST

/* Each of 2^20 bytes is looked at while joining level by level: quadratic would be 10^12 steps. */
START_TEST(long_piece)
{
    static char names[11][1025];
    const char *tokens[11];
    for (size_t i = 0; i < 10; i++) {
        memset(names[i], 'a', (size_t)2 << i);
        tokens[i] = names[i];
    }
    tokens[10] = NULL;
    struct k3_vocab *vocab = k3_fixture_vocab(tokens, K3_FIXTURE_EMPTY_CONFIG);
    const size_t len = (size_t)1 << 20;
    uint8_t *piece = malloc(len);
    memset(piece, 'a', len);
    struct k3_token_ids ids = {0};
    encode(vocab, piece, len, &ids);
    ck_assert_uint_eq(ids.count, len / 1024);
    k3_token_ids_done(&ids);
    free(piece);
    k3_vocab_destroy(vocab);
}
END_TEST

Suite *k3_suite(void)
{
    Suite *suite = suite_create("bpe");
    TCase *merging = tcase_create("merge");
    tcase_add_loop_test(merging, table, 0, sizeof cases / sizeof cases[0]);
    tcase_add_loop_test(merging, agrees_with_the_definition, 0, 20);
    tcase_add_test(merging, scratch_is_used_again);
    suite_add_tcase(suite, merging);
    TCase *speed = tcase_create("long piece");
    tcase_set_timeout(speed, 20);
    tcase_add_test(speed, long_piece);
    suite_add_tcase(suite, speed);
    return suite;
}
