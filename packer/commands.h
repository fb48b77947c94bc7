/* SPDX-License-Identifier: Apache-2.0 */
#ifndef K3_PACKER_COMMANDS_H
#define K3_PACKER_COMMANDS_H

#include "format/base/progress.h"
#include "format/tool/message.h"
#include "packer/events.h"
#include "packer/options.h"

/* Runs what the options ask for: the product goes to stdout, everything else through `messages`.
 * Failures have been said when these return. */
struct k3_command {
    const struct k3_pack_options *options;
    struct k3_messages *messages;
    const struct k3_observer *observer;
    struct k3_events *events;
};

K3_MUST_CHECK enum k3_code k3_command_pack(const struct k3_command *command);
K3_MUST_CHECK enum k3_code k3_command_plan(const struct k3_command *command);
K3_MUST_CHECK enum k3_code k3_command_verify(const struct k3_command *command);
K3_MUST_CHECK enum k3_code k3_command_repair(const struct k3_command *command);
K3_MUST_CHECK enum k3_code k3_command_export(const struct k3_command *command);
K3_MUST_CHECK enum k3_code k3_command_list(const struct k3_command *command);

/* By the verb, --help and --version included. */
K3_MUST_CHECK enum k3_code k3_command_run(const struct k3_command *command);

/* Says why a command failed: every problem, or else the error. Returns `code`. */
enum k3_code k3_command_fail(const struct k3_command *command, enum k3_code code,
                             const struct k3_problems *problems, const struct k3_error *err);

#endif
