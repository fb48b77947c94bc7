/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/residency/weight_store.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

#include "format/base/assert.h"
#include "format/base/ckd.h"
#include "format/base/clock.h"
#include "runtime/residency/embedding_rows.h"
#include "runtime/residency/expert_cache.h"
#include "runtime/residency/trunk_stream.h"

struct k3_weight_store {
    const struct k3_pack *pack;
    uint64_t run_bytes, embedding_at;
    uint32_t wave;
    struct k3_backing trunk_backing, expert_backing;
    struct k3_embedding_rows rows;

    pthread_mutex_t mutex;
    pthread_cond_t work; /* for input threads: something may be there to do */
    pthread_cond_t done; /* for the reader: something has arrived           */
    bool is_stopping;
    struct k3_trunk_stream trunk;   /* under the mutex */
    struct k3_expert_cache experts; /* under the mutex */
    struct k3_store_counts counts;  /* the reader's, and input_cpu_ns under the mutex */

    pthread_t *threads;
    unsigned thread_count;
};

/* One thing to do, of either class. */
struct job {
    bool is_expert;
    struct k3_expert_job expert;
    struct k3_trunk_job trunk;
};

/* Experts first: the reader needs them within the layer. */
static bool take_job(struct k3_weight_store *s, struct job *job)
{
    job->is_expert = k3_expert_job_take(&s->experts, &job->expert);
    return job->is_expert || k3_trunk_job_take(&s->trunk, &job->trunk);
}

static void run_job(struct k3_weight_store *s, struct job *job)
{
    struct k3_error err = {.code = K3_OK};
    pthread_mutex_unlock(&s->mutex);
    const enum k3_code code = job->is_expert ? k3_expert_job_run(&s->experts, &job->expert, &err)
                                             : k3_trunk_job_run(&s->trunk, &job->trunk, &err);
    pthread_mutex_lock(&s->mutex);
    if (job->is_expert) {
        k3_expert_job_finish(&s->experts, &job->expert, code, &err);
    } else {
        k3_trunk_job_finish(&s->trunk, &job->trunk, code, &err);
    }
    pthread_cond_broadcast(&s->done);
    pthread_cond_broadcast(&s->work); /* room may have been made */
}

static uint64_t thread_cpu_ns(void)
{
    struct timespec t;
    return clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t) == 0
               ? (uint64_t)t.tv_sec * 1000000000U + (uint64_t)t.tv_nsec
               : 0;
}

static void *input_thread(void *context)
{
    struct k3_weight_store *s = context;
    uint64_t counted = 0;
    pthread_mutex_lock(&s->mutex);
    while (!s->is_stopping) {
        struct job job;
        if (take_job(s, &job)) {
            run_job(s, &job);
            continue;
        }
        const uint64_t now = thread_cpu_ns();
        s->counts.input_cpu_ns += now - counted;
        counted = now;
        pthread_cond_wait(&s->work, &s->mutex);
    }
    pthread_mutex_unlock(&s->mutex);
    return NULL;
}

static void pass_begin(void *self, bool needs_head)
{
    struct k3_weight_store *s = self;
    pthread_mutex_lock(&s->mutex);
    k3_trunk_stream_pass(&s->trunk, needs_head);
    pthread_cond_broadcast(&s->work);
    pthread_mutex_unlock(&s->mutex);
}

static enum k3_code wait_for_trunk(struct k3_weight_store *s, uint64_t offset, uint64_t bytes,
                                   struct k3_error *err)
{
    bool is_ready = false;
    enum k3_code code = k3_trunk_stream_poll(&s->trunk, offset, bytes, &is_ready, err);
    if (code != K3_OK || is_ready) {
        return code;
    }
    const uint64_t start = k3_clock_ns();
    while (code == K3_OK && !is_ready) {
        pthread_cond_wait(&s->done, &s->mutex);
        code = k3_trunk_stream_poll(&s->trunk, offset, bytes, &is_ready, err);
    }
    s->counts.trunk_wait_ns += k3_clock_ns() - start;
    return code;
}

static enum k3_code trunk_acquire(void *self, uint64_t file_offset, uint64_t bytes,
                                  const uint8_t **out_bytes, struct k3_error *err)
{
    struct k3_weight_store *s = self;
    s->counts.trunk_bytes += bytes;
    if (file_offset >= s->embedding_at) {
        s->counts.ideal_bytes += bytes;
        return k3_embedding_rows_read(&s->rows, file_offset, bytes, out_bytes, err);
    }
    k3_assert(bytes > 0 && k3_range_fits(file_offset, bytes, s->embedding_at));
    pthread_mutex_lock(&s->mutex);
    k3_trunk_stream_hold(&s->trunk, file_offset, bytes);
    pthread_cond_broadcast(&s->work);
    const enum k3_code code = wait_for_trunk(s, file_offset, bytes, err);
    if (code != K3_OK) {
        k3_trunk_stream_release(&s->trunk, file_offset, bytes);
    }
    pthread_mutex_unlock(&s->mutex);
    if (code == K3_OK) {
        *out_bytes = s->trunk_backing.base + file_offset;
    }
    return code;
}

