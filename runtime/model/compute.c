/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/model/compute.h"

#include "format/base/assert.h"

/* Tiles of an item: long enough to amortise taking it, short enough that a late thread costs
 * little. */
#define ITEM_TILES 8U

struct matmul_region {
    const struct k3_kernels *kernels;
    const struct k3_matmul *jobs;
    size_t count;
};

static size_t items_of(const struct k3_matmul *job)
{
    return (job->run.tile_count + ITEM_TILES - 1) / ITEM_TILES;
}

static void run_item(const struct k3_kernels *kernels, const struct k3_matmul *job, size_t item)
{
    const size_t first = item * ITEM_TILES;
    const size_t left = job->run.tile_count - first;
    struct k3_tile_run run = job->run;
    run.tiles += first * run.tile_stride_bytes;
    run.tile_count = left < ITEM_TILES ? left : ITEM_TILES;
    const size_t y_at = first * K3_TILE_ROWS;
    switch (job->kind) {
    case K3_MATMUL_B16:
        kernels->b16(&run, job->tokens, job->x, job->x_stride, job->y + y_at, job->y_stride);
        return;
    case K3_MATMUL_M4:
        kernels->m4(&run, job->tokens, job->x, job->x_stride, job->y + y_at, job->y_stride);
        return;
    case K3_MATMUL_ROUTER:
        kernels->b16_router(&run, job->tokens, job->x, job->x_stride, job->y_double + y_at,
                            job->y_stride);
        return;
    }
}

/* The job that holds item i. */
static size_t job_of(const struct matmul_region *region, size_t i)
{
    size_t low = 0, high = region->count;
    while (high - low > 1) {
        const size_t middle = low + (high - low) / 2;
        if (region->jobs[middle].first_item <= i) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return low;
}

static void run_matmul_items(void *context, size_t first, size_t end, unsigned worker)
{
    (void)worker;
    const struct matmul_region *region = context;
    for (size_t i = first; i < end; i++) {
        const struct k3_matmul *job = &region->jobs[job_of(region, i)];
        run_item(region->kernels, job, i - job->first_item);
    }
}

void k3_compute_matmuls(const struct k3_compute *compute, struct k3_matmul *jobs, size_t count)
{
    size_t items = 0;
    for (size_t i = 0; i < count; i++) {
        k3_debug_assert(jobs[i].run.tile_count > 0 && jobs[i].tokens > 0);
        jobs[i].first_item = items;
        items += items_of(&jobs[i]);
    }
    struct matmul_region region = {compute->kernels, jobs, count};
    k3_pool_run(compute->pool, items, 1, run_matmul_items, &region);
}

/* Channels of one piece of a long vector. */
#define SITU_PIECE 512U

struct situ_region {
    const struct k3_kernels *kernels;
    float *y;
    const float *gate, *up;
    size_t n, stride, pieces;
    float beta, linear_beta;
};

static void run_situ_items(void *context, size_t first, size_t end, unsigned worker)
{
    (void)worker;
    const struct situ_region *r = context;
    for (size_t i = first; i < end; i++) {
        const size_t at = i % r->pieces * SITU_PIECE;
        const size_t from = i / r->pieces * r->stride + at;
        const size_t len = r->n - at < SITU_PIECE ? r->n - at : SITU_PIECE;
        r->kernels->situ_glu(r->y + from, r->gate + from, r->up + from, len, r->beta,
                             r->linear_beta);
    }
}

void k3_compute_situ(const struct k3_compute *compute, float *y, const float *gate, const float *up,
                     size_t rows, size_t n, size_t stride, float beta, float linear_beta)
{
    const size_t pieces = (n + SITU_PIECE - 1) / SITU_PIECE;
    struct situ_region region = {compute->kernels, y,      gate, up,         n,
                                 stride,           pieces, beta, linear_beta};
    k3_pool_run(compute->pool, rows * pieces, 1, run_situ_items, &region);
}

struct each_region {
    void (*item)(void *context, size_t i, unsigned worker);
    void *context;
};

static void run_each_items(void *context, size_t first, size_t end, unsigned worker)
{
    const struct each_region *region = context;
    for (size_t i = first; i < end; i++) {
        region->item(region->context, i, worker);
    }
}

void k3_compute_each(const struct k3_compute *compute, size_t count,
                     void (*item)(void *context, size_t i, unsigned worker), void *context)
{
    struct each_region region = {item, context};
    k3_pool_run(compute->pool, count, 1, run_each_items, &region);
}
