/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/engine/stop_text.h"

#include <stdlib.h>
#include <string.h>

enum k3_code k3_stop_text_init(const char *const *stops, size_t count,
                               struct k3_stop_text *out_stop, struct k3_error *err)
{
    struct k3_stop_text stop = {.stops = stops, .count = count};
    for (size_t i = 0; i < count; i++) {
        const size_t len = strlen(stops[i]);
        stop.longest = len > stop.longest ? len : stop.longest;
    }
    stop.pending_room = stop.longest + 64;
    stop.pending = malloc(stop.pending_room);
    if (!stop.pending) {
        return k3_fail_no_memory(err, "stop strings");
    }
    *out_stop = stop;
    return K3_OK;
}

void k3_stop_text_done(struct k3_stop_text *stop)
{
    free(stop->pending);
    *stop = (struct k3_stop_text){0};
}

/* The stop string that begins at `at` in full, or count. */
static size_t complete_at(const struct k3_stop_text *stop, size_t at)
{
    for (size_t i = 0; i < stop->count; i++) {
        const size_t len = strlen(stop->stops[i]);
        if (len <= stop->pending_len - at && memcmp(stop->pending + at, stop->stops[i], len) == 0) {
            return i;
        }
    }
    return stop->count;
}

/* Does everything from `at` on begin a stop string? */
static bool may_begin_at(const struct k3_stop_text *stop, size_t at)
{
    const size_t have = stop->pending_len - at;
    for (size_t i = 0; i < stop->count; i++) {
        if (have < strlen(stop->stops[i]) &&
            memcmp(stop->pending + at, stop->stops[i], have) == 0) {
            return true;
        }
    }
    return false;
}

static enum k3_code append(struct k3_stop_text *stop, const uint8_t *bytes, size_t len,
                           struct k3_error *err)
{
    if (len > stop->pending_room - stop->pending_len) {
        const size_t room = stop->pending_len + len + 64;
        uint8_t *larger = realloc(stop->pending, room);
        if (!larger) {
            return k3_fail_no_memory(err, "stop strings");
        }
        stop->pending = larger;
        stop->pending_room = room;
    }
    if (len > 0) {
        memcpy(stop->pending + stop->pending_len, bytes, len);
    }
    stop->pending_len += len;
    return K3_OK;
}

/* What the last call gave away leaves the front.. */
static void drop_given(struct k3_stop_text *stop)
{
    memmove(stop->pending, stop->pending + stop->given, stop->pending_len - stop->given);
    stop->pending_len -= stop->given;
    stop->given = 0;
}

enum k3_code k3_stop_text_feed(struct k3_stop_text *stop, const uint8_t *bytes, size_t len,
                               const uint8_t **out_bytes, size_t *out_len, bool *out_stopped,
                               struct k3_error *err)
{
    drop_given(stop);
    const enum k3_code code = append(stop, bytes, len, err);
    if (code != K3_OK) {
        return code;
    }
    size_t at = 0;
    bool stopped = false;
    while (at < stop->pending_len && !stopped) {
        stopped = complete_at(stop, at) < stop->count;
        if (stopped || may_begin_at(stop, at)) {
            break;
        }
        at++;
    }
    *out_bytes = stop->pending;
    *out_len = at;
    *out_stopped = stopped;
    stop->given = at;
    return K3_OK;
}

void k3_stop_text_finish(struct k3_stop_text *stop, const uint8_t **out_bytes, size_t *out_len,
                         bool *out_stopped)
{
    drop_given(stop);
    size_t at = 0;
    while (at < stop->pending_len && complete_at(stop, at) == stop->count) {
        at++;
    }
    *out_bytes = stop->pending;
    *out_len = at;
    *out_stopped = at < stop->pending_len;
    stop->given = at;
}
