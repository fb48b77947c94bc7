/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "tests/support/suite_main.h"
#include "tests/unit/runtime/kernels/fixture.h"
#include "tests/unit/runtime/kernels/plain.h"

/* Every matrix kernel of every tier against the plain double loop, bit for bit: every number of
 * tokens from 1 to 24, every run of tiles, padded columns, paired tiles, odd strides, all kinds of
 * numbers. */

#define TOKENS 24U
#define CANARY 12345.0F

static const struct shape {
    size_t rows, cols;
    int pair;
    const char *why;
} shapes[] = {
    {16, 128, 0, "one tile, one superblock"},
    {32, 1, 0, "nearly all columns are padding"},
    {48, 100, 1, "columns end inside a group, tiles of a pair"},
    {112, 417, 0, "seven tiles, a superblock with one group and a column"},
    {144, 640, 1, "nine tiles of a pair, five superblocks"},
};
#define SHAPES (int)(sizeof shapes / sizeof shapes[0])

/* A matrix, inputs for 24 tokens and what must come out. */
struct job {
    struct kt_matrix matrix;
    size_t x_stride;
    float *x;
    float *expected; /* [TOKENS][rows] */
};

static float *weights_of(const struct kt_matrix *m, size_t row)
{
    return m->weight + row * m->cols_padded;
}

static void job_make(struct job *job, const struct shape *shape, int is_m4, enum kt_kind kind,
                     enum kt_kind weight_kind)
{
    struct kt_random random = {shape->rows * 1000 + shape->cols + kind};
    struct kt_matrix *m = &job->matrix;
    (is_m4 ? kt_m4_make : kt_b16_make)(m, shape->rows, shape->cols, shape->pair, &random,
                                       weight_kind);
    job->x_stride = m->cols_padded + 3;
    job->x = kt_floats(TOKENS * job->x_stride, 1);
    job->expected = kt_floats(TOKENS * m->rows, 0);
    for (size_t t = 0; t < TOKENS; t++) {
        float *x = job->x + t * job->x_stride;
        kt_fill(x, m->cols, &random, kind);
        for (size_t r = 0; r < m->rows; r++) {
            const float *scale = m->scale ? m->scale + r * m->cols_padded / 32 : NULL;
            job->expected[t * m->rows + r] =
                plain_d128(weights_of(m, r), 1, x, 1, scale, m->cols_padded);
        }
    }
}

static void job_done(struct job *job)
{
    kt_floats_free(job->x, 1);
    kt_floats_free(job->expected, 0);
    kt_matrix_done(&job->matrix);
}

/* Tiles [first, first + count) for the first `tokens` tokens, and nothing else written. */
static void check_run(const struct k3_kernels *tier, const struct job *job, size_t tokens,
                      size_t first, size_t count, const char *why)
{
    const struct kt_matrix *m = &job->matrix;
    const struct k3_tile_run run = kt_run(m, first, count);
    const size_t width = 16 * count;
    const size_t y_stride = width + 5;
    float *y = kt_floats(tokens * y_stride, 1);
    for (size_t i = 0; i < tokens * y_stride; i++) {
        y[i] = CANARY;
    }
    (m->scale ? tier->m4 : tier->b16)(&run, tokens, job->x, job->x_stride, y, y_stride);
    for (size_t t = 0; t < tokens; t++) {
        const float *row = y + t * y_stride;
        const float *expected = job->expected + t * m->rows + 16 * first;
        const size_t at = kt_differs_at(row, expected, width);
        ck_assert_msg(at == width,
                      "%s %s, %s: tokens %zu tiles %zu+%zu, token %zu row %zu: %a, not %a",
                      tier->name, m->scale ? "m4" : "b16", why, tokens, first, count, t, at,
                      (double)row[at], (double)expected[at]);
        for (size_t i = width; i < y_stride; i++) {
            if (row[i] != CANARY) {
                ck_abort_msg("%s: wrote beyond its rows", tier->name);
            }
        }
    }
    kt_floats_free(y, 1);
}

