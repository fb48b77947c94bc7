/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/cli/run_stats.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "format/base/ckd.h"
#include "format/base/clock.h"
#include "format/tool/json_out.h"
#include "format/tool/size_text.h"
#include "runtime/cli/plan_report.h"

#define RATIO_ALARM 1.02

void k3_run_stats_done(struct k3_run_stats *stats)
{
    free(stats->tokens);
    stats->tokens = NULL;
}

void k3_run_stats_mark(struct k3_run_stats *stats, const struct k3_engine *engine,
                       struct k3_run_mark *out_mark)
{
    struct k3_run_mark mark = {.ns = k3_clock_ns()};
    k3_process_counts_read(engine->pool, &mark.process);
    k3_weight_store_counts(engine->weights, &mark.store);
    const struct k3_process_counts *p = &mark.process;
    stats->peak_anonymous_bytes = k3_max_u64(stats->peak_anonymous_bytes, p->anonymous_bytes);
    stats->peak_mapped_bytes = k3_max_u64(stats->peak_mapped_bytes, p->mapped_bytes);
    stats->peak_page_table_bytes = k3_max_u64(stats->peak_page_table_bytes, p->page_table_bytes);
    stats->peak_used_bytes = k3_max_u64(stats->peak_used_bytes,
                                        p->anonymous_bytes + p->mapped_bytes + p->page_table_bytes);
    *out_mark = mark;
}

void k3_run_stats_token(struct k3_run_stats *stats, const struct k3_engine *engine)
{
    if (stats->token_count == stats->token_room && stats->token_room < K3_STATS_TOKENS_MAX) {
        const size_t room = stats->token_room == 0 ? 64 : stats->token_room * 2;
        struct k3_run_mark *larger = realloc(stats->tokens, room * sizeof *larger);
        if (larger) {
            stats->tokens = larger;
            stats->token_room = room;
        }
    }
    if (stats->token_count < stats->token_room) {
        k3_run_stats_mark(stats, engine, &stats->tokens[stats->token_count++]);
    }
}

static double seconds(uint64_t ns)
{
    return (double)ns * 1e-9;
}

static void put_work(struct k3_json_out *out, const struct k3_run_stats *stats,
                     const struct k3_engine *engine, const struct k3_session *session)
{
    k3_json_u64(out, "prompt_tokens", stats->prompt_tokens);
    k3_json_u64(out, "generated_tokens", stats->generated_tokens);
    k3_json_u64(out, "fed_tokens", stats->fed_tokens);
    k3_json_string(out, "stop_reason", stats->stop_reason);
    if (strcmp(stats->stop_reason, "end_token") == 0) {
        k3_json_u64(out, "end_id", stats->end_id);
    }
    k3_json_u64(out, "threads", k3_pool_thread_count(engine->pool));
    k3_json_string(out, "isa", engine->kernels->name);
    k3_json_u64(out, "context", session->options.context);
    k3_json_u64(out, "prefill_chunk", session->options.chunk);
    k3_json_u64(out, "session_bytes", k3_session_bytes(engine, &session->options));
}

static uint64_t own_read(const struct k3_store_counts *c)
{
    return c->trunk_read_bytes + c->expert_read_bytes + c->row_read_bytes;
}

/* From one mark to another: what came from where, and who waited. */
static void put_span(struct k3_json_out *out, const char *key, const struct k3_run_mark *from,
                     const struct k3_run_mark *to)
{
    const struct k3_store_counts *a = &from->store, *b = &to->store;
    const uint64_t ideal = b->ideal_bytes - a->ideal_bytes;
    const uint64_t own = own_read(b) - own_read(a);
    const uint64_t used = b->trunk_bytes + b->expert_bytes - a->trunk_bytes - a->expert_bytes;
    const uint64_t wait =
        b->trunk_wait_ns + b->expert_wait_ns - a->trunk_wait_ns - a->expert_wait_ns;
    k3_json_object_begin(out, key);
    k3_json_f64(out, "seconds", seconds(to->ns - from->ns));
    k3_json_f64(out, "trunk_wait_seconds", seconds(b->trunk_wait_ns - a->trunk_wait_ns));
    k3_json_f64(out, "expert_wait_seconds", seconds(b->expert_wait_ns - a->expert_wait_ns));
    k3_json_f64(out, "compute_seconds", seconds(to->ns - from->ns - wait));
    k3_json_f64(out, "cpu_seconds", seconds(to->process.cpu_ns - from->process.cpu_ns));
    k3_json_f64(out, "input_cpu_seconds", seconds(b->input_cpu_ns - a->input_cpu_ns));
    k3_json_u64(out, "device_read_bytes",
                to->process.device_read_bytes - from->process.device_read_bytes);
    k3_json_u64(out, "own_read_bytes", own);
    k3_json_u64(out, "ideal_bytes", ideal);
    k3_json_u64(out, "used_bytes", used);
    k3_json_u64(out, "hit_bytes", used > own ? used - own : 0);
    k3_json_u64(out, "expert_hits", b->expert_hits - a->expert_hits);
    k3_json_u64(out, "expert_misses", b->expert_misses - a->expert_misses);
    k3_json_u64(out, "compute_thread_faults",
                to->process.compute_faults - from->process.compute_faults);
    k3_json_u64(out, "major_faults", to->process.major_faults - from->process.major_faults);
    k3_json_u64(out, "minor_faults", to->process.minor_faults - from->process.minor_faults);
    k3_json_object_end(out);
}

