/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE /* gettid */
#include "runtime/thread/pool.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include "format/base/assert.h"

/* The gate is one word: generation (high half), OPEN, number of workers inside. A worker enters by
 * adding one while the gate is open for a generation that it has not served; the caller closes the
 * gate when no item is left and waits until nobody is inside. */
#define GATE_OPEN       (UINT64_C(1) << 31)
#define GATE_INSIDE     (GATE_OPEN - 1)
#define GATE_GENERATION (UINT64_C(1) << 32)

#define SPIN_ROUNDS 4000 /* about 50 us of pauses */

struct worker {
    struct k3_pool *pool;
    pthread_t thread;
    unsigned index;
    long id;
    struct k3_error err;
    enum k3_code code;
};

struct k3_pool {
    _Atomic uint64_t gate;
    _Atomic size_t next;
    _Atomic unsigned sleepers;
    _Atomic bool is_stopping;
    _Atomic unsigned started;

    /* Written while the gate is closed and nobody is inside. */
    void (*work)(void *context, size_t first, size_t end, unsigned worker);
    void *context;
    size_t item_count, grain;

    pthread_mutex_t mutex;
    pthread_cond_t wake;
    enum k3_code (*check)(struct k3_error *err);
    struct worker *workers;
    unsigned worker_count; /* threads made, the caller not counted */
    long maker_id;
};

