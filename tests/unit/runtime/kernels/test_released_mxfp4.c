/* SPDX-License-Identifier: Apache-2.0 */
/* Released bytes (layer 1, expert 0, w1, its first 64 rows) through the packer's tiles and every
 * tier's kernel give the exact released values. Needs the folder named by K3_RELEASED_DATA; skipped
 * without it. */
#include <stdlib.h>
#include <string.h>

#include "format/base/file.h"
#include "format/pack/tiles.h"
#include "runtime/kernels/kernels.h"
#include "tests/support/suite_main.h"

enum { ROWS = 64, COLS = 3584, TILES = ROWS / 16, BATCH = 16 };

static struct k3_error err;

static uint8_t *load(const char *name, size_t expected_len)
{
    char *path = k3_path_join(getenv("K3_RELEASED_DATA"), name);
    uint8_t *bytes = NULL;
    size_t len = 0;
    ck_assert_ok(k3_file_read_all(path, 1 << 24, &bytes, &len, &err));
    ck_assert_uint_eq(len, expected_len);
    free(path);
    return bytes;
}

/* Columns first..first+BATCH of the matrix, by products with unit vectors. */
static void check_columns(const struct k3_kernels *tier, const uint8_t *tiles, size_t first,
                          const float *expected)
{
    static float x[BATCH * COLS], y[BATCH * ROWS];
    memset(x, 0, sizeof x);
    for (size_t t = 0; t < BATCH; t++) {
        x[t * COLS + first + t] = 1.0F;
    }
    const struct k3_tile_run run = {tiles, k3_m4_tile_bytes(COLS), TILES, COLS};
    tier->m4(&run, BATCH, x, COLS, y, ROWS);
    for (size_t t = 0; t < BATCH; t++) {
        for (size_t r = 0; r < ROWS; r++) {
            const float value = expected[r * COLS + first + t];
            ck_assert_msg(y[t * ROWS + r] == value, "%s: row %zu column %zu: %a, released %a",
                          tier->name, r, first + t, (double)y[t * ROWS + r], (double)value);
        }
    }
}

START_TEST(released_rows)
{
    uint8_t *packed = load("mxfp4_layer1_expert0_w1.packed.u8", (size_t)ROWS * COLS / 2);
    uint8_t *scales = load("mxfp4_layer1_expert0_w1.scale.u8", (size_t)ROWS * COLS / 32);
    uint8_t *raw = load("mxfp4_layer1_expert0_w1.expected.f32", (size_t)ROWS * COLS * 4);
    float *expected = malloc((size_t)ROWS * COLS * sizeof *expected);
    uint8_t *tiles = aligned_alloc(64, TILES * k3_m4_tile_bytes(COLS));
    ck_assert(expected && tiles);
    memcpy(expected, raw, (size_t)ROWS * COLS * 4);
    for (size_t t = 0; t < TILES; t++) {
        k3_m4_tile_make(tiles + t * k3_m4_tile_bytes(COLS), packed + t * 16 * COLS / 2,
                        scales + t * 16 * COLS / 32, 16, COLS);
    }
    static const char *const names[] = {"scalar", "avx2", "avx512", "neon"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const struct k3_kernels *tier = k3_kernels_by_name(names[i]);
        for (size_t first = 0; tier && first < COLS; first += BATCH) {
            check_columns(tier, tiles, first, expected);
        }
    }
    free(tiles);
    free(expected);
    free(raw);
    free(scales);
    free(packed);
}
END_TEST

Suite *k3_suite(void)
{
    if (!getenv("K3_RELEASED_DATA")) {
        exit(77);
    }
    Suite *suite = suite_create("released MXFP4");
    TCase *golden = tcase_create("golden");
    tcase_add_test(golden, released_rows);
    suite_add_tcase(suite, golden);
    return suite;
}
