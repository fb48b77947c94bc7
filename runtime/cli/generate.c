/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/cli/generate.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "format/base/clock.h"
#include "runtime/cli/npy_writer.h"
#include "runtime/cli/signals.h"
#include "runtime/cli/token_stream.h"

/* Everything that one run writes to or draws on. */
struct run {
    const struct k3_infer_options *options;
    const struct k3_engine *engine;
    struct k3_session *session;
    struct k3_messages *messages;
    struct k3_run_stats *stats;

    struct k3_sampler sampler;
    struct k3_token_stream text;
    struct k3_npy_writer logits;
    FILE *ids;
    bool draws; /* progress of the prompt on a terminal */
    uint64_t prefill_start_ns, drawn_ns;
};

#define DRAW_EVERY_NS 166000000U /* 6 times a second */

/* "prompt: token 1 of 5, layer 12 of 93, 41 s left" on one line that changes. */
static void draw(struct run *run, const struct k3_feed_progress *p)
{
    const uint64_t now = k3_clock_ns();
    if (!run->draws || p->tokens == 1 || now - run->drawn_ns < DRAW_EVERY_NS) {
        return;
    }
    run->drawn_ns = now;
    const double share = ((double)p->tokens_done +
                          (double)p->layer / p->layers * (double)run->session->options.chunk) /
                         (double)p->tokens;
    const double spent = (double)(now - run->prefill_start_ns) * 1e-9;
    fprintf(stderr, "\rprompt: %zu of %zu tokens, layer %u of %u", p->tokens_done, p->tokens,
            p->layer, p->layers);
    if (share > 0.02 && share < 1) {
        fprintf(stderr, ", about %.0f s left", spent / share - spent);
    }
    fprintf(stderr, "\033[K");
    run->messages->line_is_open = true;
}

static bool report(void *user, const struct k3_feed_progress *progress)
{
    draw(user, progress);
    return !k3_signals_stop_requested();
}

static enum k3_code write_row(void *user, const float *logits, struct k3_error *err)
{
    struct run *run = user;
    return k3_npy_append(&run->logits, logits, err);
}

static enum k3_code open_outputs(struct run *run, struct k3_error *err)
{
    const struct k3_infer_options *o = run->options;
    const uint32_t vocab = run->engine->pack.tables.spec.vocab;
    enum k3_code code = k3_sampler_init(&o->sampling, vocab, &run->sampler, err);
    if (code == K3_OK) {
        code = k3_token_stream_init(run->engine->vocab, o->stops, o->stop_count, stdout, &run->text,
                                    err);
    }
    if (code == K3_OK && o->logits_file) {
        code = k3_npy_open(o->logits_file, vocab, &run->logits, err);
    }
    if (code == K3_OK && o->ids_file) {
        run->ids = fopen(o->ids_file, "we");
        if (!run->ids) {
            code = k3_fail_errno(err, K3_ERR_CANT_CREATE, errno, K3_ERROR_NO_OFFSET,
                                 "cannot create '%s'", o->ids_file);
        }
    }
    return code;
}

/* Closes what is open; the first error of the run wins. */
static enum k3_code close_outputs(struct run *run, enum k3_code code, struct k3_error *err)
{
    k3_sampler_done(&run->sampler);
    k3_token_stream_done(&run->text);
    if (run->logits.file.fd >= 0) {
        struct k3_error closing;
        const enum k3_code closed = k3_npy_close(&run->logits, &closing);
        if (code == K3_OK && closed != K3_OK) {
            *err = closing;
            code = closed;
        }
    }
    if (run->ids) {
        const bool failed = fputc('\n', run->ids) == EOF || ferror(run->ids) != 0;
        if ((fclose(run->ids) != 0 || failed) && code == K3_OK) {
            code = k3_fail_errno(err, K3_ERR_IO, errno, K3_ERROR_NO_OFFSET, "cannot write '%s'",
                                 run->options->ids_file);
        }
    }
    return code;
}

static enum k3_code feed(struct run *run, const uint32_t *ids, size_t count,
                         const float **out_logits, struct k3_error *err)
{
    const bool is_all = run->options->wants_all_logits;
    const struct k3_feed_hook hook = {
        .report = report, .row = is_all ? write_row : NULL, .user = run};
    enum k3_code code = k3_session_feed(run->session, ids, count, &hook, out_logits, err);
    if (code == K3_OK) {
        run->stats->fed_tokens += count;
        if (run->options->logits_file && !is_all) {
            code = k3_npy_append(&run->logits, *out_logits, err);
        }
    }
    return code;
}

