/* SPDX-License-Identifier: Apache-2.0 */
#ifndef K3_FORMAT_BASE_PROGRESS_H
#define K3_FORMAT_BASE_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

/* How libraries report on long work: they hand over counts, the command line draws them.
 * `keep_going` false means stop soon and return K3_ERR_INTERRUPTED. */
struct k3_progress {
    const char *stage;   /* "pack", "check", ...: the verb              */
    const char *subject; /* what is being worked on, or NULL            */
    uint64_t done_bytes;
    uint64_t total_bytes;
};

struct k3_observer {
    bool (*report)(void *user, const struct k3_progress *progress); /* may be NULL */
    void (*note)(void *user, const char *line);                     /* may be NULL */
    /* A shard is "packed", "released", ...; may be NULL. */
    void (*shard)(void *user, const char *what, const char *name);
    void *user;
};

static inline bool k3_report(const struct k3_observer *observer, const char *stage,
                             const char *subject, uint64_t done_bytes, uint64_t total_bytes)
{
    if (!observer || !observer->report) {
        return true;
    }
    const struct k3_progress progress = {stage, subject, done_bytes, total_bytes};
    return observer->report(observer->user, &progress);
}

static inline void k3_report_shard(const struct k3_observer *observer, const char *what,
                                   const char *name)
{
    if (observer && observer->shard) {
        observer->shard(observer->user, what, name);
    }
}

static inline void k3_note(const struct k3_observer *observer, const char *line)
{
    if (observer && observer->note) {
        observer->note(observer->user, line);
    }
}

#endif