static void put_tokens(struct k3_json_out *out, const struct k3_run_stats *stats)
{
    k3_json_array_begin(out, "decode_tokens");
    const struct k3_run_mark *last = &stats->prefilled;
    for (size_t i = 0; i < stats->token_count; i++) {
        put_span(out, NULL, last, &stats->tokens[i]);
        last = &stats->tokens[i];
    }
    k3_json_array_end(out);
}

static void put_totals(struct k3_json_out *out, const struct k3_run_stats *stats,
                       const struct k3_engine *engine)
{
    const struct k3_run_mark *end = &stats->ended;
    const struct k3_store_counts *c = &end->store;
    k3_json_f64(out, "open_seconds", seconds(stats->open_ns));
    k3_json_f64(out, "prefill_seconds", seconds(stats->prefilled.ns - stats->loaded.ns));
    k3_json_f64(out, "decode_seconds", seconds(end->ns - stats->prefilled.ns));
    k3_json_f64(out, "total_seconds", seconds(end->ns - stats->start_ns));
    k3_json_string(out, "io", k3_io_name(k3_weight_store_io(engine->weights)));
    k3_json_u64(out, "trunk_bytes_used", c->trunk_bytes);
    k3_json_u64(out, "expert_bytes_used", c->expert_bytes);
    k3_json_u64(out, "experts_used", c->experts);
    k3_json_u64(out, "pinned_bytes", c->pinned_bytes);
    k3_json_u64(out, "checked_bytes", c->checked_bytes);
    k3_json_f64(out, "check_seconds", seconds(c->check_ns));
    k3_json_u64(out, "failed_hints", c->failed_hints);
    k3_json_u64(out, "device_read_bytes",
                end->process.device_read_bytes - stats->before.device_read_bytes);
    k3_json_u64(out, "major_faults", end->process.major_faults - stats->before.major_faults);
    k3_json_u64(out, "minor_faults", end->process.minor_faults - stats->before.minor_faults);
    k3_json_f64(out, "cpu_seconds", seconds(end->process.cpu_ns - stats->before.cpu_ns));
    k3_json_u64(out, "peak_resident_bytes", end->process.peak_resident_bytes);
    k3_json_u64(out, "peak_anonymous_bytes", stats->peak_anonymous_bytes);
    k3_json_u64(out, "peak_mapped_bytes", stats->peak_mapped_bytes);
    k3_json_u64(out, "peak_page_table_bytes", stats->peak_page_table_bytes);
    k3_json_u64(out, "peak_used_bytes", stats->peak_used_bytes);
    const uint64_t group_peak = k3_memory_group_peak(&stats->plan->limits);
    if (group_peak > 0) {
        k3_json_u64(out, "peak_cgroup_bytes", group_peak);
    }
}

enum k3_code k3_run_stats_begin(const char *path, struct k3_error *err)
{
    FILE *file = fopen(path, "we");
    if (!file) {
        return k3_fail_errno(err, K3_ERR_CANT_CREATE, errno, K3_ERROR_NO_OFFSET,
                             "cannot create '%s'", path);
    }
    fclose(file);
    return K3_OK;
}