static void check_shape(const struct shape *shape, int is_m4, enum kt_kind kind,
                        enum kt_kind weight_kind)
{
    const struct k3_kernels *tiers[KT_TIERS_MAX];
    kt_tiers(tiers);
    struct job job;
    job_make(&job, shape, is_m4, kind, weight_kind);
    const size_t tiles = job.matrix.tile_count;
    for (size_t i = 0; tiers[i]; i++) {
        for (size_t tokens = 1; tokens <= TOKENS; tokens++) {
            check_run(tiers[i], &job, tokens, 0, tiles, shape->why);
        }
        for (size_t first = 0; first < tiles; first++) {
            for (size_t count = 1; first + count <= tiles; count++) {
                check_run(tiers[i], &job, 1, first, count, shape->why);
                check_run(tiers[i], &job, 2 + (first + count) % 5, first, count, shape->why);
            }
        }
    }
    job_done(&job);
}

START_TEST(test_b16)
{
    for (int kind = 0; kind < KT_KINDS; kind++) {
        check_shape(&shapes[_i], 0, (enum kt_kind)kind, (enum kt_kind)kind);
    }
    check_shape(&shapes[_i], 0, KT_WIDE, KT_TINY);
}
END_TEST

START_TEST(test_m4)
{
    for (int kind = 0; kind < KT_KINDS; kind++) {
        check_shape(&shapes[_i], 1, (enum kt_kind)kind, (enum kt_kind)kind);
    }
    check_shape(&shapes[_i], 1, KT_PLAIN, KT_WIDE);
}
END_TEST

/* A group with code 0 and weights of both zeros adds nothing, whatever x is (finite). */
START_TEST(test_m4_code_zero)
{
    const struct k3_kernels *tiers[KT_TIERS_MAX];
    kt_tiers(tiers);
    struct kt_random random = {7};
    struct kt_matrix m;
    kt_m4_make(&m, 16, 256, 0, &random, KT_PLAIN);
    memset(m.tiles, 0, 64);           /* codes of the first superblock  */
    memset(m.tiles + 64, 0x80, 1024); /* +0 and -0 alternating          */
    memset(m.tiles + 1088, 0, 16);    /* first group of the second one  */
    memset(m.tiles + 1088 + 64, 0x88, 256);
    float *x = kt_floats(256, 0);
    float y[16];
    kt_fill(x, 256, &random, KT_WIDE);
    kt_fill(x + 160, 96, &random, KT_PLAIN);
    for (size_t i = 0; tiers[i]; i++) {
        const struct k3_tile_run run = kt_run(&m, 0, 1);
        tiers[i]->m4(&run, 1, x, 256, y, 16);
        for (size_t r = 0; r < 16; r++) {
            const float expected =
                plain_d128(m.weight + r * 256 + 160, 1, x + 160, 1, m.scale + r * 8 + 5, 96);
            ck_assert_msg(kt_same(y[r], expected), "%s row %zu: %a, not %a", tiers[i]->name, r,
                          (double)y[r], (double)expected);
        }
    }
    kt_floats_free(x, 0);
    kt_matrix_done(&m);
}
END_TEST

static void check_router(const struct k3_kernels *tier, const struct job *job, size_t tokens,
                         size_t first, size_t count)
{
    const struct kt_matrix *m = &job->matrix;
    const struct k3_tile_run run = kt_run(m, first, count);
    const size_t y_stride = 16 * count + 1;
    double *y = calloc(tokens * y_stride, sizeof *y);
    tier->b16_router(&run, tokens, job->x, job->x_stride, y, y_stride);
    for (size_t t = 0; t < tokens; t++) {
        for (size_t r = 0; r < 16 * count; r++) {
            const double expected = plain_router(weights_of(m, 16 * first + r),
                                                 job->x + t * job->x_stride, m->cols_padded);
            if (!kt_same_d(y[t * y_stride + r], expected)) {
                ck_abort_msg("%s router: tokens %zu tiles %zu+%zu, token %zu row %zu: %a, not %a",
                             tier->name, tokens, first, count, t, r, y[t * y_stride + r], expected);
            }
        }
        ck_assert_msg(t + 1 == tokens || y[t * y_stride + 16 * count] == 0.0,
                      "%s router: wrote beyond its rows", tier->name);
    }
    free(y);
}

