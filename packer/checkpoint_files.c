/* SPDX-License-Identifier: Apache-2.0 */
#include "packer/checkpoint_files.h"

#include <stdlib.h>

#include "format/base/file.h"
#include "format/pack/layout.h"
#include "format/safetensors/config_json.h"
#include "format/vocab/vocab.h"

#define SMALL_FILE_MAX ((size_t)1 << 20)

static size_t size_max(enum k3_bundled_file file)
{
    return file == K3_BUNDLED_TIKTOKEN ? K3_VOCAB_TIKTOKEN_BYTES_MAX : SMALL_FILE_MAX;
}

static enum k3_code read_one(const char *checkpoint, enum k3_bundled_file file,
                             struct k3_file_bundle *files, struct k3_problems *problems,
                             struct k3_error *err)
{
    char *path = k3_path_join(checkpoint, k3_bundled_name(file));
    if (!path) {
        return k3_fail_no_memory(err, checkpoint);
    }
    struct k3_error why = {0};
    enum k3_code code = k3_file_read_all(path, size_max(file), &files->files[file].bytes,
                                         &files->files[file].len, &why);
    free(path);
    if (code == K3_ERR_NO_MEMORY) {
        return k3_fail_no_memory(err, k3_bundled_name(file));
    }
    const bool is_absent = code == K3_ERR_NO_INPUT && why.os_errno != 0;
    if (code != K3_OK && !(is_absent && !k3_bundled_is_required(file))) {
        k3_problems_add_error(problems, &why);
    }
    return K3_OK;
}

static void check_size(const struct k3_file_bundle *files, struct k3_problems *problems)
{
    uint64_t bytes = 4;
    for (unsigned i = 0; i < K3_BUNDLED_COUNT; i++) {
        bytes += files->files[i].len + 64;
    }
    if (bytes > K3_SECTION_RAW_MAX) {
        k3_problems_add(problems, K3_ERR_MALFORMED,
                        "config and tokenizer files have %zu bytes together, more than a pack "
                        "carries (64 MiB)",
                        (size_t)bytes);
    }
}

static enum k3_code check_vocab(const struct k3_file_bundle *files,
                                const struct k3_model_spec *spec, struct k3_problems *problems,
                                struct k3_error *err)
{
    struct k3_vocab *vocab = NULL;
    struct k3_error why = {0};
    const enum k3_code code = k3_vocab_create(
        files->files[K3_BUNDLED_TIKTOKEN].bytes, files->files[K3_BUNDLED_TIKTOKEN].len,
        files->files[K3_BUNDLED_TOKENIZER_CONFIG].bytes,
        files->files[K3_BUNDLED_TOKENIZER_CONFIG].len, &vocab, &why);
    if (code == K3_ERR_NO_MEMORY) {
        return k3_fail_no_memory(err, "vocabulary");
    }
    if (code != K3_OK) {
        k3_problems_add_error(problems, &why);
        return K3_OK;
    }
    if (spec && k3_vocab_count(vocab) != spec->vocab) {
        k3_problems_add(problems, K3_ERR_MALFORMED,
                        "'tiktoken.model' and its added tokens make %u ids, 'config.json' says "
                        "vocab_size %u: these files belong to different models",
                        k3_vocab_count(vocab), spec->vocab);
    }
    k3_vocab_destroy(vocab);
    return K3_OK;
}

enum k3_code k3_checkpoint_files_read(const char *checkpoint, struct k3_file_bundle *out_files,
                                      struct k3_model_spec *out_spec, bool *out_spec_is_valid,
                                      struct k3_problems *problems, struct k3_error *err)
{
    *out_files = (struct k3_file_bundle){0};
    *out_spec_is_valid = false;
    enum k3_code code = K3_OK;
    for (unsigned i = 0; code == K3_OK && i < K3_BUNDLED_COUNT; i++) {
        code = read_one(checkpoint, (enum k3_bundled_file)i, out_files, problems, err);
    }
    if (code != K3_OK) {
        return code;
    }
    check_size(out_files, problems);
    if (out_files->files[K3_BUNDLED_CONFIG].bytes) {
        code = k3_config_parse(out_files->files[K3_BUNDLED_CONFIG].bytes,
                               out_files->files[K3_BUNDLED_CONFIG].len, out_spec, problems, err);
        *out_spec_is_valid = code == K3_OK;
        if (code == K3_ERR_NO_MEMORY) {
            return code;
        }
    }
    if (out_files->files[K3_BUNDLED_TIKTOKEN].bytes &&
        out_files->files[K3_BUNDLED_TOKENIZER_CONFIG].bytes) {
        return check_vocab(out_files, *out_spec_is_valid ? out_spec : NULL, problems, err);
    }
    return K3_OK;
}
