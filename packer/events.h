/* SPDX-License-Identifier: Apache-2.0 */
#ifndef K3_PACKER_EVENTS_H
#define K3_PACKER_EVENTS_H

#include "format/base/problems.h"
#include "format/base/progress.h"
#include "format/tool/json_out.h"
#include "packer/damage.h"

/* --json-lines: what happens, as it happens, one JSON object a line on standard output. Each has
 * "schema": "k3pack.event/1", "event" and "seconds" since the start; docs/packing.md lists them.
 * Zeroed is off: every call is then without effect. */
struct k3_events {
    FILE *stream; /* NULL: off */
    uint64_t began_ns, progress_ns;
    const char *stage; /* of the last progress event */
};

void k3_events_start(struct k3_events *events, const char *verb, const char *pack,
                     const char *checkpoint);
/* At most two a second, but each stage's first. */
void k3_events_progress(struct k3_events *events, const struct k3_progress *progress);
void k3_events_shard(struct k3_events *events, const char *what, const char *shard);
void k3_events_note(struct k3_events *events, const char *line);
void k3_events_damage(struct k3_events *events, const struct k3_damage *damage);
void k3_events_failure(struct k3_events *events, enum k3_code code,
                       const struct k3_problems *problems, const struct k3_error *err);

/* The last one, with the report that --json would print under "report":
 *     k3_events_done_begin(events, &out); put_report(&out, "report"); k3_events_done_end(&out) */
void k3_events_done_begin(struct k3_events *events, struct k3_json_out *out_json);
K3_MUST_CHECK enum k3_code k3_events_done_end(struct k3_json_out *json, struct k3_error *err);

/* One object per piece of damage, as in the reports. */
void k3_damage_put_json(struct k3_json_out *out, const char *key, const struct k3_damage *damage);

#endif
