/* SPDX-License-Identifier: Apache-2.0 */
#ifndef K3_RUNTIME_THREAD_POOL_H
#define K3_RUNTIME_THREAD_POOL_H

#include <stddef.h>

#include "format/base/error.h"

/* A team of threads that runs one region at a time. Items are taken from an atomic counter in runs
 * of `grain`, so a delayed worker costs one run, not the region; a worker that wakes up late finds
 * the region closed and delays nobody. Idle workers spin for about 50 us, then sleep.
 *
 * What an item computes must not depend on who computes it or when: the pool changes the clock and
 * never the bits. */
struct k3_pool;

#define K3_POOL_THREADS_MAX 1024U

/* `count` threads in all, the caller's included (>= 1). `check`, when given, is run once by each
 * thread before it does anything else, and its failure fails the call. Errors: NO_MEMORY, check's.
 */
K3_MUST_CHECK enum k3_code k3_pool_create(unsigned count,
                                          enum k3_code (*check)(struct k3_error *err),
                                          struct k3_pool **out_pool, struct k3_error *err);
void k3_pool_destroy(struct k3_pool *pool);

unsigned k3_pool_thread_count(const struct k3_pool *pool);

/* The system's number of a thread (0: the one that made the pool), for asking it about the thread.
 */
long k3_pool_thread_id(const struct k3_pool *pool, unsigned index);

/* Calls work(context, first, end, worker) until [0, item_count) is covered, and returns when all of
 * it is done. worker is in 0..thread_count-1 and is held by one thread at a time: an index for
 * scratch memory. One region at a time, from the thread that made the pool. */
void k3_pool_run(struct k3_pool *pool, size_t item_count, size_t grain,
                 void (*work)(void *context, size_t first, size_t end, unsigned worker),
                 void *context);

#endif
