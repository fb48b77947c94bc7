/* SPDX-License-Identifier: Apache-2.0 */
#ifndef K3_TESTS_UNIT_RUNTIME_KERNELS_FIXTURE_H
#define K3_TESTS_UNIT_RUNTIME_KERNELS_FIXTURE_H

#include <stddef.h>
#include <stdint.h>

#include "runtime/kernels/kernels.h"

/* What the kernel tests share: numbers, matrices with their tiles, and comparison by bits.
 * No Check in here: the program that is cross-built for Arm uses it too. */

/* The tiers that this machine can run, scalar first; ends with NULL. */
#define KT_TIERS_MAX 5
void kt_tiers(const struct k3_kernels *out_tiers[KT_TIERS_MAX]);

/* splitmix64: the same numbers on every machine. */
struct kt_random {
    uint64_t state;
};
uint64_t kt_random_next(struct kt_random *random);

enum kt_kind {
    KT_PLAIN, /* like activations: magnitudes 2^-9 .. 8                            */
    KT_WIDE,  /* every finite exponent, subnormals included                        */
    KT_NASTY, /* half of them zeros of both signs, subnormals, huge, infinite, NaN */
    KT_TINY   /* subnormals and zeros                                              */
};
#define KT_KINDS 4
const char *kt_kind_name(enum kt_kind kind);
float kt_number(struct kt_random *random, enum kt_kind kind);

/* Fresh memory that ends the program when there is none; free() it. `misalign` floats are skipped
 * at the front (kt_floats_free takes the same). */
float *kt_floats(size_t n, size_t misalign);
void kt_floats_free(float *floats, size_t misalign);
void kt_fill(float *out, size_t n, struct kt_random *random, enum kt_kind kind);

/* A matrix as plain numbers and as tiles. `scale` is [rows][cols_padded / 32], NULL for bf16;
 * `weight` [rows][cols_padded] is then without scale, and zero beyond cols. */
struct kt_matrix {
    size_t rows, cols, cols_padded;
    float *weight;
    float *scale;
    uint8_t *tiles; /* 64-byte aligned, tile_stride_bytes apart */
    size_t tile_bytes, tile_stride_bytes, tile_count;
};

/* rows a multiple of 16. `pair` leaves a tile's room after each tile, as in a w1/w3 pair. */
void kt_b16_make(struct kt_matrix *out_matrix, size_t rows, size_t cols, int pair,
                 struct kt_random *random, enum kt_kind kind);
/* Scale codes: KT_PLAIN near 127, otherwise 0 (all weights +-0) .. 252. */
void kt_m4_make(struct kt_matrix *out_matrix, size_t rows, size_t cols, int pair,
                struct kt_random *random, enum kt_kind kind);
void kt_matrix_done(struct kt_matrix *matrix);
struct k3_tile_run kt_run(const struct kt_matrix *matrix, size_t first, size_t count);

/* Same bits, or both NaN: which NaN is not promised (docs/arithmetic.md 1). */
int kt_same(float a, float b);
int kt_same_d(double a, double b);
/* Index of the first difference, n when there is none. */
size_t kt_differs_at(const float *a, const float *b, size_t n);

#endif
