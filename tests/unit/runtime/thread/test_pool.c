/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/thread/pool.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/support/suite_main.h"

#define ITEMS_MAX 5000

static struct k3_error err;

struct tally {
    unsigned char seen[ITEMS_MAX]; /* plain bytes: each item belongs to one thread at a time */
    _Atomic unsigned worker_mask;
    _Atomic unsigned inside[64];
    _Atomic bool shared_worker;
    unsigned workers;
};

static void count_items(void *context, size_t first, size_t end, unsigned worker)
{
    struct tally *tally = context;
    if (worker >= tally->workers || atomic_fetch_add(&tally->inside[worker], 1) != 0) {
        atomic_store(&tally->shared_worker, true);
    }
    for (size_t i = first; i < end; i++) {
        tally->seen[i]++;
    }
    atomic_fetch_or(&tally->worker_mask, 1U << (worker & 31));
    atomic_fetch_sub(&tally->inside[worker], 1);
}

static const unsigned thread_counts[] = {1, 2, 3, 7, 16};
static const size_t item_counts[] = {0, 1, 2, 7, 100, ITEMS_MAX};
static const size_t grains[] = {1, 3, 64, ITEMS_MAX};

START_TEST(each_item_once)
{
    struct k3_pool *pool = NULL;
    const unsigned threads = thread_counts[_i];
    ck_assert_ok(k3_pool_create(threads, NULL, &pool, &err));
    ck_assert_uint_eq(k3_pool_thread_count(pool), threads);
    static struct tally tally;
    for (size_t n = 0; n < sizeof item_counts / sizeof item_counts[0]; n++) {
        for (size_t g = 0; g < sizeof grains / sizeof grains[0]; g++) {
            memset(&tally, 0, sizeof tally);
            tally.workers = threads;
            k3_pool_run(pool, item_counts[n], grains[g], count_items, &tally);
            ck_assert(!atomic_load(&tally.shared_worker));
            for (size_t i = 0; i < ITEMS_MAX; i++) {
                ck_assert_uint_eq(tally.seen[i], i < item_counts[n]);
            }
        }
    }
    k3_pool_destroy(pool);
}
END_TEST

static void add_one(void *context, size_t first, size_t end, unsigned worker)
{
    (void)worker;
    _Atomic uint64_t *sum = context;
    atomic_fetch_add(sum, end - first);
}

START_TEST(many_small_regions)
{
    struct k3_pool *pool = NULL;
    ck_assert_ok(k3_pool_create(thread_counts[_i], NULL, &pool, &err));
    _Atomic uint64_t sum = 0;
    for (int i = 0; i < 3000; i++) {
        k3_pool_run(pool, 3, 1, add_one, &sum);
    }
    ck_assert_uint_eq(atomic_load(&sum), 9000);
    k3_pool_destroy(pool);
}
END_TEST

/* Sleeping workers are woken, and a region ends although some never came. */
START_TEST(regions_after_sleep)
{
    struct k3_pool *pool = NULL;
    ck_assert_ok(k3_pool_create(4, NULL, &pool, &err));
    _Atomic uint64_t sum = 0;
    const struct timespec nap = {.tv_nsec = 5000000};
    for (int i = 0; i < 40; i++) {
        nanosleep(&nap, NULL);
        k3_pool_run(pool, 50, 1, add_one, &sum);
    }
    ck_assert_uint_eq(atomic_load(&sum), 2000);
    k3_pool_destroy(pool);
}
END_TEST

static void slow_item(void *context, size_t first, size_t end, unsigned worker)
{
    (void)first;
    (void)end;
    struct tally *tally = context;
    atomic_fetch_or(&tally->worker_mask, 1U << worker);
    const struct timespec nap = {.tv_nsec = 3000000};
    nanosleep(&nap, NULL);
}

START_TEST(work_is_shared)
{
    struct k3_pool *pool = NULL;
    ck_assert_ok(k3_pool_create(2, NULL, &pool, &err));
    static struct tally tally;
    k3_pool_run(pool, 40, 1, slow_item, &tally);
    ck_assert_uint_eq(atomic_load(&tally.worker_mask), 3);
    k3_pool_destroy(pool);
}
END_TEST

static enum k3_code refuse(struct k3_error *e)
{
    return k3_fail(e, K3_ERR_UNSUPPORTED, K3_ERROR_NO_OFFSET, "no");
}

START_TEST(failed_check_fails_creation)
{
    struct k3_pool *pool = NULL;
    ck_assert_code(k3_pool_create(3, refuse, &pool, &err), K3_ERR_UNSUPPORTED);
    ck_assert_ptr_null(pool);
    k3_pool_destroy(NULL);
}
END_TEST

Suite *k3_suite(void)
{
    Suite *suite = suite_create("thread pool");
    TCase *behaviour = tcase_create("behaviour");
    tcase_set_timeout(behaviour, 60);
    tcase_add_loop_test(behaviour, each_item_once, 0, 5);
    tcase_add_loop_test(behaviour, many_small_regions, 0, 5);
    tcase_add_test(behaviour, regions_after_sleep);
    tcase_add_test(behaviour, work_is_shared);
    tcase_add_test(behaviour, failed_check_fails_creation);
    suite_add_tcase(suite, behaviour);
    return suite;
}