START_TEST(test_router)
{
    const struct k3_kernels *tiers[KT_TIERS_MAX];
    kt_tiers(tiers);
    for (int kind = 0; kind < KT_KINDS; kind++) {
        struct job job;
        job_make(&job, &shapes[_i], 0, (enum kt_kind)kind, (enum kt_kind)kind);
        const size_t tiles = job.matrix.tile_count;
        for (size_t i = 0; tiers[i]; i++) {
            for (size_t tokens = 1; tokens <= TOKENS; tokens += tokens < 4 ? 1 : 7) {
                check_router(tiers[i], &job, tokens, 0, tiles);
            }
            for (size_t first = 0; first < tiles; first++) {
                check_router(tiers[i], &job, 2, first, tiles - first);
            }
        }
        job_done(&job);
    }
}
END_TEST

/* A token's outputs do not notice who else is in the batch, even where those are NaN. */
START_TEST(test_neighbours)
{
    const struct k3_kernels *tiers[KT_TIERS_MAX];
    kt_tiers(tiers);
    for (int is_m4 = 0; is_m4 < 2; is_m4++) {
        struct job job;
        job_make(&job, &shapes[4], is_m4, KT_NASTY, KT_PLAIN);
        const struct kt_matrix *m = &job.matrix;
        struct kt_random random = {11};
        float *own = kt_floats(m->cols_padded, 0);
        kt_fill(own, m->cols, &random, KT_PLAIN);
        float *alone = kt_floats(m->rows, 0);
        float *y = kt_floats(TOKENS * m->rows, 0);
        const struct k3_tile_run run = kt_run(m, 0, m->tile_count);
        for (size_t i = 0; tiers[i]; i++) {
            void (*matrix)(const struct k3_tile_run *, size_t, const float *, size_t, float *,
                           size_t) = is_m4 ? tiers[i]->m4 : tiers[i]->b16;
            matrix(&run, 1, own, m->cols_padded, alone, m->rows);
            for (size_t seat = 0; seat < TOKENS; seat++) {
                float *x = job.x + seat * job.x_stride;
                float *kept = kt_floats(m->cols_padded, 0);
                memcpy(kept, x, m->cols_padded * sizeof *x);
                memcpy(x, own, m->cols_padded * sizeof *x);
                matrix(&run, TOKENS, job.x, job.x_stride, y, m->rows);
                ck_assert_msg(memcmp(y + seat * m->rows, alone, m->rows * sizeof *y) == 0,
                              "%s: seat %zu of a batch changes the result", tiers[i]->name, seat);
                memcpy(x, kept, m->cols_padded * sizeof *x);
                kt_floats_free(kept, 0);
            }
        }
        kt_floats_free(own, 0);
        kt_floats_free(alone, 0);
        kt_floats_free(y, 0);
        job_done(&job);
    }
}
END_TEST

Suite *k3_suite(void)
{
    Suite *suite = suite_create("kernels: matrices");
    TCase *bits = tcase_create("bits");
    tcase_add_loop_test(bits, test_b16, 0, SHAPES);
    tcase_add_loop_test(bits, test_m4, 0, SHAPES);
    tcase_add_test(bits, test_m4_code_zero);
    tcase_add_loop_test(bits, test_router, 0, SHAPES);
    suite_add_tcase(suite, bits);
    TCase *batch = tcase_create("batch");
    tcase_add_test(batch, test_neighbours);
    suite_add_tcase(suite, batch);
    return suite;
}
