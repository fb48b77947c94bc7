/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/cli/signals.h"

#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "format/tool/exit_status.h"

static volatile sig_atomic_t stop_signal;
static _Atomic(const struct k3_weight_store *) watched;

static void on_stop(int number)
{
    if (stop_signal != 0) {
        _exit(128 + number);
    }
    stop_signal = number;
}

/* Async-signal-safe text building: strings and one number. */
static size_t append(char *text, size_t at, size_t room, const char *piece)
{
    while (*piece && at + 1 < room) {
        text[at++] = *piece++;
    }
    return at;
}

static size_t append_number(char *text, size_t at, size_t room, uint64_t value)
{
    char digits[24];
    size_t first = sizeof digits;
    digits[--first] = 0;
    do {
        digits[--first] = (char)('0' + value % 10);
        value /= 10;
    } while (value > 0);
    return append(text, at, room, digits + first);
}

static void on_bus_error(int number, siginfo_t *info, void *context)
{
    (void)number;
    (void)context;
    char text[1200];
    size_t at = append(text, 0, sizeof text, "k3infer: ");
    const struct k3_weight_store *source = atomic_load(&watched);
    uint64_t offset = 0;
    const char *path = source ? k3_weight_store_locate(source, info->si_addr, &offset) : NULL;
    if (path) {
        at = append(text, at, sizeof text, "cannot read '");
        at = append(text, at, sizeof text, path);
        at = append(text, at, sizeof text, "' at byte ");
        at = append_number(text, at, sizeof text, offset);
        at = append(text, at, sizeof text,
                    ": the file shrank or the disk failed while it was in use; check it with "
                    "k3pack --verify\n");
    } else {
        at = append(text, at, sizeof text, "bus error outside the weights\n");
    }
    const ssize_t written = write(STDERR_FILENO, text, at);
    (void)written;
    _exit(path ? K3_EXIT_IO : K3_EXIT_INTERNAL);
}

void k3_signals_install(void)
{
    struct sigaction action;
    memset(&action, 0, sizeof action);
    sigemptyset(&action.sa_mask);
    action.sa_handler = on_stop;
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGHUP, &action, NULL);
    action.sa_handler = SIG_IGN;
    sigaction(SIGPIPE, &action, NULL);
    sigaction(SIGXFSZ, &action, NULL);
}

bool k3_signals_stop_requested(void)
{
    return stop_signal != 0;
}

int k3_signals_exit_status(void)
{
    return 128 + stop_signal;
}

void k3_signals_watch_mappings(const struct k3_weight_store *source)
{
    atomic_store(&watched, source);
    struct sigaction action;
    memset(&action, 0, sizeof action);
    sigemptyset(&action.sa_mask);
    action.sa_sigaction = on_bus_error;
    action.sa_flags = SA_SIGINFO;
    sigaction(SIGBUS, &action, NULL);
}