enum k3_code k3_run_stats_write(const struct k3_run_stats *stats, const char *path,
                                const struct k3_engine *engine, const struct k3_session *session,
                                struct k3_error *err)
{
    FILE *file = fopen(path, "we");
    if (!file) {
        return k3_fail_errno(err, K3_ERR_CANT_CREATE, errno, K3_ERROR_NO_OFFSET,
                             "cannot create '%s'", path);
    }
    struct k3_json_out out = {.stream = file};
    k3_json_object_begin(&out, NULL);
    k3_json_string(&out, "schema", "k3infer.stats/1");
    k3_json_string(&out, "version", K3_VERSION);
    k3_json_digest(&out, "pack_id", &engine->pack.superblock.pack_id);
    if (session) {
        put_work(&out, stats, engine, session);
        put_totals(&out, stats, engine);
        put_span(&out, "prefill", &stats->loaded, &stats->prefilled);
        put_span(&out, "decode", &stats->prefilled, &stats->ended);
        put_tokens(&out, stats);
    }
    k3_plan_put(&out, stats->plan, &engine->pack.tables);
    k3_json_object_end(&out);
    const enum k3_code code = k3_json_out_finish(&out, err);
    if (fclose(file) != 0 && code == K3_OK) {
        return k3_fail_errno(err, K3_ERR_IO, errno, K3_ERROR_NO_OFFSET, "cannot write '%s'", path);
    }
    return code;
}

/* "end token 163586", "stop text", "128 tokens". */
static void reason_text(const struct k3_run_stats *stats, char *text, size_t room)
{
    if (strcmp(stats->stop_reason, "end_token") == 0) {
        snprintf(text, room, "end token %u", stats->end_id);
    } else if (strcmp(stats->stop_reason, "stop_text") == 0) {
        snprintf(text, room, "stop text");
    } else {
        snprintf(text, room, "%s", stats->stop_reason);
    }
}

/* Device bytes above what had to be read: the plan was not kept. Small runs prove nothing. */
static void warn_ratio(const struct k3_run_stats *stats, struct k3_messages *messages)
{
    const struct k3_run_mark *from = stats->token_count > 0 ? &stats->tokens[0] : &stats->prefilled;
    const uint64_t device =
        stats->ended.process.device_read_bytes - from->process.device_read_bytes;
    const uint64_t ideal = stats->ended.store.ideal_bytes - from->store.ideal_bytes;
    if (ideal >= (UINT64_C(1) << 30) && (double)device > RATIO_ALARM * (double)ideal) {
        k3_message_warning(messages,
                           "%.2f times the bytes that had to be read came from the device: "
                           "something else uses this memory; a smaller --ram may be faster",
                           (double)device / (double)ideal);
    }
}

void k3_run_stats_say(const struct k3_run_stats *stats, const struct k3_engine *engine,
                      struct k3_messages *messages)
{
    const struct k3_run_mark *end = &stats->ended;
    char used[K3_SIZE_TEXT_BYTES], read[K3_SIZE_TEXT_BYTES], ideal[K3_SIZE_TEXT_BYTES];
    char kept[K3_SIZE_TEXT_BYTES], peak[K3_SIZE_TEXT_BYTES], budget[K3_SIZE_TEXT_BYTES], reason[48];
    k3_size_format(end->store.trunk_bytes + end->store.expert_bytes, used);
    k3_size_format(end->process.device_read_bytes - stats->before.device_read_bytes, read);
    k3_size_format(end->store.ideal_bytes, ideal);
    k3_size_format(end->store.pinned_bytes, kept);
    k3_size_format(stats->peak_used_bytes, peak);
    k3_size_format(stats->plan->budget.total_bytes, budget);
    reason_text(stats, reason, sizeof reason);
    k3_message_info(messages, K3_LEVEL_NORMAL,
                    "prompt %" PRIu64 " tokens in %.2f s; generated %" PRIu64
                    " in %.2f s (ended by: %s); weights used %s, read from the device %s of %s "
                    "needed; memory %s of %s, trunk kept %s; %u threads, %s, %s",
                    stats->prompt_tokens, seconds(stats->prefilled.ns - stats->loaded.ns),
                    stats->generated_tokens, seconds(end->ns - stats->prefilled.ns), reason, used,
                    read, ideal, peak, budget, kept, k3_pool_thread_count(engine->pool),
                    engine->kernels->name, k3_io_name(k3_weight_store_io(engine->weights)));
    if (end->store.refused_locks > 0) {
        k3_message_warning(messages, "--pin hard: the system refused to lock memory (ulimit -l); "
                                     "the kept weights were held without it");
    }
    if (stats->peak_used_bytes > stats->plan->budget.total_bytes) {
        k3_message_warning(messages, "memory reached %s, more than the budget of %s", peak, budget);
    }
    warn_ratio(stats, messages);
}
