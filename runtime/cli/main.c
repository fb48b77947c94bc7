/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "format/base/clock.h"
#include "format/tool/exit_status.h"
#include "runtime/cli/generate.h"
#include "runtime/cli/plan_report.h"
#include "runtime/cli/prompt.h"
#include "runtime/cli/signals.h"

/* They sleep: more of them only keep more requests in flight. */
#define INPUT_THREADS 4U

/* Positions that the run may need: the last token is sampled but never fed. */
static enum k3_code plan_context(const struct k3_infer_options *o, size_t prompt_tokens,
                                 uint64_t *out_context, struct k3_error *err)
{
    const uint64_t needed = prompt_tokens + (o->max_tokens > 0 ? o->max_tokens - 1 : 0);
    if (o->context != 0 && o->context < needed) {
        return k3_fail(err, K3_ERR_USAGE, K3_ERROR_NO_OFFSET,
                       "a prompt of %zu tokens and up to %" PRIu64
                       " generated ones need a context of %" PRIu64 ", --context gives %" PRIu64,
                       prompt_tokens, o->max_tokens, needed, o->context);
    }
    *out_context = o->context != 0 ? o->context : needed;
    return K3_OK;
}

static enum k3_code run_session(const struct k3_infer_options *o, const struct k3_engine *engine,
                                const struct k3_token_ids *prompt,
                                const struct k3_memory_plan *plan, uint64_t context,
                                struct k3_messages *messages, struct k3_run_stats *stats,
                                struct k3_error *err)
{
    const struct k3_session_options session_options = {
        .context = context,
        .chunk = plan->budget.chunk,
        .mla_eps = o->mla_eps,
        .wants_all_logits = o->wants_all_logits,
    };
    struct k3_session session = {0};
    enum k3_code code = K3_OK;
    if (o->stats_file) { /* what cannot be made should be known before hours of work */
        code = k3_run_stats_begin(o->stats_file, err);
    }
    if (code == K3_OK) {
        code = k3_session_init(engine, &session_options, &session, err);
    }
    if (code != K3_OK) {
        return code;
    }
    stats->prompt_tokens = prompt->count;
    code = k3_generate(o, engine, &session, prompt, messages, stats, err);
    if (stats->fed_tokens > 0) {
        k3_run_stats_say(stats, engine, messages);
    }
    if (o->stats_file) {
        struct k3_error writing;
        const enum k3_code written =
            k3_run_stats_write(stats, o->stats_file, engine, &session, &writing);
        if (code == K3_OK && written != K3_OK) {
            *err = writing;
            code = written;
        }
    }
    k3_session_done(&session);
    return code;
}

#define PLAN_CONTEXT 1024U /* of --plan without a prompt */

/* The context, then what memory is spent on. */
static enum k3_code make_plan(const struct k3_infer_options *o, const struct k3_engine *engine,
                              const struct k3_token_ids *prompt, uint64_t *out_context,
                              struct k3_memory_plan *out_plan, struct k3_error *err)
{
    enum k3_code code = K3_OK;
    size_t longest_pass = prompt->count;
    if (prompt->count > 0) {
        code = plan_context(o, prompt->count, out_context, err);
    } else {
        *out_context = o->context != 0 ? o->context : PLAN_CONTEXT;
        longest_pass = (size_t)*out_context;
    }
    if (code != K3_OK) {
        return code;
    }
    const struct k3_memory_wish wish = {
        .ram = o->ram,
        .context = *out_context,
        .chunk = o->chunk < longest_pass ? (size_t)o->chunk : longest_pass,
        .chunk_max = longest_pass,
        .wants_all_logits = o->wants_all_logits,
    };
    return k3_memory_plan_make(engine, &wish, out_plan, err);
}

static enum k3_code show_plan(const struct k3_infer_options *o, const struct k3_engine *engine,
                              const struct k3_run_stats *stats, struct k3_memory_plan *plan,
                              struct k3_error *err)
{
    k3_memory_plan_probe_memory(engine, plan);
    k3_plan_print(stdout, stats->plan, &engine->pack.tables);
    if (fflush(stdout) != 0 || ferror(stdout)) {
        return k3_fail_errno(err, K3_ERR_IO, errno, K3_ERROR_NO_OFFSET,
                             "cannot write to standard output");
    }
    return o->stats_file ? k3_run_stats_write(stats, o->stats_file, engine, NULL, err) : K3_OK;
}

/* Locking more than the group's limit would be answered by the out-of-memory killer. */
static enum k3_pin_kind allowed_pin(const struct k3_infer_options *o,
                                    const struct k3_memory_plan *plan, struct k3_messages *messages)
{
    if (o->pin == K3_PIN_HARD && plan->budget.pinned_bytes > plan->limits.cgroup_bytes / 10 * 9) {
        k3_message_warning(messages,
                           "--pin hard: more than 90 %% of the limit in %s would be "
                           "locked; the kept weights are held without it",
                           plan->limits.cgroup_source);
        return K3_PIN_SOFT;
    }
    return o->pin;
}

