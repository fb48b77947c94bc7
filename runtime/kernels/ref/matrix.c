/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/kernels/ref/ref.h"

/* Matrices: D128 over tiles of 16 rows (arithmetic.md 2), and the router's doubles (8). */

#define ROWS K3_TILE_ROWS

/* A line of a tile: 16 dwords, one per row. */
struct line {
    uint32_t row[ROWS];
};

static inline struct line line_at(const uint8_t *bytes)
{
    struct line line;
    memcpy(&line, bytes, sizeof line);
    return line;
}

/* B16: a line holds two columns, the even one in the low half. */
static inline float even_weight(uint32_t dword)
{
    return k3_f32_from_bits(dword << 16);
}
static inline float odd_weight(uint32_t dword)
{
    return k3_f32_from_bits(dword & 0xffff0000U);
}

static void b16_tile(const uint8_t *tile, size_t cols, const float *x, float *y)
{
    double T[ROWS] = {0};
    for (size_t block = 0; block < cols; block += K3_SUPERBLOCK) {
        float S[ROWS] = {0};
        for (size_t group = block; group < block + K3_SUPERBLOCK; group += K3_GROUP) {
            float P[ROWS] = {0};
            for (size_t col = group; col < group + K3_GROUP; col += 2) {
                const struct line line = line_at(tile + col / 2 * sizeof line);
                for (size_t r = 0; r < ROWS; r++) {
                    P[r] = fmaf(even_weight(line.row[r]), x[col], P[r]);
                    P[r] = fmaf(odd_weight(line.row[r]), x[col + 1], P[r]);
                }
            }
            for (size_t r = 0; r < ROWS; r++) {
                S[r] = S[r] + P[r];
            }
        }
        for (size_t r = 0; r < ROWS; r++) {
            T[r] = T[r] + (double)S[r];
        }
    }
    for (size_t r = 0; r < ROWS; r++) {
        y[r] = (float)T[r];
    }
}

void K3_REF(b16)(const struct k3_tile_run *run, size_t tokens, const float *x, size_t x_stride,
                 float *y, size_t y_stride)
{
    for (size_t t = 0; t < tokens; t++) {
        for (size_t i = 0; i < run->tile_count; i++) {
            b16_tile(run->tiles + i * run->tile_stride_bytes, run->cols_padded, x + t * x_stride,
                     y + t * y_stride + i * ROWS);
        }
    }
}

/* M4: E2M1 codes, sign in bit 3. Code 8 is -0. */
static const float e2m1[16] = {0.0F,  0.5F,  1.0F,  1.5F,  2.0F,  3.0F,  4.0F,  6.0F,
                               -0.0F, -0.5F, -1.0F, -1.5F, -2.0F, -3.0F, -4.0F, -6.0F};

static void m4_tile(const uint8_t *tile, size_t cols, const float *x, float *y)
{
    double T[ROWS] = {0};
    for (size_t block = 0; block < cols; block += K3_SUPERBLOCK) {
        const uint8_t *codes = tile; /* 4 groups x 16 rows */
        const uint8_t *nibbles = tile + sizeof(struct line);
        float S[ROWS] = {0};
        for (size_t g = 0; g < K3_SUPERBLOCK / K3_GROUP; g++) {
            float P[ROWS] = {0};
            for (size_t q = 0; q < K3_GROUP / 8; q++) {
                const struct line line = line_at(nibbles + (4 * g + q) * sizeof line);
                const float *x8 = x + block + K3_GROUP * g + 8 * q;
                for (size_t i = 0; i < 8; i++) {
                    for (size_t r = 0; r < ROWS; r++) {
                        P[r] = fmaf(e2m1[line.row[r] >> (4 * i) & 15], x8[i], P[r]);
                    }
                }
            }
            for (size_t r = 0; r < ROWS; r++) {
                const float scale = k3_f32_from_bits((uint32_t)codes[ROWS * g + r] << 23);
                S[r] = fmaf(P[r], scale, S[r]);
            }
        }
        for (size_t r = 0; r < ROWS; r++) {
            T[r] = T[r] + (double)S[r];
        }
        tile += k3_m4_tile_bytes(K3_SUPERBLOCK);
    }
    for (size_t r = 0; r < ROWS; r++) {
        y[r] = (float)T[r];
    }
}

void K3_REF(m4)(const struct k3_tile_run *run, size_t tokens, const float *x, size_t x_stride,
                float *y, size_t y_stride)
{
    for (size_t t = 0; t < tokens; t++) {
        for (size_t i = 0; i < run->tile_count; i++) {
            m4_tile(run->tiles + i * run->tile_stride_bytes, run->cols_padded, x + t * x_stride,
                    y + t * y_stride + i * ROWS);
        }
    }
}

static void router_tile(const uint8_t *tile, size_t cols, const float *x, double *y)
{
    double a[4][ROWS] = {{0}};
    for (size_t col = 0; col < cols; col += 4) {
        const struct line low = line_at(tile + col / 2 * sizeof low);
        const struct line high = line_at(tile + (col / 2 + 1) * sizeof high);
        for (size_t r = 0; r < ROWS; r++) {
            a[0][r] = fma((double)even_weight(low.row[r]), (double)x[col], a[0][r]);
            a[1][r] = fma((double)odd_weight(low.row[r]), (double)x[col + 1], a[1][r]);
            a[2][r] = fma((double)even_weight(high.row[r]), (double)x[col + 2], a[2][r]);
            a[3][r] = fma((double)odd_weight(high.row[r]), (double)x[col + 3], a[3][r]);
        }
    }
    for (size_t r = 0; r < ROWS; r++) {
        y[r] = (a[0][r] + a[1][r]) + (a[2][r] + a[3][r]);
    }
}

void K3_REF(b16_router)(const struct k3_tile_run *run, size_t tokens, const float *x,
                        size_t x_stride, double *y, size_t y_stride)
{
    for (size_t t = 0; t < tokens; t++) {
        for (size_t i = 0; i < run->tile_count; i++) {
            router_tile(run->tiles + i * run->tile_stride_bytes, run->cols_padded, x + t * x_stride,
                        y + t * y_stride + i * ROWS);
        }
    }
}
