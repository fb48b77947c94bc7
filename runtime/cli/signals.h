/* SPDX-License-Identifier: Apache-2.0 */
#ifndef K3_RUNTIME_CLI_SIGNALS_H
#define K3_RUNTIME_CLI_SIGNALS_H

#include <stdbool.h>

#include "runtime/residency/weight_store.h"

/* Ctrl-C, SIGTERM and SIGHUP ask the run to stop at the next layer; a second one ends the process
 * at once. SIGPIPE and SIGXFSZ are ignored: writing then fails with an error that is
 * reported. */
void k3_signals_install(void);
bool k3_signals_stop_requested(void);
int k3_signals_exit_status(void); /* 128 + the signal that asked */

/* SIGBUS on the mappings of `source` (a file that shrank, a disk that failed): one line with file
 * and offset, then exit status 74. NULL: no source any more. */
void k3_signals_watch_mappings(const struct k3_weight_store *source);

#endif