/* Samples one token and shows it. *out_stopped ends the run. */
static enum k3_code take_token(struct run *run, const float *logits, uint32_t *out_id,
                               bool *out_stopped, struct k3_error *err)
{
    struct k3_run_stats *stats = run->stats;
    const uint32_t id = k3_sampler_next(&run->sampler, logits);
    *out_id = id;
    stats->generated_tokens++;
    if (run->ids) {
        fprintf(run->ids, stats->generated_tokens > 1 ? ",%" PRIu32 : "%" PRIu32, id);
    }
    if (k3_engine_is_end(run->engine, id)) {
        stats->stop_reason = "end_token";
        stats->end_id = id;
        *out_stopped = true;
        return K3_OK;
    }
    bool stopped = false;
    const enum k3_code code = k3_token_stream_put(&run->text, id, &stopped, err);
    if (stopped) {
        stats->stop_reason = "stop_text";
        *out_stopped = true;
    }
    return code;
}

static enum k3_code prefill(struct run *run, const struct k3_token_ids *prompt,
                            const float **out_logits, struct k3_error *err)
{
    run->prefill_start_ns = k3_clock_ns();
    const enum k3_code code = feed(run, prompt->ids, prompt->count, out_logits, err);
    k3_message_wipe_line(run->messages);
    k3_run_stats_mark(run->stats, run->engine, &run->stats->prefilled);
    return code;
}

static enum k3_code decode(struct run *run, const float *logits, struct k3_error *err)
{
    enum k3_code code = K3_OK;
    bool stopped = false;
    uint32_t id = 0;
    run->stats->stop_reason = "max_tokens";
    for (uint64_t n = 0; code == K3_OK && !stopped && n < run->options->max_tokens; n++) {
        if (n > 0) {
            code = feed(run, &id, 1, &logits, err);
            k3_run_stats_token(run->stats, run->engine);
        }
        if (code == K3_OK) {
            code = take_token(run, logits, &id, &stopped, err);
        }
    }
    return code;
}

/* Also after an error: what came before it was verified. The first error wins. */
static enum k3_code show_held_back(struct run *run, enum k3_code code, struct k3_error *err)
{
    struct k3_error finishing;
    bool stopped = false;
    if (run->text.has_failed) {
        return code;
    }
    const enum k3_code finished =
        k3_token_stream_finish(&run->text, isatty(STDOUT_FILENO) != 0, &stopped, &finishing);
    if (code == K3_OK && finished != K3_OK) {
        *err = finishing;
        return finished;
    }
    if (code == K3_OK && stopped) {
        run->stats->stop_reason = "stop_text";
    }
    return code;
}

enum k3_code k3_generate(const struct k3_infer_options *options, const struct k3_engine *engine,
                         struct k3_session *session, const struct k3_token_ids *prompt,
                         struct k3_messages *messages, struct k3_run_stats *stats,
                         struct k3_error *err)
{
    struct run run = {
        .options = options,
        .engine = engine,
        .session = session,
        .messages = messages,
        .stats = stats,
        .logits = {.file = K3_FILE_CLOSED},
        .draws = messages->level >= K3_LEVEL_NORMAL && isatty(STDERR_FILENO),
    };
    const float *logits = NULL;
    stats->stop_reason = "error";
    k3_run_stats_mark(stats, engine, &stats->loaded);
    stats->prefilled = stats->loaded;
    enum k3_code code = open_outputs(&run, err);
    if (code == K3_OK) {
        code = prefill(&run, prompt, &logits, err);
    }
    if (code == K3_OK) {
        code = decode(&run, logits, err);
    }
    k3_run_stats_mark(stats, engine, &stats->ended);
    if (code != K3_OK) {
        stats->stop_reason = code == K3_ERR_INTERRUPTED ? "interrupted" : "error";
    }
    if (run.text.detokenizer && strcmp(stats->stop_reason, "stop_text") != 0) {
        code = show_held_back(&run, code, err);
    }
    return close_outputs(&run, code, err);
}
