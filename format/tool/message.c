/* SPDX-License-Identifier: Apache-2.0 */
#include "format/tool/message.h"

#include <stdarg.h>

/* Longer than any line of struct k3_problems. */
#define LINE_BYTES 4608

void k3_message_wipe_line(struct k3_messages *messages)
{
    if (messages->line_is_open) {
        fputs("\r\033[K", messages->stream);
        fflush(messages->stream);
        messages->line_is_open = false;
    }
}

static void print_line(struct k3_messages *messages, const char *label, const char *format,
                       va_list args) K3_PRINTF(3, 0);

static void print_line(struct k3_messages *messages, const char *label, const char *format,
                       va_list args)
{
    char line[LINE_BYTES];
    vsnprintf(line, sizeof line, format, args);
    for (char *p = line; *p; p++) {
        const unsigned char c = (unsigned char)*p;
        if (c < 0x20 || c == 0x7f) {
            *p = '?';
        }
    }
    k3_message_wipe_line(messages);
    fprintf(messages->stream, "%s: %s%s\n", messages->program, label, line);
}

void k3_message_error(struct k3_messages *messages, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    print_line(messages, "", format, args);
    va_end(args);
}

void k3_message_warning(struct k3_messages *messages, const char *format, ...)
{
    if (messages->level < K3_LEVEL_NORMAL) {
        return;
    }
    va_list args;
    va_start(args, format);
    print_line(messages, "warning: ", format, args);
    va_end(args);
}

void k3_message_info(struct k3_messages *messages, enum k3_level level, const char *format, ...)
{
    if (messages->level < level) {
        return;
    }
    va_list args;
    va_start(args, format);
    print_line(messages, "", format, args);
    va_end(args);
}

void k3_message_problems(struct k3_messages *messages, const struct k3_problems *problems)
{
    for (size_t i = 0; i < problems->line_count; i++) {
        k3_message_error(messages, "%s", problems->lines[i]);
    }
    if (problems->total > problems->line_count) {
        k3_message_error(messages, "and %zu more problems", problems->total - problems->line_count);
    }
}
