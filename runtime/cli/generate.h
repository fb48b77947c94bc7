/* SPDX-License-Identifier: Apache-2.0 */
#ifndef K3_RUNTIME_CLI_GENERATE_H
#define K3_RUNTIME_CLI_GENERATE_H

#include "runtime/cli/options.h"
#include "runtime/cli/run_stats.h"

/* Prompt in, text out: feeds the prompt, then samples and feeds token by token, writing text, ids
 * and logits as they come. What was verified is on standard output also when it fails. Errors:
 * those of the session, IO, CANT_CREATE, INTERRUPTED. */
K3_MUST_CHECK enum k3_code k3_generate(const struct k3_infer_options *options,
                                       const struct k3_engine *engine, struct k3_session *session,
                                       const struct k3_token_ids *prompt,
                                       struct k3_messages *messages, struct k3_run_stats *stats,
                                       struct k3_error *err);

#endif
