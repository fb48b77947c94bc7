/* SPDX-License-Identifier: Apache-2.0 */
/* encode_lines TIKTOKEN_MODEL TOKENIZER_CONFIG < requests > ids
 *
 * A request is a line of JSON, {"text": string, "markers": bool}, perhaps with "run_chars": integer
 * in place of the released cap; the answer is a line with the list of ids. Lets scripts in other
 * languages compare their tokenizers with ours. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/base/file.h"
#include "runtime/tokenizer/tokenizer.h"

static int fail(const char *what)
{
    fprintf(stderr, "encode_lines: %s\n", what);
    return EXIT_FAILURE;
}

static enum k3_code load_vocab(const char *model_path, const char *config_path,
                               struct k3_vocab **out_vocab, struct k3_error *err)
{
    uint8_t *model = NULL;
    uint8_t *config = NULL;
    size_t model_len = 0;
    size_t config_len = 0;
    enum k3_code code =
        k3_file_read_all(model_path, K3_VOCAB_TIKTOKEN_BYTES_MAX, &model, &model_len, err);
    if (code == K3_OK) {
        code = k3_file_read_all(config_path, K3_VOCAB_CONFIG_BYTES_MAX, &config, &config_len, err);
    }
    if (code == K3_OK) {
        code = k3_vocab_create(model, model_len, config, config_len, out_vocab, err);
    }
    free(model);
    free(config);
    return code;
}

static enum k3_code encode(const struct k3_vocab *vocab, const json_t *request,
                           struct k3_token_ids *ids, struct k3_error *err)
{
    struct k3_text_caps caps = K3_TEXT_CAPS_RELEASED;
    const json_t *run_chars = json_object_get(request, "run_chars");
    if (json_is_integer(run_chars)) {
        caps.run_chars = (size_t)json_integer_value(run_chars);
    }
    struct k3_tokenizer *tokenizer = NULL;
    enum k3_code code = k3_tokenizer_create(vocab, caps, &tokenizer, err);
    if (code == K3_OK) {
        const json_t *text = json_object_get(request, "text");
        const bool markers = json_is_true(json_object_get(request, "markers"));
        code = k3_tokenizer_encode(tokenizer, json_string_value(text), json_string_length(text),
                                   markers ? K3_ENCODE_MARKERS : K3_ENCODE_PLAIN, ids, err);
    }
    k3_tokenizer_destroy(tokenizer);
    return code;
}

static void print_ids(const struct k3_token_ids *ids)
{
    putchar('[');
    for (size_t i = 0; i < ids->count; i++) {
        printf(i ? ",%lu" : "%lu", (unsigned long)ids->ids[i]);
    }
    puts("]");
}

/* 0, or an exit status. */
static int answer(const struct k3_vocab *vocab, const char *line, size_t len)
{
    json_error_t why;
    json_t *request = json_loadb(line, len, JSON_ALLOW_NUL, &why);
    if (!request) {
        return fail(why.text);
    }
    struct k3_error err = {0};
    struct k3_token_ids ids = {0};
    const enum k3_code code = encode(vocab, request, &ids, &err);
    json_decref(request);
    if (code == K3_OK) {
        print_ids(&ids);
    }
    k3_token_ids_done(&ids);
    return code == K3_OK ? 0 : fail(err.message);
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        return fail("usage: encode_lines TIKTOKEN_MODEL TOKENIZER_CONFIG");
    }
    struct k3_error err = {0};
    struct k3_vocab *vocab = NULL;
    if (load_vocab(argv[1], argv[2], &vocab, &err) != K3_OK) {
        return fail(err.message);
    }
    char *line = NULL;
    size_t capacity = 0;
    int status = 0;
    for (ssize_t len = 0; status == 0 && (len = getline(&line, &capacity, stdin)) >= 0;) {
        status = answer(vocab, line, (size_t)len);
    }
    free(line);
    k3_vocab_destroy(vocab);
    return status;
}
