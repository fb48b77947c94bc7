/* SPDX-License-Identifier: Apache-2.0 */
#ifndef K3_FORMAT_TOOL_MESSAGE_H
#define K3_FORMAT_TOOL_MESSAGE_H

#include <stdbool.h>
#include <stdio.h>

#include "format/base/error.h"
#include "format/base/problems.h"

/* What a program says to people, on stderr: "k3pack: cannot open 'x': no such file". Control
 * characters (a hostile name may hold terminal codes) become '?'. Only mains hold one of these;
 * libraries never print. */
enum k3_level {
    K3_LEVEL_QUIET,   /* -q:  errors                     */
    K3_LEVEL_NORMAL,  /*      and warnings, progress     */
    K3_LEVEL_VERBOSE, /* -v:  and what is going on       */
    K3_LEVEL_DEBUG    /* -vv: and details for debugging  */
};

struct k3_messages {
    const char *program; /* borrowed: "k3pack" */
    FILE *stream;        /* stderr             */
    enum k3_level level;
    bool line_is_open; /* a progress line is on the terminal; messages wipe it first */
};

void k3_message_error(struct k3_messages *messages, const char *format, ...) K3_PRINTF(2, 3);
void k3_message_warning(struct k3_messages *messages, const char *format, ...) K3_PRINTF(2, 3);
/* Printed when messages->level >= level. */
void k3_message_info(struct k3_messages *messages, enum k3_level level, const char *format, ...)
    K3_PRINTF(3, 4);

/* Wipes an open progress line: before anything goes to standard output. */
void k3_message_wipe_line(struct k3_messages *messages);

/* Each line as an error, and "and N more" where not all were kept. */
void k3_message_problems(struct k3_messages *messages, const struct k3_problems *problems);

#endif
