/* SPDX-License-Identifier: Apache-2.0 */
/* Speed of the tile transforms on whole matrices of the released model, memory to memory, on one
 * core: source bytes per second. Run: bench.format.pack.tiles [RUNS] */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "format/pack/tiles.h"

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

enum { RUNS_MAX = 99, EXPERTS = 8 };

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a;
    const double y = *(const double *)b;
    return (x > y) - (x < y);
}

static void report(const char *what, size_t rows, size_t cols, double *seconds, size_t runs,
                   size_t bytes)
{
    qsort(seconds, runs, sizeof *seconds, by_value);
    const double gb = (double)bytes * 1e-9;
    printf("%-12s %5zu x %5zu  median %6.2f  min %6.2f  max %6.2f GB/s\n", what, rows, cols,
           gb / seconds[runs / 2], gb / seconds[runs - 1], gb / seconds[0]);
}

static void bench_b16(size_t rows, size_t cols, size_t runs)
{
    const size_t bytes = 2 * rows * cols;
    uint8_t *source = malloc(bytes);
    uint8_t *tiles = malloc(bytes);
    double make[RUNS_MAX];
    double unmake[RUNS_MAX];
    double find[RUNS_MAX];
    size_t bad = 0;
    if (!source || !tiles) {
        abort();
    }
    memset(source, 1, bytes);
    memset(tiles, 2, bytes);
    for (size_t run = 0; run < runs; run++) {
        const double t0 = now_s();
        for (size_t r = 0; r < rows; r += 16) {
            k3_b16_tile_make(tiles + 2 * r * cols, source + 2 * r * cols, 2 * cols, 16, cols);
        }
        const double t1 = now_s();
        for (size_t r = 0; r < rows; r += 16) {
            k3_b16_tile_unmake(source + 2 * r * cols, 2 * cols, 16, cols, tiles + 2 * r * cols);
        }
        const double t2 = now_s();
        bad += k3_bf16_find_nonfinite(source, rows * cols) != SIZE_MAX;
        make[run] = t1 - t0;
        unmake[run] = t2 - t1;
        find[run] = now_s() - t2;
    }
    report("b16 make", rows, cols, make, runs, bytes);
    report("b16 unmake", rows, cols, unmake, runs, bytes);
    report(bad ? "bf16 (bad)" : "bf16 find", rows, cols, find, runs, bytes);
    free(source);
    free(tiles);
}

static void bench_m4(size_t rows, size_t cols, size_t runs)
{
    const size_t packed_bytes = rows * cols / 2;
    const size_t scale_bytes = rows * cols / 32;
    const size_t bytes = packed_bytes + scale_bytes;
    uint8_t *packed = malloc(packed_bytes * EXPERTS);
    uint8_t *scales = malloc(scale_bytes * EXPERTS);
    uint8_t *tiles = malloc(bytes * EXPERTS);
    double make[RUNS_MAX];
    double unmake[RUNS_MAX];
    double find[RUNS_MAX];
    size_t bad = 0;
    if (!packed || !scales || !tiles) {
        abort();
    }
    memset(packed, 1, packed_bytes * EXPERTS);
    memset(scales, 120, scale_bytes * EXPERTS);
    memset(tiles, 2, bytes * EXPERTS);
    const size_t all_rows = rows * EXPERTS; /* one matrix after the other */
    for (size_t run = 0; run < runs; run++) {
        const double t0 = now_s();
        for (size_t r = 0; r < all_rows; r += 16) {
            k3_m4_tile_make(tiles + r * cols / 32 * 17, packed + r * cols / 2,
                            scales + r * cols / 32, 16, cols);
        }
        const double t1 = now_s();
        for (size_t r = 0; r < all_rows; r += 16) {
            k3_m4_tile_unmake(packed + r * cols / 2, scales + r * cols / 32, 16, cols,
                              tiles + r * cols / 32 * 17);
        }
        const double t2 = now_s();
        bad += k3_mxfp4_find_forbidden(packed, scales, scale_bytes * EXPERTS) != SIZE_MAX;
        make[run] = t1 - t0;
        unmake[run] = t2 - t1;
        find[run] = now_s() - t2;
    }
    report("m4 make", rows, cols, make, runs, bytes * EXPERTS);
    report("m4 unmake", rows, cols, unmake, runs, bytes * EXPERTS);
    report(bad ? "mxfp4 (bad)" : "mxfp4 find", rows, cols, find, runs, bytes * EXPERTS);
    free(packed);
    free(scales);
    free(tiles);
}

int main(int argc, char **argv)
{
    const long asked = argc > 1 ? strtol(argv[1], NULL, 10) : 9;
    const size_t runs = asked < 1 ? 1 : asked > RUNS_MAX ? RUNS_MAX : (size_t)asked;
    bench_b16(12288, 7168, runs);
    bench_b16(7168, 12288, runs);
    bench_b16(7168, 6144, runs);
    bench_m4(3072, 3584, runs);
    bench_m4(3584, 3072, runs);
    return 0;
}
