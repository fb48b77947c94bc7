/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>

#include "format/tool/json_out.h"
#include "format/tool/progress.h"
#include "format/tool/size_text.h"
#include "packer/commands.h"
#include "packer/pack.h"

static void put_plan(struct k3_json_out *out, const struct k3_plan *p)
{
    k3_json_u64(out, "shard_count", p->shard_count);
    k3_json_u64(out, "read_bytes", p->read_bytes);
    k3_json_u64(out, "skipped_tensors", p->skipped_tensors);
    k3_json_u64(out, "skipped_bytes", p->skipped_bytes);
    k3_json_u64(out, "trunk_bytes", p->trunk_bytes);
    k3_json_u64(out, "trunk_data", p->trunk_data);
    k3_json_u64(out, "experts_bytes", p->experts_bytes);
    k3_json_u64(out, "experts_data", p->experts_data);
    k3_json_u64(out, "expert_count", p->expert_count);
    k3_json_u64(out, "expert_stride", p->expert_stride);
    k3_json_u64(out, "expert_used", p->expert_used);
    k3_json_u64(out, "index_bytes_max", p->index_bytes);
    k3_json_u64(out, "space_bytes", p->space_bytes);
    k3_json_u64(out, "apparent_bytes", p->apparent_bytes);
}

static void print_size(const char *what, uint64_t bytes, const char *remark)
{
    char text[K3_SIZE_TEXT_BYTES];
    k3_size_format(bytes, text);
    printf("  %-22s %20" PRIu64 "  %10s  %s\n", what, bytes, text, remark);
}

static void print_time(const struct k3_plan *plan, uint64_t rate, const char *rate_text)
{
    char text[K3_DURATION_TEXT_BYTES];
    k3_duration_format(k3_plan_seconds(plan, rate), text);
    printf("  %-22s %s\n", rate_text, text);
}

static enum k3_code print_plan(const struct k3_plan *p)
{
    printf("read from %" PRIu64 " shards\n", p->shard_count);
    print_size("shards", p->read_bytes, "");
    print_size("left out (vision)", p->skipped_bytes, "");
    printf("written\n");
    print_size("k3.trunk", p->trunk_bytes, "");
    print_size("k3.experts", p->experts_bytes, "apparent size");
    print_size("  of which data", p->experts_data, "the rest are holes");
    print_size("k3.index, at most", p->index_bytes, "");
    printf("needed in the target folder\n");
    print_size("space", p->space_bytes, "on a file system with holes");
    print_size("space", p->apparent_bytes, "on one without (exFAT, FAT)");
    printf("time, assuming one disk that reads shards and writes the pack at\n");
    print_time(p, UINT64_C(200000000), "200 MB/s");
    print_time(p, UINT64_C(1000000000), "1 GB/s");
    return fflush(stdout) == 0 && !ferror(stdout) ? K3_OK : K3_ERR_IO;
}

static enum k3_code print_plan_json(const struct k3_plan *plan, struct k3_error *err)
{
    struct k3_json_out out = {.stream = stdout};
    k3_json_object_begin(&out, NULL);
    k3_json_string(&out, "schema", "k3pack.plan/1");
    put_plan(&out, plan);
    k3_json_u64(&out, "seconds_at_200_mb_per_s", k3_plan_seconds(plan, UINT64_C(200000000)));
    k3_json_u64(&out, "seconds_at_1_gb_per_s", k3_plan_seconds(plan, UINT64_C(1000000000)));
    k3_json_object_end(&out);
    return k3_json_out_finish(&out, err);
}

enum k3_code k3_command_plan(const struct k3_command *command)
{
    struct k3_census census = {0};
    struct k3_problems problems = {0};
    struct k3_error err = {0};
    enum k3_code code = k3_census_take(command->options->checkpoint, &census, &problems, &err);
    if (code == K3_OK) {
        const struct k3_plan plan = k3_plan_make(&census);
        code = command->options->json ? print_plan_json(&plan, &err) : print_plan(&plan);
        if (code != K3_OK && err.code == K3_OK) {
            (void)k3_fail(&err, code, K3_ERROR_NO_OFFSET, "cannot write the output");
        }
    }
    if (code != K3_OK) {
        (void)k3_command_fail(command, code, &problems, &err);
    }
    k3_census_done(&census);
    k3_problems_done(&problems);
    return code;
}

