/* SPDX-License-Identifier: Apache-2.0 */
#ifndef K3_PACKER_TEAM_H
#define K3_PACKER_TEAM_H

#include <stdbool.h>

#include "format/base/error.h"

/* Work that is handed in piece by piece, done by threads in any order and taken back in the order
 * in which it was handed in: what comes out does not depend on who did it. The pieces are places of
 * a ring that the caller keeps; place numbers are 0..places-1.
 *
 *     while (there is more, or !k3_team_is_idle(team)) {
 *         if (there is more && !k3_team_is_full(team)) {
 *             fill(&ring[k3_team_place(team)]);
 *             k3_team_submit(team);
 *         } else {
 *             use(&ring[k3_team_collect(team)]);
 *         }
 *     }
 *
 * All of these are called from one thread. */
struct k3_team;

#define K3_TEAM_THREADS_MAX 64U

/* threads 1: no thread is made, the work is done in k3_team_submit. Fewer threads than asked for
 * are accepted where the system gives no more. Errors: NO_MEMORY. */
K3_MUST_CHECK enum k3_code k3_team_create(unsigned threads, unsigned places,
                                          void (*work)(void *context, unsigned place),
                                          void *context, struct k3_team **out_team,
                                          struct k3_error *err);

/* Waits for pieces that are being done; those that nobody began are dropped. NULL is fine. */
void k3_team_destroy(struct k3_team *team);

bool k3_team_is_full(const struct k3_team *team);
bool k3_team_is_idle(const struct k3_team *team);

/* The place to fill next; the team must not be full. */
unsigned k3_team_place(const struct k3_team *team);
void k3_team_submit(struct k3_team *team);

/* Waits for the oldest piece; the team must not be idle. Its place is free for the next one. */
unsigned k3_team_collect(struct k3_team *team);

/* Processors that this process may use, 1..K3_TEAM_THREADS_MAX. */
unsigned k3_team_processors(void);

#endif
