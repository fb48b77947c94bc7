/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE /* sched_getaffinity */
#include "packer/team.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

#include "format/base/assert.h"

struct k3_team {
    void (*work)(void *context, unsigned place);
    void *context;
    unsigned places, thread_count;
    pthread_t threads[K3_TEAM_THREADS_MAX];
    pthread_mutex_t lock;
    pthread_cond_t has_work, has_result;
    bool is_stopping;
    /* Counted from the first piece on: collected <= taken <= submitted. */
    unsigned long submitted, taken, collected;
    bool is_done[]; /* by place */
};

static void *run_worker(void *pointer)
{
    struct k3_team *team = pointer;
    pthread_mutex_lock(&team->lock);
    for (;;) {
        while (!team->is_stopping && team->taken == team->submitted) {
            pthread_cond_wait(&team->has_work, &team->lock);
        }
        if (team->is_stopping) {
            break;
        }
        const unsigned place = (unsigned)(team->taken++ % team->places);
        pthread_mutex_unlock(&team->lock);
        team->work(team->context, place);
        pthread_mutex_lock(&team->lock);
        team->is_done[place] = true;
        pthread_cond_signal(&team->has_result);
    }
    pthread_mutex_unlock(&team->lock);
    return NULL;
}

enum k3_code k3_team_create(unsigned threads, unsigned places,
                            void (*work)(void *context, unsigned place), void *context,
                            struct k3_team **out_team, struct k3_error *err)
{
    k3_assert(threads >= 1 && threads <= K3_TEAM_THREADS_MAX && places >= 1);
    struct k3_team *team = calloc(1, sizeof *team + places * sizeof team->is_done[0]);
    if (!team) {
        return k3_fail_no_memory(err, "team of threads");
    }
    team->work = work;
    team->context = context;
    team->places = places;
    pthread_mutex_init(&team->lock, NULL);
    pthread_cond_init(&team->has_work, NULL);
    pthread_cond_init(&team->has_result, NULL);
    while (threads > 1 && team->thread_count < threads &&
           pthread_create(&team->threads[team->thread_count], NULL, run_worker, team) == 0) {
        team->thread_count++;
    }
    *out_team = team;
    return K3_OK;
}

void k3_team_destroy(struct k3_team *team)
{
    if (!team) {
        return;
    }
    pthread_mutex_lock(&team->lock);
    team->is_stopping = true;
    pthread_cond_broadcast(&team->has_work);
    pthread_mutex_unlock(&team->lock);
    for (unsigned i = 0; i < team->thread_count; i++) {
        pthread_join(team->threads[i], NULL);
    }
    pthread_cond_destroy(&team->has_result);
    pthread_cond_destroy(&team->has_work);
    pthread_mutex_destroy(&team->lock);
    free(team);
}

bool k3_team_is_full(const struct k3_team *team)
{
    return team->submitted - team->collected == team->places;
}

bool k3_team_is_idle(const struct k3_team *team)
{
    return team->submitted == team->collected;
}

unsigned k3_team_place(const struct k3_team *team)
{
    k3_assert(!k3_team_is_full(team));
    return (unsigned)(team->submitted % team->places);
}

void k3_team_submit(struct k3_team *team)
{
    const unsigned place = k3_team_place(team);
    if (team->thread_count == 0) {
        team->work(team->context, place);
        team->is_done[place] = true;
        team->submitted++;
        return;
    }
    pthread_mutex_lock(&team->lock);
    team->is_done[place] = false;
    team->submitted++;
    pthread_cond_signal(&team->has_work);
    pthread_mutex_unlock(&team->lock);
}

unsigned k3_team_collect(struct k3_team *team)
{
    k3_assert(!k3_team_is_idle(team));
    const unsigned place = (unsigned)(team->collected % team->places);
    pthread_mutex_lock(&team->lock);
    while (!team->is_done[place]) {
        pthread_cond_wait(&team->has_result, &team->lock);
    }
    team->collected++;
    pthread_mutex_unlock(&team->lock);
    return place;
}

unsigned k3_team_processors(void)
{
    cpu_set_t set;
    const int count = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
    return count < 1 ? 1 : count > (int)K3_TEAM_THREADS_MAX ? K3_TEAM_THREADS_MAX : (unsigned)count;
}
