/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/cli/run_stats.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/resource.h>

#include "format/base/clock.h"
#include "format/tool/json_out.h"
#include "format/tool/size_text.h"

static uint64_t device_read_bytes(void)
{
    FILE *file = fopen("/proc/self/io", "re");
    uint64_t bytes = 0;
    char line[128];
    while (file && fgets(line, sizeof line, file)) {
        if (sscanf(line, "read_bytes: %" SCNu64, &bytes) == 1) {
            break;
        }
    }
    if (file) {
        fclose(file);
    }
    return bytes;
}

static uint64_t ns_of(struct timeval t)
{
    return (uint64_t)t.tv_sec * 1000000000U + (uint64_t)t.tv_usec * 1000U;
}

void k3_process_counts_read(struct k3_process_counts *out_counts)
{
    struct rusage usage;
    memset(&usage, 0, sizeof usage);
    getrusage(RUSAGE_SELF, &usage);
    *out_counts = (struct k3_process_counts){
        .device_read_bytes = device_read_bytes(),
        .major_faults = (uint64_t)usage.ru_majflt,
        .minor_faults = (uint64_t)usage.ru_minflt,
        .peak_resident_bytes = (uint64_t)usage.ru_maxrss * 1024U,
        .cpu_ns = ns_of(usage.ru_utime) + ns_of(usage.ru_stime),
    };
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

static void put_times(struct k3_json_out *out, const struct k3_run_stats *stats)
{
    k3_json_f64(out, "open_seconds", seconds(stats->open_ns));
    k3_json_f64(out, "prefill_seconds", seconds(stats->prefill_ns));
    k3_json_f64(out, "decode_seconds", seconds(stats->decode_ns));
    k3_json_f64(out, "total_seconds", seconds(k3_clock_ns() - stats->start_ns));
}

static void put_bytes(struct k3_json_out *out, const struct k3_run_stats *stats,
                      const struct k3_engine *engine)
{
    const struct k3_source_counts counts = k3_mapped_source_counts(engine->source);
    struct k3_process_counts now;
    k3_process_counts_read(&now);
    k3_json_u64(out, "trunk_bytes_used", counts.trunk_bytes);
    k3_json_u64(out, "expert_bytes_used", counts.expert_bytes);
    k3_json_u64(out, "experts_used", counts.experts);
    k3_json_u64(out, "checked_bytes", counts.checked_bytes);
    k3_json_f64(out, "check_seconds", seconds(counts.check_ns));
    k3_json_u64(out, "device_read_bytes", now.device_read_bytes - stats->before.device_read_bytes);
    k3_json_u64(out, "major_faults", now.major_faults - stats->before.major_faults);
    k3_json_u64(out, "minor_faults", now.minor_faults - stats->before.minor_faults);
    k3_json_u64(out, "peak_resident_bytes", now.peak_resident_bytes);
    k3_json_f64(out, "cpu_seconds", seconds(now.cpu_ns - stats->before.cpu_ns));
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
    put_work(&out, stats, engine, session);
    put_times(&out, stats);
    put_bytes(&out, stats, engine);
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

void k3_run_stats_say(const struct k3_run_stats *stats, const struct k3_engine *engine,
                      struct k3_messages *messages)
{
    const struct k3_source_counts counts = k3_mapped_source_counts(engine->source);
    struct k3_process_counts now;
    k3_process_counts_read(&now);
    char used[K3_SIZE_TEXT_BYTES], read[K3_SIZE_TEXT_BYTES], reason[48];
    k3_size_format(counts.trunk_bytes + counts.expert_bytes, used);
    k3_size_format(now.device_read_bytes - stats->before.device_read_bytes, read);
    reason_text(stats, reason, sizeof reason);
    k3_message_info(messages, K3_LEVEL_NORMAL,
                    "prompt %" PRIu64 " tokens in %.2f s; generated %" PRIu64
                    " in %.2f s (ended by: %s); weights used %s, read from the device %s; %u "
                    "threads, %s",
                    stats->prompt_tokens, seconds(stats->prefill_ns), stats->generated_tokens,
                    seconds(stats->decode_ns), reason, used, read,
                    k3_pool_thread_count(engine->pool), engine->kernels->name);
}
