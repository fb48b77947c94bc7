/* SPDX-License-Identifier: Apache-2.0 */
#include "format/tool/progress.h"

#include <inttypes.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "format/tool/size_text.h"

#define NS_PER_S    UINT64_C(1000000000)
#define DRAW_EVERY  (NS_PER_S / 6)
#define RATE_WINDOW (10 * NS_PER_S)
#define STEP_COUNT  20U /* lines of 5 % where there is no terminal */

void k3_duration_format(uint64_t seconds, char out_text[K3_DURATION_TEXT_BYTES])
{
    const uint64_t minutes = seconds / 60, hours = minutes / 60;
    if (minutes == 0) {
        snprintf(out_text, K3_DURATION_TEXT_BYTES, "%" PRIu64 " s", seconds);
    } else if (hours == 0) {
        snprintf(out_text, K3_DURATION_TEXT_BYTES, "%" PRIu64 " min %02" PRIu64 " s", minutes,
                 seconds % 60);
    } else if (hours < 48) {
        snprintf(out_text, K3_DURATION_TEXT_BYTES, "%" PRIu64 " h %02" PRIu64 " min", hours,
                 minutes % 60);
    } else {
        snprintf(out_text, K3_DURATION_TEXT_BYTES, "%" PRIu64 " d %" PRIu64 " h", hours / 24,
                 hours % 24);
    }
}

void k3_progress_view_init(struct k3_progress_view *view, struct k3_messages *messages)
{
    *view = (struct k3_progress_view){
        .messages = messages,
        .is_terminal = isatty(fileno(messages->stream)) == 1,
    };
}

static void begin_stage(struct k3_progress_view *view, const struct k3_progress *p, uint64_t now)
{
    view->stage = p->stage;
    view->drawn_ns = 0;
    view->older.ns = view->newer.ns = now;
    view->older.bytes = view->newer.bytes = p->done_bytes;
    view->next_step =
        p->total_bytes ? (unsigned)((double)p->done_bytes * STEP_COUNT / (double)p->total_bytes) + 1
                       : STEP_COUNT + 1;
}

/* Bytes per second, 0 while it is not known. */
static double measure_rate(struct k3_progress_view *view, const struct k3_progress *p, uint64_t now)
{
    if (now - view->newer.ns > RATE_WINDOW) {
        view->older = view->newer;
        view->newer.ns = now;
        view->newer.bytes = p->done_bytes;
    }
    const uint64_t ns = now - view->older.ns;
    if (ns < NS_PER_S / 20 || p->done_bytes <= view->older.bytes) {
        return 0;
    }
    return (double)(p->done_bytes - view->older.bytes) * 1e9 / (double)ns;
}

static void format_line(const struct k3_progress *p, double rate, char *out_line, size_t len)
{
    char done[K3_SIZE_TEXT_BYTES], total[K3_SIZE_TEXT_BYTES];
    char speed[K3_SIZE_TEXT_BYTES] = "-", left[K3_DURATION_TEXT_BYTES] = "-";
    k3_size_format(p->done_bytes, done);
    k3_size_format(p->total_bytes, total);
    if (rate > 0) {
        k3_size_format((uint64_t)rate, speed);
        k3_duration_format((uint64_t)((double)(p->total_bytes - p->done_bytes) / rate), left);
    }
    const double percent =
        p->total_bytes ? 100.0 * (double)p->done_bytes / (double)p->total_bytes : 100.0;
    snprintf(out_line, len, "%s %5.1f %%  %s of %s  %s/s  %s left  %s", p->stage, percent, done,
             total, speed, left, p->subject ? p->subject : "");
}

static void draw_on_terminal(struct k3_progress_view *view, char *line)
{
    struct winsize size = {0};
    FILE *stream = view->messages->stream;
    const size_t columns =
        ioctl(fileno(stream), TIOCGWINSZ, &size) == 0 && size.ws_col > 20 ? size.ws_col - 1U : 79U;
    if (strlen(line) > columns) {
        line[columns] = '\0'; /* a wrapped line could not be wiped */
    }
    fprintf(stream, "\r%s\033[K", line);
    fflush(stream);
    view->messages->line_is_open = true;
}

static void draw_step(struct k3_progress_view *view, const struct k3_progress *p, const char *line,
                      uint64_t now)
{
    const uint64_t last = view->drawn_ns ? view->drawn_ns : view->older.ns;
    if (p->total_bytes == 0 || now - last < NS_PER_S ||
        (double)p->done_bytes * STEP_COUNT < (double)view->next_step * (double)p->total_bytes) {
        return;
    }
    view->drawn_ns = now;
    k3_message_info(view->messages, K3_LEVEL_NORMAL, "%s", line);
    view->next_step = (unsigned)((double)p->done_bytes * STEP_COUNT / (double)p->total_bytes) + 1;
}

void k3_progress_view_draw(struct k3_progress_view *view, const struct k3_progress *progress)
{
    if (view->messages->level < K3_LEVEL_NORMAL) {
        return;
    }
    const uint64_t now = k3_clock_ns();
    if (!view->stage || strcmp(view->stage, progress->stage) != 0) {
        begin_stage(view, progress, now);
    }
    struct k3_progress p = *progress;
    if (p.done_bytes > p.total_bytes) {
        p.done_bytes = p.total_bytes;
    }
    const double rate = measure_rate(view, &p, now);
    char line[256];
    if (!view->is_terminal) {
        format_line(&p, rate, line, sizeof line);
        draw_step(view, &p, line, now);
    } else if (view->drawn_ns == 0 || now - view->drawn_ns >= DRAW_EVERY) {
        view->drawn_ns = now;
        format_line(&p, rate, line, sizeof line);
        draw_on_terminal(view, line);
    }
}

void k3_progress_view_done(struct k3_progress_view *view)
{
    k3_message_wipe_line(view->messages);
}
