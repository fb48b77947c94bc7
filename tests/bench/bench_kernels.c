/* SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/bench/probes.h"
#include "tests/unit/runtime/kernels/fixture.h"

/* How near the kernels are to the machine's limits, all measured in one run and in turn, so that a
 * busy machine disturbs everything alike:
 *   one row     GB/s of weights against the best read pattern, 1 and 2 threads
 *   batches     GFLOP/s against fused multiply-adds in registers, 1 thread
 *   worst case  time with zeros, subnormals and huge inputs against typical ones
 * A sample is one pass over 4 MiB (batches: less, some 0.5 ms) of a working set far beyond the
 * caches. "quiet" is the tenth percentile of time: what the machine does when it is left alone;
 * ratios are between quiet values.
 *
 * usage: bench_kernels [SAMPLES]      (default 61) */

#define WORK_BYTES   (UINT64_C(320) << 20)
#define SAMPLE_BYTES (UINT64_C(4) << 20)
#define B16_COLS     7168U
#define M4_COLS      3584U
#define TOKENS_MAX   48U
#define ITEM_TILES   4U
#define SERIES_MAX   64
#define SAMPLES_MAX  1001

enum what { READ, FMA, B16, M4 };

struct series {
    enum what what;
    int pattern; /* READ */
    const struct k3_kernels *tier;
    size_t tokens;
    int threads;
    enum kt_kind kind;
    const char *note;
    double amount; /* bytes or operations of a sample */
    double seconds[SAMPLES_MAX];
};

static uint8_t *weights; /* bits that are sound as B16 and as M4 */
static float *activations[KT_KINDS + 1];
static float *outputs[2];
static float sink;
static size_t sample_count = 61;
static struct series all_series[SERIES_MAX];
static size_t series_count;

/* What the threads of a sample share. */
static struct {
    const struct series *series;
    const uint8_t *at;
    size_t tiles, tile_bytes;
    atomic_size_t next;
    atomic_int start, done;
} job;

static void work(int thread)
{
    const struct series *s = job.series;
    if (s->what == READ) {
        const size_t share = SAMPLE_BYTES / (size_t)s->threads;
        outputs[thread][0] += (float)probe_read(job.at + (size_t)thread * share, share, s->pattern);
        return;
    }
    if (s->what == FMA) {
        probe_fma(s->tier->name, (size_t)s->amount, &sink);
        return;
    }
    const size_t cols = s->what == B16 ? B16_COLS : M4_COLS;
    for (size_t i; (i = atomic_fetch_add(&job.next, ITEM_TILES)) < job.tiles;) {
        const struct k3_tile_run run = {
            .tiles = job.at + i * job.tile_bytes,
            .tile_stride_bytes = job.tile_bytes,
            .tile_count = job.tiles - i < ITEM_TILES ? job.tiles - i : ITEM_TILES,
            .cols_padded = cols,
        };
        (s->what == B16 ? s->tier->b16 : s->tier->m4)(&run, s->tokens, activations[s->kind], cols,
                                                      outputs[thread], 16 * ITEM_TILES);
    }
}

static void *second_thread(void *unused)
{
    for (int seen = 0;;) {
        while (atomic_load(&job.start) == seen) {
        }
        seen = atomic_load(&job.start);
        if (seen < 0) {
            return unused;
        }
        work(1);
        atomic_store(&job.done, seen);
    }
}

static size_t tiles_of(const struct series *s)
{
    const size_t tiles =
        SAMPLE_BYTES / (s->what == M4 ? k3_m4_tile_bytes(M4_COLS) : k3_b16_tile_bytes(B16_COLS));
    const size_t share = tiles / (s->tokens ? s->tokens : 1) / 12 * 12; /* all shapes divide 12 */
    return s->tokens == 1 ? tiles : share < 12 ? 12 : share;
}

