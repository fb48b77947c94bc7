/* SPDX-License-Identifier: Apache-2.0 */
#include "packer/events.h"

#include <string.h>

#include "format/base/clock.h"
#include "format/pack/sections.h"

#define PROGRESS_EVERY_NS UINT64_C(500000000)

static struct k3_json_out begin(struct k3_events *events, const char *event)
{
    struct k3_json_out out = {.stream = events->stream, .flat_depth = 1};
    k3_json_object_begin(&out, NULL);
    k3_json_string(&out, "schema", "k3pack.event/1");
    k3_json_string(&out, "event", event);
    k3_json_f64(&out, "seconds", (double)(k3_clock_ns() - events->began_ns) / 1e9);
    return out;
}

/* A stream that cannot be written to shows when the last event is written. */
static void end(struct k3_json_out *out)
{
    struct k3_error ignored;
    k3_json_object_end(out);
    const enum k3_code code = k3_json_out_finish(out, &ignored);
    (void)code;
}

void k3_events_start(struct k3_events *events, const char *verb, const char *pack,
                     const char *checkpoint)
{
    if (!events->stream) {
        return;
    }
    events->began_ns = k3_clock_ns();
    struct k3_json_out out = begin(events, "start");
    k3_json_string(&out, "version", K3_VERSION);
    k3_json_string(&out, "verb", verb);
    if (pack) {
        k3_json_string(&out, "pack", pack);
    }
    if (checkpoint) {
        k3_json_string(&out, "checkpoint", checkpoint);
    }
    end(&out);
}

void k3_events_progress(struct k3_events *events, const struct k3_progress *p)
{
    if (!events->stream) {
        return;
    }
    const uint64_t now = k3_clock_ns();
    const bool is_new = !events->stage || strcmp(events->stage, p->stage) != 0;
    if (!is_new && now - events->progress_ns < PROGRESS_EVERY_NS) {
        return;
    }
    events->stage = p->stage;
    events->progress_ns = now;
    struct k3_json_out out = begin(events, "progress");
    k3_json_string(&out, "stage", p->stage);
    if (p->subject) {
        k3_json_string(&out, "subject", p->subject);
    }
    k3_json_u64(&out, "done_bytes", p->done_bytes);
    k3_json_u64(&out, "total_bytes", p->total_bytes);
    end(&out);
}

void k3_events_shard(struct k3_events *events, const char *what, const char *shard)
{
    if (!events->stream) {
        return;
    }
    struct k3_json_out out = begin(events, what);
    k3_json_string(&out, "shard", shard);
    end(&out);
}

void k3_events_note(struct k3_events *events, const char *line)
{
    if (!events->stream) {
        return;
    }
    struct k3_json_out out = begin(events, "note");
    k3_json_string(&out, "message", line);
    end(&out);
}

void k3_damage_put_json(struct k3_json_out *out, const char *key, const struct k3_damage *d)
{
    k3_json_object_begin(out, key);
    k3_json_string(out, "kind", k3_damage_kind_name(d->kind));
    k3_json_string(out, "file", k3_file_kind_name(d->file));
    if (d->section) {
        k3_json_string(out, "section", k3_section_name(d->section));
    }
    if (d->layer != K3_TOP_LEVEL) {
        k3_json_u64(out, "layer", d->layer);
    }
    if (d->has_expert) {
        k3_json_u64(out, "expert", d->expert);
    }
    if (d->tensor[0]) {
        k3_json_string(out, "tensor", d->tensor);
    }
    k3_json_u64(out, "offset", d->offset);
    k3_json_u64(out, "bytes", d->bytes);
    if (d->shard) {
        k3_json_object_begin(out, "source");
        k3_json_string(out, "shard", d->shard);
        k3_json_u64(out, "offset", d->source_offset);
        k3_json_u64(out, "bytes", d->source_bytes);
        k3_json_object_end(out);
    }
    k3_json_string(out, "message", d->message);
    k3_json_object_end(out);
}

void k3_events_damage(struct k3_events *events, const struct k3_damage *damage)
{
    if (!events->stream) {
        return;
    }
    struct k3_json_out out = begin(events, "damage");
    k3_damage_put_json(&out, "damage", damage);
    end(&out);
}

void k3_events_failure(struct k3_events *events, enum k3_code code,
                       const struct k3_problems *problems, const struct k3_error *err)
{
    if (!events->stream) {
        return;
    }
    struct k3_json_out out = begin(events, "failure");
    k3_json_string(&out, "error", k3_code_name(code));
    k3_json_string(&out, "message", err->message);
    k3_json_array_begin(&out, "problems");
    for (size_t i = 0; i < problems->line_count; i++) {
        k3_json_string(&out, NULL, problems->lines[i]);
    }
    k3_json_array_end(&out);
    k3_json_u64(&out, "problem_count", problems->total);
    end(&out);
}

void k3_events_done_begin(struct k3_events *events, struct k3_json_out *out_json)
{
    *out_json = begin(events, "done");
}

enum k3_code k3_events_done_end(struct k3_json_out *json, struct k3_error *err)
{
    k3_json_object_end(json);
    return k3_json_out_finish(json, err);
}