static void trunk_release(void *self, uint64_t file_offset, uint64_t bytes)
{
    struct k3_weight_store *s = self;
    if (file_offset >= s->embedding_at) {
        return;
    }
    pthread_mutex_lock(&s->mutex);
    k3_trunk_stream_release(&s->trunk, file_offset, bytes);
    pthread_cond_broadcast(&s->work);
    pthread_mutex_unlock(&s->mutex);
}

static void experts_announce(void *self, uint32_t layer, const uint32_t *experts, uint32_t count)
{
    struct k3_weight_store *s = self;
    pthread_mutex_lock(&s->mutex);
    k3_expert_cache_announce(&s->experts, layer, experts, count);
    pthread_cond_broadcast(&s->work);
    pthread_mutex_unlock(&s->mutex);
}

static enum k3_code expert_acquire(void *self, uint32_t layer, uint32_t expert,
                                   const uint8_t **out_bytes, struct k3_error *err)
{
    struct k3_weight_store *s = self;
    const struct k3_expert_layout *layout = &s->pack->tables.layout;
    const uint64_t number = k3_expert_number(layout, layer, expert);
    bool is_ready = false;
    pthread_mutex_lock(&s->mutex);
    enum k3_code code = k3_expert_cache_take(&s->experts, number, &is_ready, err);
    const uint64_t start = k3_clock_ns();
    while (code == K3_OK && !is_ready) {
        pthread_cond_wait(&s->done, &s->mutex);
        code = k3_expert_cache_take(&s->experts, number, &is_ready, err);
    }
    s->counts.expert_wait_ns += k3_clock_ns() - start;
    pthread_mutex_unlock(&s->mutex);
    if (code == K3_OK) {
        s->counts.expert_bytes += layout->used_bytes;
        s->counts.experts++;
        *out_bytes = s->expert_backing.base + k3_expert_offset(layout, number);
    }
    return code;
}

static void expert_release(void *self, uint32_t layer, uint32_t expert)
{
    struct k3_weight_store *s = self;
    pthread_mutex_lock(&s->mutex);
    k3_expert_cache_release(&s->experts, k3_expert_number(&s->pack->tables.layout, layer, expert));
    pthread_cond_broadcast(&s->work);
    pthread_mutex_unlock(&s->mutex);
}