static void pause_briefly(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

static void take_items(struct k3_pool *pool, unsigned worker)
{
    for (;;) {
        const size_t first =
            atomic_fetch_add_explicit(&pool->next, pool->grain, memory_order_relaxed);
        if (first >= pool->item_count) {
            return;
        }
        const size_t left = pool->item_count - first;
        pool->work(pool->context, first, first + (left < pool->grain ? left : pool->grain), worker);
    }
}

/* Is there a region that a worker which last served `served` may enter? */
static bool gate_is_new(uint64_t gate, uint64_t served)
{
    return (gate & GATE_OPEN) != 0 && gate / GATE_GENERATION != served;
}

static void sleep_until_new(struct k3_pool *pool, uint64_t served)
{
    pthread_mutex_lock(&pool->mutex);
    atomic_fetch_add(&pool->sleepers, 1);
    while (!atomic_load(&pool->is_stopping) && !gate_is_new(atomic_load(&pool->gate), served)) {
        pthread_cond_wait(&pool->wake, &pool->mutex);
    }
    atomic_fetch_sub(&pool->sleepers, 1);
    pthread_mutex_unlock(&pool->mutex);
}

static void wait_until_new(struct k3_pool *pool, uint64_t served)
{
    for (unsigned round = 0; round < SPIN_ROUNDS; round++) {
        if (atomic_load_explicit(&pool->is_stopping, memory_order_relaxed) ||
            gate_is_new(atomic_load_explicit(&pool->gate, memory_order_relaxed), served)) {
            return;
        }
        pause_briefly();
    }
    sleep_until_new(pool, served);
}

static void serve(struct worker *worker)
{
    struct k3_pool *pool = worker->pool;
    uint64_t served = 0;
    while (!atomic_load(&pool->is_stopping)) {
        wait_until_new(pool, served);
        uint64_t gate = atomic_load(&pool->gate);
        if (!gate_is_new(gate, served)) {
            continue;
        }
        if (!atomic_compare_exchange_weak(&pool->gate, &gate, gate + 1)) {
            continue;
        }
        served = gate / GATE_GENERATION;
        take_items(pool, worker->index);
        atomic_fetch_sub(&pool->gate, 1);
    }
}

static void *worker_main(void *argument)
{
    struct worker *worker = argument;
    struct k3_pool *pool = worker->pool;
    worker->id = gettid();
    worker->code = pool->check ? pool->check(&worker->err) : K3_OK;
    atomic_fetch_add(&pool->started, 1);
    if (worker->code == K3_OK) {
        serve(worker);
    }
    return NULL;
}

unsigned k3_pool_thread_count(const struct k3_pool *pool)
{
    return pool->worker_count + 1;
}

long k3_pool_thread_id(const struct k3_pool *pool, unsigned index)
{
    k3_assert(index <= pool->worker_count);
    return index == 0 ? pool->maker_id : pool->workers[index - 1].id;
}

void k3_pool_run(struct k3_pool *pool, size_t item_count, size_t grain,
                 void (*work)(void *context, size_t first, size_t end, unsigned worker),
                 void *context)
{
    if (item_count == 0) {
        return;
    }
    grain = grain == 0 ? 1 : grain;
    if (pool->worker_count == 0 || item_count <= grain) {
        work(context, 0, item_count, 0);
        return;
    }
    k3_debug_assert((atomic_load(&pool->gate) & (GATE_OPEN | GATE_INSIDE)) == 0);
    pool->work = work;
    pool->context = context;
    pool->item_count = item_count;
    pool->grain = grain;
    atomic_store_explicit(&pool->next, 0, memory_order_relaxed);
    const uint64_t generation = atomic_load(&pool->gate) / GATE_GENERATION + 1;
    atomic_store(&pool->gate, generation * GATE_GENERATION | GATE_OPEN);
    if (atomic_load(&pool->sleepers) > 0) {
        pthread_mutex_lock(&pool->mutex);
        pthread_cond_broadcast(&pool->wake);
        pthread_mutex_unlock(&pool->mutex);
    }
    take_items(pool, 0);
    atomic_fetch_and(&pool->gate, ~GATE_OPEN);
    for (unsigned round = 0; (atomic_load(&pool->gate) & GATE_INSIDE) != 0; round++) {
        if (round < SPIN_ROUNDS) {
            pause_briefly();
        } else {
            sched_yield();
        }
    }
}

static enum k3_code start_workers(struct k3_pool *pool, unsigned count, struct k3_error *err)
{
    for (unsigned i = 0; i < count; i++) {
        struct worker *worker = &pool->workers[i];
        *worker = (struct worker){.pool = pool, .index = i + 1};
        const int failed = pthread_create(&worker->thread, NULL, worker_main, worker);
        if (failed != 0) {
            return k3_fail_errno(err, K3_ERR_NO_MEMORY, failed, K3_ERROR_NO_OFFSET,
                                 "cannot start compute thread %u", i + 1);
        }
        pool->worker_count++;
    }
    while (atomic_load(&pool->started) < pool->worker_count) {
        sched_yield();
    }
    for (unsigned i = 0; i < count; i++) {
        if (pool->workers[i].code != K3_OK) {
            if (err) {
                *err = pool->workers[i].err;
            }
            return pool->workers[i].code;
        }
    }
    return K3_OK;
}

enum k3_code k3_pool_create(unsigned count, enum k3_code (*check)(struct k3_error *err),
                            struct k3_pool **out_pool, struct k3_error *err)
{
    k3_assert(count >= 1 && count <= K3_POOL_THREADS_MAX);
    enum k3_code code = check ? check(err) : K3_OK;
    if (code != K3_OK) {
        return code;
    }
    struct k3_pool *pool = calloc(1, sizeof *pool);
    if (!pool) {
        return k3_fail_no_memory(err, "thread pool");
    }
    pthread_mutex_init(&pool->mutex, NULL);
    pthread_cond_init(&pool->wake, NULL);
    pool->check = check;
    pool->maker_id = gettid();
    pool->workers = calloc(count, sizeof *pool->workers);
    code =
        pool->workers ? start_workers(pool, count - 1, err) : k3_fail_no_memory(err, "thread pool");
    if (code != K3_OK) {
        k3_pool_destroy(pool);
        return code;
    }
    *out_pool = pool;
    return K3_OK;
}

void k3_pool_destroy(struct k3_pool *pool)
{
    if (!pool) {
        return;
    }
    atomic_store(&pool->is_stopping, true);
    pthread_mutex_lock(&pool->mutex);
    pthread_cond_broadcast(&pool->wake);
    pthread_mutex_unlock(&pool->mutex);
    for (unsigned i = 0; i < pool->worker_count; i++) {
        pthread_join(pool->workers[i].thread, NULL);
    }
    pthread_cond_destroy(&pool->wake);
    pthread_mutex_destroy(&pool->mutex);
    free(pool->workers);
    free(pool);
}
