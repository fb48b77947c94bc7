/* SPDX-License-Identifier: Apache-2.0 */
#ifndef K3_RUNTIME_CLI_PROMPT_H
#define K3_RUNTIME_CLI_PROMPT_H

#include "runtime/cli/options.h"
#include "runtime/engine/engine.h"

/* The prompt's ids, from the option that gives it: ids as they are, text in plain mode (spellings
 * of markers are ordinary text). Appends to `prompt`. Errors: USAGE (empty), NO_INPUT, IO,
 * INTERRUPTED, NO_MEMORY. */
K3_MUST_CHECK enum k3_code k3_prompt_make(const struct k3_infer_options *o,
                                          const struct k3_engine *engine,
                                          struct k3_token_ids *prompt, struct k3_error *err);

#endif
