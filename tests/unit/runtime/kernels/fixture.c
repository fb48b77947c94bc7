/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/runtime/kernels/fixture.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "format/base/assert.h"
#include "format/base/bytes.h"

void kt_tiers(const struct k3_kernels *out_tiers[KT_TIERS_MAX])
{
    static const char *const names[] = {"scalar", "avx2", "avx512", "neon"};
    size_t count = 0;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const struct k3_kernels *tier = k3_kernels_by_name(names[i]);
        if (tier) {
            out_tiers[count++] = tier;
        }
    }
    out_tiers[count] = NULL;
}

uint64_t kt_random_next(struct kt_random *random)
{
    uint64_t z = random->state += 0x9e3779b97f4a7c15U;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9U;
    z = (z ^ z >> 27) * 0x94d049bb133111ebU;
    return z ^ z >> 31;
}

const char *kt_kind_name(enum kt_kind kind)
{
    static const char *const names[KT_KINDS] = {"plain", "wide", "nasty", "tiny"};
    return names[kind];
}

/* sign, exponent and mantissa from the random word r, exponent field in [low, low + count). */
static float assemble(uint64_t r, uint32_t low, uint32_t count)
{
    const uint32_t exponent = low + (uint32_t)(r >> 40) % count;
    return k3_f32_from_bits((uint32_t)(r & 0x807fffffU) | exponent << 23);
}

static float nasty(uint64_t r)
{
    static const uint32_t bits[] = {0x00000000, 0x80000000, 0x00000001, 0x80000001, 0x007fffff,
                                    0x807fffff, 0x00800000, 0x7f7fffff, 0xff7fffff, 0x7f800000,
                                    0xff800000, 0x7fc00000, 0x3f800000, 0xbf800000, 0x7f000000};
    return k3_f32_from_bits(bits[(r >> 33) % (sizeof bits / sizeof bits[0])]);
}

float kt_number(struct kt_random *random, enum kt_kind kind)
{
    const uint64_t r = kt_random_next(random);
    switch (kind) {
    case KT_WIDE:
        return assemble(r, 0, 255);
    case KT_NASTY:
        return r >> 63 ? nasty(r) : assemble(r, 0, 255);
    case KT_TINY:
        return r >> 63 ? 0.0F : assemble(r, 0, 1);
    case KT_PLAIN:
        break;
    }
    return assemble(r, 118, 12);
}

static void *memory(size_t bytes)
{
    const size_t rounded = (bytes + 64) / 64 * 64;
    void *p = aligned_alloc(64, rounded);
    k3_assert(p != NULL);
    memset(p, 0, rounded);
    return p;
}

float *kt_floats(size_t n, size_t misalign)
{
    return (float *)memory((n + misalign) * sizeof(float)) + misalign;
}

void kt_floats_free(float *floats, size_t misalign)
{
    free(floats ? floats - misalign : NULL);
}

void kt_fill(float *out, size_t n, struct kt_random *random, enum kt_kind kind)
{
    for (size_t i = 0; i < n; i++) {
        out[i] = kt_number(random, kind);
    }
}

static size_t padded(size_t cols)
{
    return (cols + K3_TILE_COLS - 1) / K3_TILE_COLS * K3_TILE_COLS;
}

static void matrix_init(struct kt_matrix *m, size_t rows, size_t cols, int pair, size_t tile_bytes)
{
    m->rows = rows;
    m->cols = cols;
    m->cols_padded = padded(cols);
    m->weight = kt_floats(rows * m->cols_padded, 0);
    m->scale = NULL;
    m->tile_bytes = tile_bytes;
    m->tile_stride_bytes = tile_bytes * (pair ? 2 : 1);
    m->tile_count = rows / K3_TILE_ROWS;
    m->tiles = memory(m->tile_count * m->tile_stride_bytes);
}

void kt_b16_make(struct kt_matrix *out_matrix, size_t rows, size_t cols, int pair,
                 struct kt_random *random, enum kt_kind kind)
{
    struct kt_matrix *m = out_matrix;
    matrix_init(m, rows, cols, pair, k3_b16_tile_bytes(padded(cols)));
    for (size_t r = 0; r < rows; r++) {
        uint8_t *tile = m->tiles + r / 16 * m->tile_stride_bytes;
        for (size_t c = 0; c < cols; c++) {
            /* Keep the quiet bit of a NaN; bf16 is the upper half. */
            const uint32_t bits = k3_f32_to_bits(kt_number(random, kind)) >> 16;
            m->weight[r * m->cols_padded + c] = k3_bf16_widen((uint16_t)bits);
            k3_le16_put(tile + 64 * (c / 2) + 4 * (r % 16) + 2 * (c % 2), (uint16_t)bits);
        }
    }
}

static const float e2m1_magnitude[8] = {0.0F, 0.5F, 1.0F, 1.5F, 2.0F, 3.0F, 4.0F, 6.0F};

void kt_m4_make(struct kt_matrix *out_matrix, size_t rows, size_t cols, int pair,
                struct kt_random *random, enum kt_kind kind)
{
    struct kt_matrix *m = out_matrix;
    matrix_init(m, rows, cols, pair, k3_m4_tile_bytes(padded(cols)));
    m->scale = kt_floats(rows * m->cols_padded / 32, 0);
    for (size_t r = 0; r < rows; r++) {
        uint8_t *tile = m->tiles + r / 16 * m->tile_stride_bytes;
        for (size_t group = 0; group < m->cols_padded / 32; group++) {
            const uint64_t word = kt_random_next(random);
            const uint8_t code = (uint8_t)(kind == KT_PLAIN ? 120 + word % 16
                                           : word % 4       ? word / 4 % 253
                                                            : 0);
            uint8_t *block = tile + group / 4 * 1088;
            block[16 * (group % 4) + r % 16] = code;
            m->scale[r * (m->cols_padded / 32) + group] =
                code ? (float)ldexp(1.0, (int)code - 127) : 0.0F;
            for (size_t i = 0; i < 32 && 32 * group + i < cols; i++) {
                uint64_t nibble = kt_random_next(random) >> 60;
                nibble &= code ? 15U : 8U;
                m->weight[r * m->cols_padded + 32 * group + i] =
                    nibble & 8 ? -e2m1_magnitude[nibble & 7] : e2m1_magnitude[nibble];
                uint8_t *byte =
                    block + 64 * (1 + 4 * (group % 4) + i / 8) + 4 * (r % 16) + i % 8 / 2;
                *byte = (uint8_t)(*byte | nibble << 4 * (i % 2));
            }
        }
    }
}

void kt_matrix_done(struct kt_matrix *matrix)
{
    free(matrix->weight);
    free(matrix->scale);
    free(matrix->tiles);
}

struct k3_tile_run kt_run(const struct kt_matrix *matrix, size_t first, size_t count)
{
    return (struct k3_tile_run){
        .tiles = matrix->tiles + first * matrix->tile_stride_bytes,
        .tile_stride_bytes = matrix->tile_stride_bytes,
        .tile_count = count,
        .cols_padded = matrix->cols_padded,
    };
}

int kt_same(float a, float b)
{
    return k3_f32_to_bits(a) == k3_f32_to_bits(b) || (isnan(a) && isnan(b));
}

int kt_same_d(double a, double b)
{
    return memcmp(&a, &b, sizeof a) == 0 || (isnan(a) && isnan(b));
}

size_t kt_differs_at(const float *a, const float *b, size_t n)
{
    size_t i = 0;
    while (i < n && kt_same(a[i], b[i])) {
        i++;
    }
    return i;
}
