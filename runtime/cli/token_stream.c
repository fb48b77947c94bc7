/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/cli/token_stream.h"

#include <errno.h>

enum k3_code k3_token_stream_init(const struct k3_vocab *vocab, const char *const *stops,
                                  size_t stop_count, FILE *out, struct k3_token_stream *out_stream,
                                  struct k3_error *err)
{
    struct k3_token_stream stream = {.out = out};
    const struct k3_detokenizer_options options = {.mode = K3_DETOKENIZE_TEXT};
    enum k3_code code = k3_detokenizer_create(vocab, options, &stream.detokenizer, err);
    if (code == K3_OK) {
        code = k3_stop_text_init(stops, stop_count, &stream.stop, err);
    }
    if (code != K3_OK) {
        k3_token_stream_done(&stream);
        return code;
    }
    *out_stream = stream;
    return K3_OK;
}

void k3_token_stream_done(struct k3_token_stream *stream)
{
    k3_detokenizer_destroy(stream->detokenizer);
    k3_stop_text_done(&stream->stop);
    *stream = (struct k3_token_stream){0};
}

static enum k3_code show(struct k3_token_stream *stream, const uint8_t *bytes, size_t len,
                         struct k3_error *err)
{
    if ((len > 0 && fwrite(bytes, 1, len, stream->out) != len) || fflush(stream->out) != 0) {
        stream->has_failed = true;
        return k3_fail_errno(err, K3_ERR_IO, errno, K3_ERROR_NO_OFFSET,
                             "cannot write to standard output");
    }
    return K3_OK;
}

static enum k3_code put_text(struct k3_token_stream *stream, const uint8_t *text, size_t text_len,
                             bool *out_stopped, struct k3_error *err)
{
    const uint8_t *bytes = NULL;
    size_t len = 0;
    const enum k3_code code =
        k3_stop_text_feed(&stream->stop, text, text_len, &bytes, &len, out_stopped, err);
    return code == K3_OK ? show(stream, bytes, len, err) : code;
}

enum k3_code k3_token_stream_put(struct k3_token_stream *stream, uint32_t id, bool *out_stopped,
                                 struct k3_error *err)
{
    const uint8_t *text = NULL;
    size_t len = 0;
    const enum k3_code code = k3_detokenizer_feed(stream->detokenizer, id, &text, &len, err);
    return code == K3_OK ? put_text(stream, text, len, out_stopped, err) : code;
}

enum k3_code k3_token_stream_finish(struct k3_token_stream *stream, bool ends_line,
                                    bool *out_stopped, struct k3_error *err)
{
    const uint8_t *text = NULL;
    size_t len = 0;
    bool stopped = false;
    k3_detokenizer_finish(stream->detokenizer, &text, &len);
    enum k3_code code = put_text(stream, text, len, &stopped, err);
    if (code == K3_OK && !stopped) {
        k3_stop_text_finish(&stream->stop, &text, &len, &stopped);
        code = show(stream, text, len, err);
    }
    if (code == K3_OK && ends_line) {
        code = show(stream, (const uint8_t *)"\n", 1, err);
    }
    *out_stopped = stopped;
    return code;
}