static double measure(const struct series *s, const uint8_t *at, int *generation)
{
    job.series = s;
    job.at = at;
    job.tile_bytes = s->what == M4 ? k3_m4_tile_bytes(M4_COLS) : k3_b16_tile_bytes(B16_COLS);
    job.tiles = tiles_of(s);
    atomic_store(&job.next, 0);
    const double start = probe_now_seconds();
    if (s->threads == 2) {
        atomic_store(&job.start, ++*generation);
    }
    work(0);
    if (s->threads == 2) {
        while (atomic_load(&job.done) != *generation) {
        }
    }
    return probe_now_seconds() - start;
}

static struct series *add(enum what what, const struct k3_kernels *tier, size_t tokens, int threads)
{
    struct series *s = &all_series[series_count++];
    *s = (struct series){.what = what, .tier = tier, .tokens = tokens, .threads = threads};
    const double tiles = (double)tiles_of(s);
    const double bytes =
        tiles * (double)(what == M4 ? k3_m4_tile_bytes(M4_COLS) : k3_b16_tile_bytes(B16_COLS));
    const double flops = tiles * 32.0 * (double)(what == M4 ? M4_COLS : B16_COLS) * (double)tokens;
    s->amount = what == READ  ? (double)SAMPLE_BYTES
                : what == FMA ? 4000.0
                : tokens == 1 ? bytes
                              : flops;
    return s;
}

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a;
    const double y = *(const double *)b;
    return (x > y) - (x < y);
}

/* All series in turn, each on the next part of the working set. */
static void run_all(int *generation)
{
    size_t part = 0;
    for (size_t i = 0; i < sample_count; i++) {
        for (size_t s = 0; s < series_count; s++, part++) {
            const uint8_t *at = weights + part % (WORK_BYTES / SAMPLE_BYTES) * SAMPLE_BYTES;
            all_series[s].seconds[i] = measure(&all_series[s], at, generation);
        }
    }
    for (size_t s = 0; s < series_count; s++) {
        struct series *series = &all_series[s];
        qsort(series->seconds, sample_count, sizeof(double), compare);
        if (series->what == FMA) { /* rounds become operations */
            series->amount = probe_fma(series->tier->name, (size_t)series->amount, &sink);
        }
    }
}

static double rate(const struct series *s, double quantile)
{
    return s->amount / s->seconds[(size_t)(quantile * (double)(sample_count - 1))] * 1e-9;
}
static double quiet(const struct series *s)
{
    return rate(s, 0.1);
}

static void print_header(const char *title, const char *unit)
{
    printf("\n%-28s %9s %9s %9s %9s   (%s)\n", title, "quiet", "median", "min", "max", unit);
}

static void print_series(const struct series *s, const char *name, double limit)
{
    printf("%-28s %9.2f %9.2f %9.2f %9.2f", name, quiet(s), rate(s, 0.5), rate(s, 1.0),
           rate(s, 0.0));
    printf(limit > 0.0 ? "   %.2f of limit\n" : "\n", quiet(s) / limit);
}

static void bench_one_row(const struct k3_kernels *const *tiers, int threads, int *generation)
{
    series_count = 0;
    for (int pattern = 0; pattern < PROBE_PATTERNS; pattern++) {
        add(READ, NULL, 1, threads)->pattern = pattern;
    }
    for (size_t t = 0; tiers[t]; t++) {
        add(B16, tiers[t], 1, threads);
        add(M4, tiers[t], 1, threads);
    }
    run_all(generation);
    char name[64];
    snprintf(name, sizeof name, "one row, %d thread%s", threads, threads > 1 ? "s" : "");
    print_header(name, "GB/s");
    double limit = 0.0;
    for (size_t i = 0; i < PROBE_PATTERNS; i++) {
        limit = quiet(&all_series[i]) > limit ? quiet(&all_series[i]) : limit;
        snprintf(name, sizeof name, "read, %s", probe_pattern_name((int)i));
        print_series(&all_series[i], name, 0.0);
    }
    for (size_t i = PROBE_PATTERNS; i < series_count; i++) {
        snprintf(name, sizeof name, "%s %s", all_series[i].tier->name,
                 all_series[i].what == B16 ? "b16" : "m4");
        print_series(&all_series[i], name, limit);
    }
}