static void put_report(struct k3_json_out *out, const char *key, const struct k3_pack_report *r,
                       double seconds)
{
    k3_json_object_begin(out, key);
    k3_json_string(out, "schema", "k3pack.pack/1");
    k3_json_digest(out, "pack_id", &r->pack_id);
    k3_json_bool(out, "was_packed", r->was_packed);
    k3_json_f64(out, "seconds", seconds);
    k3_json_object_begin(out, "files");
    k3_json_u64(out, "k3.index", r->index_bytes);
    k3_json_u64(out, "k3.trunk", r->trunk_bytes);
    k3_json_u64(out, "k3.experts", r->experts_bytes);
    k3_json_object_end(out);
    k3_json_u64(out, "allocated_bytes", r->allocated_bytes);
    k3_json_object_begin(out, "resumed");
    k3_json_u64(out, "shards", r->resumed.shards_done);
    k3_json_u64(out, "checked_bytes", r->resumed.checked_bytes);
    k3_json_u64(out, "redone_extents", r->resumed.redone_extents);
    k3_json_u64(out, "redone_experts", r->resumed.redone_experts);
    k3_json_object_end(out);
    k3_json_object_begin(out, "plan");
    put_plan(out, &r->plan);
    k3_json_object_end(out);
    k3_json_object_end(out);
}

static enum k3_code print_report_json(const struct k3_command *command,
                                      const struct k3_pack_report *r, double seconds,
                                      struct k3_error *err)
{
    struct k3_json_out out = {.stream = stdout};
    if (command->options->json_lines) {
        k3_events_done_begin(command->events, &out);
        put_report(&out, "report", r, seconds);
        return k3_events_done_end(&out, err);
    }
    put_report(&out, NULL, r, seconds);
    return k3_json_out_finish(&out, err);
}

static enum k3_code print_report(const struct k3_command *command, const struct k3_pack_report *r,
                                 double seconds)
{
    char hex[K3_DIGEST_HEX_BYTES], read[K3_SIZE_TEXT_BYTES], took[K3_SIZE_TEXT_BYTES];
    char rate[K3_SIZE_TEXT_BYTES], time[K3_DURATION_TEXT_BYTES];
    k3_digest_hex(&r->pack_id, hex);
    k3_size_format(r->plan.read_bytes, read);
    k3_size_format(r->allocated_bytes, took);
    k3_size_format((uint64_t)((double)r->plan.read_bytes / (seconds > 0 ? seconds : 1)), rate);
    k3_duration_format((uint64_t)(seconds + 0.5), time);
    if (r->was_packed) {
        k3_message_info(command->messages, K3_LEVEL_NORMAL,
                        "already packed: '%s' holds the same tensors from the same shards (weights "
                        "were not compared: k3pack --verify '%s' --against '%s' compares them)",
                        command->options->pack, command->options->pack,
                        command->options->checkpoint);
    } else {
        if (r->resumed.shards_done > 0) {
            k3_message_info(command->messages, K3_LEVEL_NORMAL,
                            "resumed after %u shards; written again: %" PRIu64
                            " trunk extents, %" PRIu64 " experts",
                            r->resumed.shards_done, r->resumed.redone_extents,
                            r->resumed.redone_experts);
        }
        k3_message_info(command->messages, K3_LEVEL_NORMAL,
                        "packed %s in %s (%s/s); the pack takes %s", read, time, rate, took);
    }
    printf("%s\n", hex);
    return fflush(stdout) == 0 && !ferror(stdout) ? K3_OK : K3_ERR_IO;
}

enum k3_code k3_command_pack(const struct k3_command *command)
{
    const struct k3_pack_options *o = command->options;
    struct k3_problems problems = {0};
    struct k3_pack_report report = {0};
    struct k3_error err = {0};
    const uint64_t began = k3_clock_ns();
    const struct k3_pack_request request = {.checkpoint = o->checkpoint,
                                            .folder = o->pack,
                                            .manifest = o->manifest,
                                            .restart = o->restart,
                                            .jobs = o->jobs};
    k3_events_start(command->events, "pack", o->pack, o->checkpoint);
    enum k3_code code = k3_pack_make(&request, command->observer, &problems, &report, &err);
    if (code == K3_OK) {
        const double seconds = (double)(k3_clock_ns() - began) / 1e9;
        code = o->json || o->json_lines ? print_report_json(command, &report, seconds, &err)
                                        : print_report(command, &report, seconds);
        if (code != K3_OK && err.code == K3_OK) {
            (void)k3_fail(&err, code, K3_ERROR_NO_OFFSET, "cannot write the output");
        }
    }
    if (code != K3_OK) {
        (void)k3_command_fail(command, code, &problems, &err);
    }
    if (code == K3_ERR_INTERRUPTED) {
        k3_message_error(command->messages, "run the same command again to resume");
    }
    k3_problems_done(&problems);
    return code;
}
