/* SPDX-License-Identifier: Apache-2.0 */
#ifndef K3_RUNTIME_CLI_TOKEN_STREAM_H
#define K3_RUNTIME_CLI_TOKEN_STREAM_H

#include <stdbool.h>
#include <stdio.h>

#include "runtime/engine/stop_text.h"
#include "runtime/tokenizer/detokenizer.h"

/* Generated ids to standard output as text: whole characters only, stop strings held back, flushed
 * after every token. */
struct k3_token_stream {
    FILE *out; /* borrowed */
    struct k3_detokenizer *detokenizer;
    struct k3_stop_text stop;
    bool has_failed; /* the output cannot be written: nothing more is tried */
};

K3_MUST_CHECK enum k3_code k3_token_stream_init(const struct k3_vocab *vocab,
                                                const char *const *stops, size_t stop_count,
                                                FILE *out, struct k3_token_stream *out_stream,
                                                struct k3_error *err);
void k3_token_stream_done(struct k3_token_stream *stream);

/* *out_stopped: a stop string has come; put no more and do not finish. Errors: IO when the output
 * cannot be written, NO_MEMORY. */
K3_MUST_CHECK enum k3_code k3_token_stream_put(struct k3_token_stream *stream, uint32_t id,
                                               bool *out_stopped, struct k3_error *err);

/* Shows what was held back, then a newline where `ends_line`. *out_stopped as above. */
K3_MUST_CHECK enum k3_code k3_token_stream_finish(struct k3_token_stream *stream, bool ends_line,
                                                  bool *out_stopped, struct k3_error *err);

#endif