static void bench_batches(const struct k3_kernels *tier, int *generation)
{
    static const size_t batches[] = {2, 4, 6, 8, 12, 16, 24, 48};
    series_count = 0;
    add(FMA, tier, 1, 1);
    for (size_t i = 0; i < sizeof batches / sizeof batches[0]; i++) {
        add(B16, tier, batches[i], 1);
        add(M4, tier, batches[i], 1);
    }
    run_all(generation);
    char name[64];
    snprintf(name, sizeof name, "batches, %s, 1 thread", tier->name);
    print_header(name, "GFLOP/s");
    print_series(&all_series[0], "fma in registers", 0.0);
    for (size_t i = 1; i < series_count; i++) {
        snprintf(name, sizeof name, "%s x %zu", all_series[i].what == B16 ? "b16" : "m4",
                 all_series[i].tokens);
        print_series(&all_series[i], name, quiet(&all_series[0]));
    }
}

static void bench_worst_case(const struct k3_kernels *tier, int *generation)
{
    static const char *const names[KT_KINDS] = {"typical", "all exponents", "inf, NaN, huge",
                                                "zeros and subnormals"};
    series_count = 0;
    for (size_t format = 0; format < 2; format++) {
        for (int kind = 0; kind < KT_KINDS; kind++) {
            add(format ? M4 : B16, tier, 12, 1)->kind = (enum kt_kind)kind;
        }
    }
    run_all(generation);
    char name[64];
    snprintf(name, sizeof name, "inputs x 12, %s", tier->name);
    print_header(name, "GFLOP/s");
    for (size_t i = 0; i < series_count; i++) {
        snprintf(name, sizeof name, "%s %s", i < KT_KINDS ? "b16" : "m4", names[i % KT_KINDS]);
        print_series(&all_series[i], name, quiet(&all_series[i / KT_KINDS * KT_KINDS]));
    }
}

/* Random bits with bf16 exponents near 127; an M4 tile of the same bytes has sound scales too, as
 * long as no code is above 252. */
static void setup(void)
{
    struct kt_random random = {1};
    weights = aligned_alloc(4096, WORK_BYTES);
    if (!weights) {
        fputs("bench_kernels: no memory\n", stderr);
        exit(71);
    }
    for (size_t i = 0; i < WORK_BYTES; i += 8) {
        const uint64_t bits = (kt_random_next(&random) & 0x87ff87ff87ff87ffU) | 0x3800380038003800U;
        memcpy(weights + i, &bits, sizeof bits);
    }
    for (int kind = 0; kind < KT_KINDS; kind++) {
        activations[kind] = kt_floats(TOKENS_MAX * B16_COLS, 0);
        kt_fill(activations[kind], TOKENS_MAX * B16_COLS, &random, (enum kt_kind)kind);
    }
    outputs[0] = kt_floats(TOKENS_MAX * 16 * ITEM_TILES, 0);
    outputs[1] = kt_floats(TOKENS_MAX * 16 * ITEM_TILES, 0);
}

int main(int argc, char **argv)
{
    if (argc > 1) {
        const long wanted = strtol(argv[1], NULL, 10);
        sample_count = wanted < 5 ? 5 : wanted > SAMPLES_MAX ? SAMPLES_MAX : (size_t)wanted;
    }
    setup();
    probe_print_machine();
    printf("%zu samples of %d MiB in turn, working set %d MiB, memory warm\n", sample_count,
           (int)(SAMPLE_BYTES >> 20), (int)(WORK_BYTES >> 20));
    const struct k3_kernels *tiers[KT_TIERS_MAX];
    kt_tiers(tiers);
    const struct k3_kernels *const *fast = tiers + 1; /* scalar takes seconds a sample */
    pthread_t thread;
    int generation = 0;
    bench_one_row(fast, 1, &generation);
    for (size_t t = 0; fast[t]; t++) {
        bench_batches(fast[t], &generation);
        bench_worst_case(fast[t], &generation);
    }
    if (pthread_create(&thread, NULL, second_thread, NULL) == 0) {
        bench_one_row(fast, 2, &generation);
        atomic_store(&job.start, -1);
        pthread_join(thread, NULL);
    }
    return 0;
}
