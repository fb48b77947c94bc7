/* SPDX-License-Identifier: Apache-2.0 */
#ifndef K3_FORMAT_TOOL_PROGRESS_H
#define K3_FORMAT_TOOL_PROGRESS_H

#include <stdint.h>

#include "format/base/clock.h"
#include "format/base/progress.h"
#include "format/tool/message.h"

/* Draws struct k3_progress. On a terminal one line that changes, at most 6 times a second:
 *
 *   pack  41.2 %  643 GiB of 1.42 TiB  1.21 GiB/s  11 min 40 s left  model-00039-of-000096.…
 *
 * elsewhere a line per 5 %, at most one a second. Nothing below K3_LEVEL_NORMAL. The rate is that
 * of the last 10 to 20 seconds, counted from where the stage began in this process (a resumed one
 * does not begin at 0).
 */
struct k3_progress_view {
    struct k3_messages *messages; /* borrowed */
    bool is_terminal;
    const char *stage; /* of the last call; a new one starts anew */
    uint64_t drawn_ns; /* 0: not yet                                   */
    unsigned next_step;
    struct {
        uint64_t ns, bytes;
    } older, newer; /* between them and now the rate is measured */
};

void k3_progress_view_init(struct k3_progress_view *view, struct k3_messages *messages);
void k3_progress_view_draw(struct k3_progress_view *view, const struct k3_progress *progress);
/* Wipes the line. */
void k3_progress_view_done(struct k3_progress_view *view);

/* "48 s", "11 min 40 s", "3 h 05 min", "2 d 4 h". */
#define K3_DURATION_TEXT_BYTES 32
void k3_duration_format(uint64_t seconds, char out_text[K3_DURATION_TEXT_BYTES]);

#endif
