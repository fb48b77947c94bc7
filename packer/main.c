/* SPDX-License-Identifier: Apache-2.0 */
#include <signal.h>
#include <stdio.h>

#include "format/tool/exit_status.h"
#include "format/tool/progress.h"
#include "packer/commands.h"
#include "packer/team.h"

static volatile sig_atomic_t stop_asked;

static void ask_to_stop(int signal_number)
{
    (void)signal_number;
    stop_asked = 1;
}

static void install_handlers(void)
{
    struct sigaction stop = {.sa_handler = ask_to_stop}; /* no SA_RESTART: slow calls return */
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    sigaction(SIGINT, &stop, NULL);
    sigaction(SIGTERM, &stop, NULL);
    sigaction(SIGHUP, &stop, NULL);
    sigaction(SIGPIPE, &ignore, NULL); /* EPIPE and EFBIG say more than dying does */
    sigaction(SIGXFSZ, &ignore, NULL);
}

struct user {
    struct k3_messages messages;
    struct k3_progress_view view;
    struct k3_events events;
};

static bool on_report(void *pointer, const struct k3_progress *progress)
{
    struct user *user = pointer;
    k3_progress_view_draw(&user->view, progress);
    k3_events_progress(&user->events, progress);
    return stop_asked == 0;
}

static void on_note(void *pointer, const char *line)
{
    struct user *user = pointer;
    k3_message_info(&user->messages, K3_LEVEL_NORMAL, "%s", line);
    k3_events_note(&user->events, line);
}

static void on_shard(void *pointer, const char *what, const char *name)
{
    struct user *user = pointer;
    k3_message_info(&user->messages, K3_LEVEL_VERBOSE, "%s '%s'", what, name);
    k3_events_shard(&user->events, what, name);
}

int main(int argc, char **argv)
{
    struct user user = {
        .messages = {.program = "k3pack", .stream = stderr, .level = K3_LEVEL_NORMAL}};
    struct k3_pack_options options;
    struct k3_error err = {0};
    enum k3_code code = k3_pack_options_parse(argc, argv, &options, &err);
    if (code != K3_OK) {
        k3_message_error(&user.messages, "%s", err.message);
        k3_message_error(&user.messages, "see k3pack --help");
        return k3_exit_status(code);
    }
    user.messages.level = options.level;
    k3_progress_view_init(&user.view, &user.messages);
    install_handlers();
    const struct k3_observer observer = {
        .report = on_report, .note = on_note, .shard = on_shard, .user = &user};
    const struct k3_command command = {&options, &user.messages, &observer, &user.events};
    user.events.stream = options.json_lines ? stdout : NULL;
    options.jobs = options.jobs ? options.jobs : k3_team_processors();
    code = k3_command_run(&command);
    k3_progress_view_done(&user.view);
    return k3_exit_status(code);
}
