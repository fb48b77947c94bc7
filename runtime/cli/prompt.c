/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/cli/prompt.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/cli/signals.h"

#define PROMPT_BYTES_MAX ((size_t)1 << 30)

/* Everything that can be read from `fd`, in fresh memory: a file, a pipe, a terminal. */
static enum k3_code read_stream(int fd, const char *name, uint8_t **out_bytes, size_t *out_len,
                                struct k3_error *err)
{
    uint8_t *bytes = NULL;
    size_t len = 0, room = 0;
    for (;;) {
        if (len == room) {
            room = room == 0 ? 65536 : room * 2;
            uint8_t *larger = room > PROMPT_BYTES_MAX ? NULL : realloc(bytes, room);
            if (!larger) {
                free(bytes);
                return k3_fail_no_memory(err, name);
            }
            bytes = larger;
        }
        const ssize_t got = read(fd, bytes + len, room - len);
        if (got < 0 && errno == EINTR && k3_signals_stop_requested()) {
            free(bytes);
            return k3_fail(err, K3_ERR_INTERRUPTED, len, "stopped while reading the prompt");
        }
        if (got < 0 && errno != EINTR) {
            free(bytes);
            return k3_fail_errno(err, K3_ERR_IO, errno, len, "cannot read '%s'", name);
        }
        if (got == 0) {
            *out_bytes = bytes;
            *out_len = len;
            return K3_OK;
        }
        len += got > 0 ? (size_t)got : 0;
    }
}

static enum k3_code read_prompt_file(const char *path, uint8_t **out_bytes, size_t *out_len,
                                     struct k3_error *err)
{
    if (strcmp(path, "-") == 0) {
        return read_stream(STDIN_FILENO, "standard input", out_bytes, out_len, err);
    }
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return k3_fail_errno(err, errno == ENOENT || errno == ENOTDIR ? K3_ERR_NO_INPUT : K3_ERR_IO,
                             errno, K3_ERROR_NO_OFFSET, "cannot open '%s'", path);
    }
    const enum k3_code code = read_stream(fd, path, out_bytes, out_len, err);
    close(fd);
    return code;
}

static enum k3_code encode_text(const struct k3_infer_options *o, const struct k3_engine *engine,
                                struct k3_token_ids *prompt, struct k3_error *err)
{
    if (o->prompt) {
        return k3_tokenizer_encode(engine->tokenizer, o->prompt, strlen(o->prompt), K3_ENCODE_PLAIN,
                                   prompt, err);
    }
    uint8_t *bytes = NULL;
    size_t len = 0;
    enum k3_code code = read_prompt_file(o->prompt_file, &bytes, &len, err);
    if (code == K3_OK) {
        code = k3_tokenizer_encode(engine->tokenizer, bytes, len, K3_ENCODE_PLAIN, prompt, err);
    }
    free(bytes);
    return code;
}

enum k3_code k3_prompt_make(const struct k3_infer_options *o, const struct k3_engine *engine,
                            struct k3_token_ids *prompt, struct k3_error *err)
{
    enum k3_code code = K3_OK;
    if (o->has_ids) {
        for (size_t i = 0; code == K3_OK && i < o->ids.count; i++) {
            code = k3_token_ids_append(prompt, o->ids.ids[i], err);
        }
    } else {
        code = encode_text(o, engine, prompt, err);
    }
    if (code == K3_OK && prompt->count == 0) {
        code = k3_fail(err, K3_ERR_USAGE, K3_ERROR_NO_OFFSET, "the prompt is empty");
    }
    return code;
}
