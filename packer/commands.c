/* SPDX-License-Identifier: Apache-2.0 */
#include "packer/commands.h"

#include <errno.h>
#include <stdio.h>

#include "format/tool/json_out.h"

/* With --json a failure is an object too, so that scripts read one thing only. */
static void print_failure(enum k3_code code, const struct k3_problems *problems,
                          const struct k3_error *err)
{
    struct k3_json_out out = {.stream = stdout};
    k3_json_object_begin(&out, NULL);
    k3_json_string(&out, "schema", "k3pack.failure/1");
    k3_json_string(&out, "error", k3_code_name(code));
    k3_json_string(&out, "message", err->message);
    k3_json_array_begin(&out, "problems");
    for (size_t i = 0; i < problems->line_count; i++) {
        k3_json_string(&out, NULL, problems->lines[i]);
    }
    k3_json_array_end(&out);
    k3_json_u64(&out, "problem_count", problems->total);
    k3_json_object_end(&out);
    struct k3_error ignored;
    const enum k3_code printed = k3_json_out_finish(&out, &ignored);
    (void)printed; /* the failure that is being told counts more */
}

enum k3_code k3_command_fail(const struct k3_command *command, enum k3_code code,
                             const struct k3_problems *problems, const struct k3_error *err)
{
    if (problems->total > 1) {
        k3_message_problems(command->messages, problems);
    }
    k3_message_error(command->messages, "%s", err->message);
    k3_events_failure(command->events, code, problems, err);
    if (command->options->json) {
        print_failure(code, problems, err);
    }
    return code;
}

static enum k3_code print_text(const struct k3_command *command, const char *text)
{
    if (fputs(text, stdout) < 0 || fflush(stdout) != 0) {
        k3_message_error(command->messages, "cannot write the output");
        return K3_ERR_IO;
    }
    return K3_OK;
}

enum k3_code k3_command_run(const struct k3_command *command)
{
    switch (command->options->verb) {
    case K3_VERB_PACK:
        return k3_command_pack(command);
    case K3_VERB_PLAN:
        return k3_command_plan(command);
    case K3_VERB_VERIFY:
        return k3_command_verify(command);
    case K3_VERB_REPAIR:
        return k3_command_repair(command);
    case K3_VERB_EXPORT:
        return k3_command_export(command);
    case K3_VERB_LIST:
        return k3_command_list(command);
    case K3_VERB_HELP:
        return print_text(command, k3_pack_help);
    case K3_VERB_VERSION:
        return print_text(command, "k3pack " K3_VERSION "\n");
    }
    return K3_ERR_USAGE;
}
