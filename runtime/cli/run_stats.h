/* SPDX-License-Identifier: Apache-2.0 */
#ifndef K3_RUNTIME_CLI_RUN_STATS_H
#define K3_RUNTIME_CLI_RUN_STATS_H

#include <stdbool.h>

#include "format/tool/message.h"
#include "runtime/cli/process_counts.h"
#include "runtime/engine/memory_plan.h"
#include "runtime/engine/session.h"

/* What a run did, counted while it runs and reported at its end. */
struct k3_run_mark {
    uint64_t ns;
    struct k3_process_counts process;
    struct k3_store_counts store;
};

#define K3_STATS_TOKENS_MAX 4096U /* tokens that are reported one by one */

struct k3_run_stats {
    uint64_t start_ns;
    uint64_t open_ns;
    uint64_t prompt_tokens, generated_tokens, fed_tokens;
    const char *stop_reason; /* "end_token", "stop_text", "max_tokens", "interrupted", "error" */
    uint32_t end_id;         /* with end_token */
    struct k3_process_counts before;

    const struct k3_memory_plan *plan; /* borrowed */
    struct k3_run_mark loaded, prefilled, ended;
    struct k3_run_mark *tokens; /* owned: after each token of decode that was fed */
    size_t token_count, token_room;
    uint64_t peak_anonymous_bytes, peak_mapped_bytes, peak_used_bytes, peak_page_table_bytes;
};

void k3_run_stats_done(struct k3_run_stats *stats);

/* Takes a mark, and the peaks along with it. */
void k3_run_stats_mark(struct k3_run_stats *stats, const struct k3_engine *engine,
                       struct k3_run_mark *out_mark);
/* One more token of decode has been fed. */
void k3_run_stats_token(struct k3_run_stats *stats, const struct k3_engine *engine);

/* Makes the file, empty. Errors: CANT_CREATE. */
K3_MUST_CHECK enum k3_code k3_run_stats_begin(const char *path, struct k3_error *err);

/* One JSON object, schema "k3infer.stats/1". session may be NULL: a plan only. Errors: CANT_CREATE,
 * IO. */
K3_MUST_CHECK enum k3_code k3_run_stats_write(const struct k3_run_stats *stats, const char *path,
                                              const struct k3_engine *engine,
                                              const struct k3_session *session,
                                              struct k3_error *err);

/* The closing line, and a warning where the plan was not kept. */
void k3_run_stats_say(const struct k3_run_stats *stats, const struct k3_engine *engine,
                      struct k3_messages *messages);

#endif
