/* SPDX-License-Identifier: Apache-2.0 */
/* Texts with tiktoken's ids (README.md beside this file): ids must be equal, and the ids' bytes the
 * text. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/base/file.h"
#include "runtime/tokenizer/tokenizer.h"
#include "tests/support/suite_main.h"

#define GOLDEN K3_TESTS_DIR "/golden/tokenizer_small"

static struct k3_vocab *vocab;
static struct k3_tokenizer *tokenizer;

static void setup(void)
{
    struct k3_error err = {0};
    uint8_t *model = NULL;
    uint8_t *config = NULL;
    size_t model_len = 0;
    size_t config_len = 0;
    ck_assert_ok(k3_file_read_all(GOLDEN ".model", 1u << 20, &model, &model_len, &err));
    ck_assert_ok(k3_file_read_all(GOLDEN "_config.json", 1u << 20, &config, &config_len, &err));
    ck_assert_ok(k3_vocab_create(model, model_len, config, config_len, &vocab, &err));
    ck_assert_ok(k3_tokenizer_create(vocab, K3_TEXT_CAPS_RELEASED, &tokenizer, &err));
    free(model);
    free(config);
}

static void teardown(void)
{
    k3_tokenizer_destroy(tokenizer);
    k3_vocab_destroy(vocab);
}

static void check_ids(const json_t *expected, const struct k3_token_ids *ids, const char *line)
{
    ck_assert_msg(json_array_size(expected) == ids->count, "%zu ids: %s", ids->count, line);
    for (size_t i = 0; i < ids->count; i++) {
        const json_int_t id = json_integer_value(json_array_get(expected, i));
        ck_assert_msg(id == (json_int_t)ids->ids[i], "id %zu is %u: %s", i, ids->ids[i], line);
    }
}

static void check_bytes(const char *text, size_t len, const struct k3_token_ids *ids)
{
    size_t at = 0;
    for (size_t i = 0; i < ids->count; i++) {
        const struct k3_token_view token = k3_vocab_token(vocab, ids->ids[i]);
        ck_assert_uint_le(token.len, len - at);
        ck_assert_mem_eq(token.bytes, text + at, token.len);
        at += token.len;
    }
    ck_assert_uint_eq(at, len);
}

static void check_line(const char *line, size_t line_len)
{
    json_t *answer = json_loadb(line, line_len, JSON_ALLOW_NUL, NULL);
    ck_assert_ptr_nonnull(answer);
    const json_t *text = json_object_get(answer, "text");
    const bool markers = json_is_true(json_object_get(answer, "markers"));
    struct k3_token_ids ids = {0};
    struct k3_error err = {0};
    ck_assert_ok(k3_tokenizer_encode(tokenizer, json_string_value(text), json_string_length(text),
                                     markers ? K3_ENCODE_MARKERS : K3_ENCODE_PLAIN, &ids, &err));
    check_ids(json_object_get(answer, "ids"), &ids, line);
    check_bytes(json_string_value(text), json_string_length(text), &ids);
    k3_token_ids_done(&ids);
    json_decref(answer);
}

START_TEST(golden)
{
    FILE *file = fopen(GOLDEN ".jsonl", "r");
    ck_assert_ptr_nonnull(file);
    char *line = NULL;
    size_t capacity = 0;
    size_t count = 0;
    for (ssize_t len = 0; (len = getline(&line, &capacity, file)) >= 0; count++) {
        check_line(line, (size_t)len);
    }
    ck_assert_uint_gt(count, 300);
    free(line);
    ck_assert_int_eq(fclose(file), 0);
}
END_TEST

Suite *k3_suite(void)
{
    Suite *suite = suite_create("tokenizer_golden");
    TCase *tiktoken = tcase_create("tiktoken's ids");
    tcase_add_checked_fixture(tiktoken, setup, teardown);
    tcase_add_test(tiktoken, golden);
    suite_add_tcase(suite, tiktoken);
    return suite;
}