/* Signals that stop the program are for the main thread. */
static bool start_threads(struct k3_weight_store *s, unsigned count)
{
    sigset_t all, before;
    s->threads = calloc(count, sizeof *s->threads);
    if (!s->threads) {
        return false;
    }
    sigfillset(&all);
    sigdelset(&all, SIGBUS);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while (s->thread_count < count &&
           pthread_create(&s->threads[s->thread_count], NULL, input_thread, s) == 0) {
        s->thread_count++;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return s->thread_count > 0;
}

/* Extents much smaller than a page of 2 MiB would waste most of it. */
#define FOLIO_EXTENT_BYTES (UINT64_C(8) << 20)

static uint64_t trunk_align(const struct k3_pack_tables *tables)
{
    const uint64_t layers = tables->extents[tables->extent_count - 1].file_offset;
    return layers / tables->extent_count >= FOLIO_EXTENT_BYTES ? K3_TRUNK_EXTENT_ALIGN : 4096;
}

static enum k3_code open_parts(struct k3_weight_store *s, const struct k3_budget *budget,
                               const struct k3_store_options *options, struct k3_error *err)
{
    const struct k3_pack *pack = s->pack;
    enum k3_code code = k3_backing_open(&pack->trunk, options->io, K3_ACCESS_SEQUENTIAL,
                                        trunk_align(&pack->tables), &s->trunk_backing, err);
    if (code == K3_OK) {
        code = k3_backing_open(&pack->experts, options->io, K3_ACCESS_RANDOM,
                               pack->tables.layout.stride, &s->expert_backing, err);
    }
    if (code == K3_OK) {
        code = k3_embedding_rows_open(pack, options->check, &s->rows, err);
    }
    if (code == K3_OK) {
        code = k3_trunk_stream_init(pack, &s->trunk_backing, budget, options->check,
                                    options->pin == K3_PIN_HARD, &s->trunk, err);
    }
    if (code == K3_OK) {
        code = k3_expert_cache_init(pack, &s->expert_backing, budget->slot_count, options->check,
                                    &s->experts, err);
    }
    return code;
}

enum k3_code k3_weight_store_create(const struct k3_pack *pack, const struct k3_budget *budget,
                                    const struct k3_store_options *options,
                                    struct k3_weight_store **out_store, struct k3_error *err)
{
    struct k3_weight_store *s = calloc(1, sizeof *s);
    if (!s) {
        return k3_fail_no_memory(err, "weight store");
    }
    s->pack = pack;
    s->run_bytes = budget->run_bytes;
    s->wave = budget->wave;
    s->embedding_at = k3_trunk_find(&pack->tables, K3_TOP_LEVEL, K3_ROLE_EMBEDDING)->file_offset;
    s->rows.file = K3_FILE_CLOSED;
    s->trunk_backing.direct_fd = -1;
    s->expert_backing.direct_fd = -1;
    pthread_mutex_init(&s->mutex, NULL);
    pthread_cond_init(&s->work, NULL);
    pthread_cond_init(&s->done, NULL);
    enum k3_code code = open_parts(s, budget, options, err);
    if (code == K3_OK && !start_threads(s, options->threads)) {
        code =
            k3_fail(err, K3_ERR_NO_MEMORY, K3_ERROR_NO_OFFSET, "cannot start a thread for input");
    }
    if (code != K3_OK) {
        k3_weight_store_destroy(s);
        return code;
    }
    *out_store = s;
    return K3_OK;
}

void k3_weight_store_destroy(struct k3_weight_store *s)
{
    if (!s) {
        return;
    }
    pthread_mutex_lock(&s->mutex);
    s->is_stopping = true;
    pthread_cond_broadcast(&s->work);
    pthread_mutex_unlock(&s->mutex);
    for (unsigned i = 0; i < s->thread_count; i++) {
        pthread_join(s->threads[i], NULL);
    }
    free(s->threads);
    k3_expert_cache_done(&s->experts);
    k3_trunk_stream_done(&s->trunk);
    k3_embedding_rows_close(&s->rows);
    k3_backing_close(&s->expert_backing);
    k3_backing_close(&s->trunk_backing);
    pthread_cond_destroy(&s->done);
    pthread_cond_destroy(&s->work);
    pthread_mutex_destroy(&s->mutex);
    free(s);
}

struct k3_weight_source k3_weight_store_doors(struct k3_weight_store *store)
{
    return (struct k3_weight_source){
        .self = store,
        .run_bytes = store->run_bytes,
        .experts_at_once = store->wave,
        .pass_begin = pass_begin,
        .trunk_acquire = trunk_acquire,
        .trunk_release = trunk_release,
        .experts_announce = experts_announce,
        .expert_acquire = expert_acquire,
        .expert_release = expert_release,
    };
}

void k3_weight_store_counts(struct k3_weight_store *s, struct k3_store_counts *out_counts)
{
    pthread_mutex_lock(&s->mutex);
    struct k3_store_counts c = s->counts;
    c.trunk_read_bytes = s->trunk.read_bytes;
    c.expert_read_bytes = s->experts.read_bytes;
    c.row_read_bytes = s->rows.read_bytes;
    c.expert_misses = s->experts.misses;
    c.expert_hits = s->experts.acquired - k3_min_u64(s->experts.acquired, c.expert_misses);
    c.ideal_bytes += s->trunk.ideal_bytes + c.expert_misses * s->pack->tables.layout.used_bytes;
    c.pinned_bytes = s->trunk.pinned_bytes;
    c.checked_bytes = s->trunk.checked_bytes + s->experts.checked_bytes + s->rows.checked_bytes;
    c.check_ns = s->trunk.check_ns + s->experts.check_ns;
    c.failed_hints =
        atomic_load(&s->trunk_backing.failed_hints) + atomic_load(&s->expert_backing.failed_hints);
    c.refused_locks = s->trunk.refused_locks;
    pthread_mutex_unlock(&s->mutex);
    *out_counts = c;
}

enum k3_io_kind k3_weight_store_io(const struct k3_weight_store *store)
{
    return store->trunk_backing.kind;
}

static bool is_inside(const struct k3_backing *backing, const void *address, uint64_t *out_offset)
{
    const uintptr_t base = (uintptr_t)backing->base, at = (uintptr_t)address;
    if (at < base || at - base >= backing->len) {
        return false;
    }
    *out_offset = at - base;
    return true;
}

const char *k3_weight_store_locate(const struct k3_weight_store *store, const void *address,
                                   uint64_t *out_offset)
{
    if (is_inside(&store->trunk_backing, address, out_offset)) {
        return store->pack->trunk.path;
    }
    if (is_inside(&store->expert_backing, address, out_offset)) {
        return store->pack->experts.path;
    }
    return NULL;
}
