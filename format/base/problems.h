/* SPDX-License-Identifier: Apache-2.0 */
#ifndef K3_FORMAT_BASE_PROBLEMS_H
#define K3_FORMAT_BASE_PROBLEMS_H

#include <stddef.h>

#include "format/base/error.h"

/* Everything that is wrong with an input, so that people hear it at once and not one run at a time.
 * A line is for people: the subject quoted, what is wrong, what to do; no full stop. Zeroed is
 * empty. At most K3_PROBLEMS_LINES_MAX lines are held; `total` counts on, and whoever prints them
 * ends with "and N more" where total > line_count.
 *
 * Adding never fails: when memory runs out, the line is lost and `code` becomes NO_MEMORY, which
 * k3_problems_result passes on. */
#define K3_PROBLEMS_LINES_MAX 1000

struct k3_problems {
    char **lines; /* owned */
    size_t line_count;
    size_t line_room;
    size_t total;
    enum k3_code code; /* of the first problem; K3_OK while there is none */
};

void k3_problems_done(struct k3_problems *problems);

/* Control characters (a hostile name may hold terminal codes) become '?'. */
void k3_problems_add(struct k3_problems *problems, enum k3_code code, const char *format, ...)
    K3_PRINTF(3, 4);

/* The fact that `err` describes, as a problem. */
void k3_problems_add_error(struct k3_problems *problems, const struct k3_error *err);

/* K3_OK when there is no problem. Else the code of the first one; `err` says how many there are and
 * quotes the first: "subject: 3 problems, the first: ...". */
K3_MUST_CHECK enum k3_code k3_problems_result(const struct k3_problems *problems,
                                              const char *subject, struct k3_error *err);

/* One kind of problem that can come in thousands (each tensor of a shard): the first `lines_max`
 * become lines, k3_problem_kind_end adds one line "and N more <what>" for the rest. */
struct k3_problem_kind {
    struct k3_problems *problems;
    enum k3_code code;
    const char *what; /* borrowed: "tensors are missing from the index" */
    size_t lines_max;
    size_t seen;
};

void k3_problem_kind_add(struct k3_problem_kind *kind, const char *format, ...) K3_PRINTF(2, 3);
void k3_problem_kind_end(struct k3_problem_kind *kind);

#endif
