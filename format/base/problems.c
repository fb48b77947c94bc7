/* SPDX-License-Identifier: Apache-2.0 */
#include "format/base/problems.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/base/assert.h"

/* A problem quotes two names at most; a line that is longer still is cut. */
#define LINE_MAX_BYTES 4096

void k3_problems_done(struct k3_problems *problems)
{
    for (size_t i = 0; i < problems->line_count; i++) {
        free(problems->lines[i]);
    }
    free(problems->lines);
    *problems = (struct k3_problems){0};
}

static bool has_room(struct k3_problems *problems)
{
    if (problems->line_count < problems->line_room) {
        return true;
    }
    const size_t room = problems->line_room ? 2 * problems->line_room : 8;
    char **lines = realloc(problems->lines, room * sizeof *lines);
    if (!lines) {
        return false;
    }
    problems->lines = lines;
    problems->line_room = room;
    return true;
}

static void make_printable(char *line)
{
    for (; *line; line++) {
        const unsigned char c = (unsigned char)*line;
        if (c < 0x20 || c == 0x7f) {
            *line = '?';
        }
    }
}

static void add_line(struct k3_problems *problems, enum k3_code code, char *line)
{
    k3_assert(code != K3_OK);
    make_printable(line);
    problems->total++;
    if (problems->code == K3_OK) {
        problems->code = code;
    }
    if (problems->line_count >= K3_PROBLEMS_LINES_MAX) {
        return;
    }
    char *copy = strdup(line);
    if (!copy || !has_room(problems)) {
        free(copy);
        problems->code = K3_ERR_NO_MEMORY;
        return;
    }
    problems->lines[problems->line_count++] = copy;
}

void k3_problems_add(struct k3_problems *problems, enum k3_code code, const char *format, ...)
{
    char line[LINE_MAX_BYTES];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    add_line(problems, code, line);
}

void k3_problems_add_error(struct k3_problems *problems, const struct k3_error *err)
{
    k3_problems_add(problems, err->code, "%s", err->message);
}

enum k3_code k3_problems_result(const struct k3_problems *problems, const char *subject,
                                struct k3_error *err)
{
    if (problems->total == 0) {
        return K3_OK;
    }
    if (problems->code == K3_ERR_NO_MEMORY || problems->line_count == 0) {
        return k3_fail_no_memory(err, subject);
    }
    const char *first = problems->lines[0];
    if (problems->total == 1) {
        return k3_fail(err, problems->code, K3_ERROR_NO_OFFSET, "%s: %s", subject, first);
    }
    return k3_fail(err, problems->code, K3_ERROR_NO_OFFSET, "%s: %zu problems, the first: %s",
                   subject, problems->total, first);
}

void k3_problem_kind_add(struct k3_problem_kind *kind, const char *format, ...)
{
    kind->seen++;
    if (kind->seen > kind->lines_max) {
        return;
    }
    char line[LINE_MAX_BYTES];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    add_line(kind->problems, kind->code, line);
}

void k3_problem_kind_end(struct k3_problem_kind *kind)
{
    if (kind->seen > kind->lines_max) {
        k3_problems_add(kind->problems, kind->code, "and %zu more %s", kind->seen - kind->lines_max,
                        kind->what);
    }
}
