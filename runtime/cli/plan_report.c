/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/cli/plan_report.h"

#include <inttypes.h>

#include "format/tool/size_text.h"

struct line {
    const char *key, *text;
    uint64_t bytes;
};
#define LINES 10

/* One ledger for both forms. */
static void ledger_of(const struct k3_budget *b, struct line out[LINES])
{
    const struct line lines[LINES] = {
        {"base_bytes", "program, index, vocabulary", b->base_bytes},
        {"state_bytes", "KDA states and convolution history", b->session.state_bytes},
        {"latent_bytes", "MLA latents of the context", b->session.latent_bytes},
        {"scratch_bytes", "working memory of a pass", b->session.scratch_bytes},
        {"logit_bytes", "logits and sampler", b->session.logit_bytes},
        {"page_table_bytes", "page tables, at most", b->page_table_bytes},
        {"window_bytes", "window for streamed trunk", b->window_bytes},
        {"expert_slots_bytes", "experts held", b->slot_count * b->slot_bytes},
        {"pinned_trunk_bytes", "trunk kept", b->pinned_bytes},
        {"unused_bytes", "not used", b->unused_bytes},
    };
    for (size_t i = 0; i < LINES; i++) {
        out[i] = lines[i];
    }
}

void k3_plan_put(struct k3_json_out *out, const struct k3_memory_plan *plan,
                 const struct k3_pack_tables *tables)
{
    const struct k3_budget *b = &plan->budget;
    struct line lines[LINES];
    ledger_of(b, lines);
    k3_json_object_begin(out, "plan");
    k3_json_u64(out, "total_bytes", b->total_bytes);
    k3_json_u64(out, "floor_bytes", b->floor_bytes);
    if (plan->limits.physical_bytes != K3_MEMORY_NO_LIMIT) {
        k3_json_u64(out, "physical_bytes", plan->limits.physical_bytes);
    }
    if (plan->limits.cgroup_bytes != K3_MEMORY_NO_LIMIT) {
        k3_json_u64(out, "cgroup_bytes", plan->limits.cgroup_bytes);
        k3_json_string(out, "cgroup_source", plan->limits.cgroup_source);
    }
    for (size_t i = 0; i < LINES; i++) {
        k3_json_u64(out, lines[i].key, lines[i].bytes);
    }
    k3_json_u64(out, "expert_slots", b->slot_count);
    k3_json_u64(out, "experts_total", k3_expert_total(&tables->layout));
    k3_json_u64(out, "prefill_chunk", b->chunk);
    k3_json_u64(out, "trunk_pass_bytes", b->trunk_pass_bytes);
    k3_json_u64(out, "trunk_streamed_bytes", b->trunk_streamed_bytes);
    k3_json_u64(out, "expert_token_bytes", b->expert_token_bytes);
    k3_json_f64(out, "expert_hit_share_if_uniform", b->expert_hit_share);
    k3_json_f64(out, "ideal_bytes_per_token", b->ideal_token_bytes);
    k3_json_string(out, "io", k3_io_name(plan->io.io));
    k3_json_string(out, "io_reason", plan->io.reason);
    if (plan->io.is_measured) {
        k3_json_f64(out, "mmap_bytes_per_second", plan->io.mmap.bytes_per_second);
        k3_json_f64(out, "mmap_cpu_seconds_per_gb", plan->io.mmap.cpu_seconds_per_gb);
        k3_json_f64(out, "direct_bytes_per_second", plan->io.direct.bytes_per_second);
        k3_json_f64(out, "direct_cpu_seconds_per_gb", plan->io.direct.cpu_seconds_per_gb);
    }
    if (k3_memory_plan_seconds(plan) > 0) {
        k3_json_f64(out, "memory_bytes_per_second", plan->memory_bytes_per_second);
        k3_json_f64(out, "seconds_per_token", k3_memory_plan_seconds(plan));
    }
    k3_json_object_end(out);
}

/* What the probes found, and what follows for a token. */
static void print_times(FILE *stream, const struct k3_memory_plan *plan)
{
    if (plan->io.is_measured) {
        fprintf(stream,
                "device: %.2f GB/s mapped (%.3f CPU s/GB), %.2f GB/s direct (%.3f CPU s/GB)%s\n",
                plan->io.mmap.bytes_per_second * 1e-9, plan->io.mmap.cpu_seconds_per_gb,
                plan->io.direct.bytes_per_second * 1e-9, plan->io.direct.cpu_seconds_per_gb,
                plan->io.was_cached ? ", measured earlier" : "");
    }
    if (k3_memory_plan_seconds(plan) > 0) {
        fprintf(stream, "memory: %.1f GB/s; about %.2g s per token, if computing keeps up\n",
                plan->memory_bytes_per_second * 1e-9, k3_memory_plan_seconds(plan));
    }
}

void k3_plan_print(FILE *stream, const struct k3_memory_plan *plan,
                   const struct k3_pack_tables *tables)
{
    const struct k3_budget *b = &plan->budget;
    struct line lines[LINES];
    char size[K3_SIZE_TEXT_BYTES], other[K3_SIZE_TEXT_BYTES];
    ledger_of(b, lines);
    k3_size_format(b->total_bytes, size);
    k3_size_format(b->floor_bytes, other);
    fprintf(stream, "memory budget %s (the least that works: %s)\n", size, other);
    for (size_t i = 0; i < LINES; i++) {
        k3_size_format(lines[i].bytes, size);
        fprintf(stream, "  %-36s %10s\n", lines[i].text, size);
    }
    k3_size_format(b->trunk_pass_bytes, size);
    fprintf(stream, "trunk: %.1f %% of %s kept, the same share of every layer\n",
            100.0 * (double)b->pinned_bytes / (double)b->trunk_pass_bytes, size);
    fprintf(stream, "experts: %" PRIu32 " of %" PRIu64 " held\n", b->slot_count,
            k3_expert_total(&tables->layout));
    fprintf(stream, "prefill: up to %zu tokens a pass\n", b->chunk);
    k3_size_format(b->trunk_streamed_bytes, size);
    k3_size_format((uint64_t)b->ideal_token_bytes, other);
    fprintf(stream, "read per token: %s (trunk %s; experts if routing were uniform)\n", other,
            size);
    fprintf(stream, "weights by %s: %s\n", k3_io_name(plan->io.io), plan->io.reason);
    print_times(stream, plan);
}
