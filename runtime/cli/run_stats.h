/* SPDX-License-Identifier: Apache-2.0 */
#ifndef K3_RUNTIME_CLI_RUN_STATS_H
#define K3_RUNTIME_CLI_RUN_STATS_H

#include "format/tool/message.h"
#include "runtime/engine/session.h"

/* What a run did, counted while it runs and reported at its end. */
struct k3_process_counts {
    uint64_t device_read_bytes; /* /proc/self/io read_bytes; 0 where there is none */
    uint64_t major_faults, minor_faults;
    uint64_t peak_resident_bytes; /* mapped file pages included */
    uint64_t cpu_ns;
};

struct k3_run_stats {
    uint64_t start_ns;
    uint64_t open_ns, prefill_ns, decode_ns;
    uint64_t prompt_tokens, generated_tokens, fed_tokens;
    const char *stop_reason; /* "end_token", "stop_text", "max_tokens", "interrupted", "error" */
    uint32_t end_id;         /* with end_token */
    const char *stop_text;   /* with stop_text, where it is known */
    struct k3_process_counts before;
};

void k3_process_counts_read(struct k3_process_counts *out_counts);

/* One JSON object, schema "k3infer.stats/1". Errors: CANT_CREATE, IO. */
K3_MUST_CHECK enum k3_code k3_run_stats_write(const struct k3_run_stats *stats, const char *path,
                                              const struct k3_engine *engine,
                                              const struct k3_session *session,
                                              struct k3_error *err);

/* The closing line. */
void k3_run_stats_say(const struct k3_run_stats *stats, const struct k3_engine *engine,
                      struct k3_messages *messages);

#endif