static enum k3_code load_and_run(const struct k3_infer_options *o, struct k3_engine *engine,
                                 const struct k3_token_ids *prompt,
                                 const struct k3_memory_plan *plan, uint64_t context,
                                 struct k3_messages *messages, struct k3_run_stats *stats,
                                 struct k3_error *err)
{
    const struct k3_store_options store = {
        .io = plan->io.io,
        .check = o->check,
        .pin = allowed_pin(o, plan, messages),
        .threads = INPUT_THREADS,
    };
    enum k3_code code = k3_engine_load(engine, &plan->budget, &store, err);
    if (code != K3_OK) {
        return code;
    }
    k3_signals_watch_mappings(engine->weights);
    code = run_session(o, engine, prompt, plan, context, messages, stats, err);
    k3_signals_watch_mappings(NULL);
    return code;
}

static enum k3_code plan_and_run(const struct k3_infer_options *o, struct k3_engine *engine,
                                 struct k3_messages *messages, struct k3_run_stats *stats,
                                 struct k3_error *err)
{
    struct k3_token_ids prompt = {0};
    struct k3_memory_plan plan;
    uint64_t context = 0;
    const bool has_prompt = o->has_ids || o->prompt || o->prompt_file;
    enum k3_code code = has_prompt ? k3_prompt_make(o, engine, &prompt, err) : K3_OK;
    if (code == K3_OK) {
        code = make_plan(o, engine, &prompt, &context, &plan, err);
    }
    if (code == K3_OK) {
        stats->plan = &plan;
        k3_memory_plan_choose_io(engine, o->io, &plan);
        if (o->io == K3_IO_AUTO && plan.io.io != K3_IO_MMAP) {
            k3_message_info(messages, K3_LEVEL_NORMAL, "weights by %s: %s", k3_io_name(plan.io.io),
                            plan.io.reason);
        }
        if (plan.was_clipped) {
            k3_message_warning(messages,
                               "--preset %s is for a larger machine; this one's %" PRIu64
                               " MiB are used",
                               o->ram.preset, plan.budget.total_bytes >> 20);
        }
        code = o->action == K3_INFER_PLAN
                   ? show_plan(o, engine, stats, &plan, err)
                   : load_and_run(o, engine, &prompt, &plan, context, messages, stats, err);
    }
    k3_token_ids_done(&prompt);
    return code;
}

static enum k3_code run(const struct k3_infer_options *o, struct k3_messages *messages,
                        struct k3_error *err)
{
    struct k3_run_stats stats = {.start_ns = k3_clock_ns(), .stop_reason = "error"};
    k3_process_counts_read(NULL, &stats.before);
    const struct k3_engine_options engine_options = {
        .threads = o->threads != 0 ? o->threads : k3_default_threads(),
        .kernels = o->isa ? k3_kernels_by_name(o->isa) : NULL,
    };
    struct k3_engine engine;
    enum k3_code code = k3_engine_open(o->pack_folder, &engine_options, &engine, err);
    if (code != K3_OK) {
        return code;
    }
    stats.open_ns = k3_clock_ns() - stats.start_ns;
    code = plan_and_run(o, &engine, messages, &stats, err);
    k3_run_stats_done(&stats);
    k3_engine_close(&engine);
    return code;
}

/* --help and --version; a full disk is an error here too. */
static int print_text(const char *text)
{
    return fputs(text, stdout) == EOF || fflush(stdout) != 0 ? K3_EXIT_IO : K3_EXIT_OK;
}

static int print_version(void)
{
    char text[256];
    snprintf(text, sizeof text, "k3infer %s, pack format %u.%u, instruction set %s\n", K3_VERSION,
             K3_VERSION_MAJOR, K3_VERSION_MINOR, k3_kernels_best()->name);
    return print_text(text);
}

int main(int argc, char **argv)
{
    struct k3_messages messages = {
        .program = "k3infer", .stream = stderr, .level = K3_LEVEL_NORMAL};
    struct k3_infer_options options;
    struct k3_error err = {.code = K3_OK};
    k3_signals_install();
    enum k3_code code = k3_infer_options_parse(argc, argv, &options, &err);
    if (code != K3_OK) {
        k3_message_error(&messages, "%s (see k3infer --help)", err.message);
        return k3_exit_status(code);
    }
    if (options.action > K3_INFER_PLAN) {
        k3_infer_options_done(&options);
        return options.action == K3_INFER_HELP ? print_text(k3_infer_help) : print_version();
    }
    messages.level = options.level;
    code = run(&options, &messages, &err);
    k3_infer_options_done(&options);
    if (code == K3_ERR_INTERRUPTED) {
        k3_message_error(&messages, "stopped");
        return k3_signals_exit_status();
    }
    if (code != K3_OK) {
        k3_message_error(&messages, "%s", err.message);
    }
    return k3_exit_status(code);
}
