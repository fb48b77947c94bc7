/* SPDX-License-Identifier: Apache-2.0 */
#ifndef K3_RUNTIME_CLI_OPTIONS_H
#define K3_RUNTIME_CLI_OPTIONS_H

#include <stdbool.h>

#include "format/tool/message.h"
#include "runtime/engine/sampler.h"
#include "runtime/residency/weight_store.h"
#include "runtime/tokenizer/token_ids.h"

#define K3_STOPS_MAX 16

enum k3_infer_action { K3_INFER_RUN, K3_INFER_PLAN, K3_INFER_HELP, K3_INFER_VERSION };

/* The command line of k3infer, checked. */
struct k3_infer_options {
    enum k3_infer_action action;
    const char *pack_folder;

    /* Exactly one of these; a plan needs none. */
    const char *prompt;
    const char *prompt_file;
    struct k3_token_ids ids; /* owned */
    bool has_ids;

    uint64_t max_tokens;
    struct k3_sampling sampling;
    bool has_sampling; /* an option that only matters above temperature 0 was given */
    const char *stops[K3_STOPS_MAX];
    size_t stop_count;

    unsigned threads; /* 0: decide */
    uint64_t chunk;   /* 0: planned */
    struct k3_ram_request ram;
    enum k3_io_kind io;
    enum k3_pin_kind pin;
    uint64_t context; /* 0: what the prompt and max_tokens need */
    double mla_eps;
    enum k3_check_policy check;
    const char *isa; /* NULL: the best */

    const char *logits_file, *ids_file, *stats_file;
    bool wants_all_logits;
    enum k3_level level;
};

/* Errors: USAGE, NO_MEMORY. Strings are borrowed from argv. */
K3_MUST_CHECK enum k3_code k3_infer_options_parse(int argc, char **argv,
                                                  struct k3_infer_options *out_options,
                                                  struct k3_error *err);
void k3_infer_options_done(struct k3_infer_options *options);

extern const char k3_infer_help[];

#endif
