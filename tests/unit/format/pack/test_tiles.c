/* SPDX-License-Identifier: Apache-2.0 */
#include "format/pack/tiles.h"

#include <stdlib.h>
#include <string.h>

#include "format/base/bytes.h"
#include "tests/support/suite_main.h"
#include "tests/unit/format/pack/pack_fixture.h"

static size_t up(size_t value, size_t unit)
{
    return (value + unit - 1) / unit * unit;
}

static uint8_t *random_bytes(size_t len, uint64_t seed)
{
    /* Exactly this many, so that a sanitizer sees a byte too far. */
    uint8_t *bytes = malloc(len ? len : 1);
    k3_test_random_fill(&seed, bytes, len);
    return bytes;
}

/* One element of a row-major bf16 matrix, zero outside. */
static uint16_t bf16_at(const uint8_t *w, size_t stride, size_t rows, size_t cols, size_t r,
                        size_t c)
{
    return r < rows && c < cols ? k3_le16_get(w + r * stride + 2 * c) : 0;
}

/* docs/format.md 7.4: "for each column pair p a line of 64 bytes: 16 dwords, dword r =
 * W[16t+r][2p] | W[16t+r][2p+1] << 16". */
static void b16_by_the_document(uint8_t *tile, const uint8_t *w, size_t stride, size_t rows,
                                size_t cols)
{
    for (size_t p = 0; p < up(cols, 128) / 2; p++) {
        for (size_t r = 0; r < 16; r++) {
            const uint32_t even = bf16_at(w, stride, rows, cols, r, 2 * p);
            const uint32_t odd = bf16_at(w, stride, rows, cols, r, 2 * p + 1);
            k3_le32_put(tile + 64 * p + 4 * r, even | odd << 16);
        }
    }
}

static const size_t b16_cols[] = {1,  2,  3,   31,  32,  33,  48,  63,
                                  64, 65, 127, 128, 129, 200, 256, 300};
static const size_t b16_strides[] = {0, 2, 10}; /* bytes between rows */
enum { B16_COLS = sizeof b16_cols / sizeof b16_cols[0] };

START_TEST(b16_layout_and_back)
{
    const size_t cols = b16_cols[_i];
    for (size_t rows = 1; rows <= 16; rows++) {
        for (size_t s = 0; s < sizeof b16_strides / sizeof b16_strides[0]; s++) {
            const size_t stride = 2 * cols + b16_strides[s];
            const size_t source_bytes = (rows - 1) * stride + 2 * cols;
            const size_t tile_bytes = 32 * up(cols, 128);
            uint8_t *source = random_bytes(source_bytes, 100 * rows + cols);
            uint8_t *tile = random_bytes(tile_bytes, 1);
            uint8_t *expected = random_bytes(tile_bytes, 2);
            b16_by_the_document(expected, source, stride, rows, cols);
            k3_b16_tile_make(tile, source, stride, rows, cols);
            ck_assert_msg(memcmp(tile, expected, tile_bytes) == 0, "%zu x %zu", rows, cols);

            /* Back, and nothing between the rows is touched. */
            uint8_t *back = malloc(source_bytes);
            memcpy(back, source, source_bytes);
            for (size_t r = 0; r < rows; r++) {
                memset(back + r * stride, 0xaa, 2 * cols);
            }
            k3_b16_tile_unmake(back, stride, rows, cols, tile);
            ck_assert_msg(memcmp(back, source, source_bytes) == 0, "%zu x %zu", rows, cols);
            free(back);
            free(source);
            free(tile);
            free(expected);
        }
    }
}
END_TEST

static unsigned nibble_at(const uint8_t *packed, size_t cols, size_t r, size_t c)
{
    return (unsigned)packed[r * (cols / 2) + c / 2] >> (c % 2 == 0 ? 0 : 4) & 15U;
}

/* docs/format.md 8.1: per 128 columns 17 lines of 64 bytes; line 0: scale codes, byte 16g + r; line
 * 1 + 4g + q: dword r = the nibbles of columns 32g + 8q .. +7 of row r, lowest nibble first. */
static void m4_by_the_document(uint8_t *tile, const uint8_t *packed, const uint8_t *scales,
                               size_t rows, size_t cols)
{
    memset(tile, 0, up(cols, 128) / 128 * 1088);
    for (size_t r = 0; r < rows; r++) {
        for (size_t c = 0; c < cols; c++) {
            uint8_t *super = tile + c / 128 * 1088;
            const size_t g = c % 128 / 32;
            const size_t q = c % 32 / 8;
            super[16 * g + r] = scales[r * (cols / 32) + c / 32];
            uint8_t *dword = super + 64 * (1 + 4 * g + q) + 4 * r;
            const uint32_t nibble = nibble_at(packed, cols, r, c);
            k3_le32_put(dword, k3_le32_get(dword) | nibble << 4 * (c % 8));
        }
    }
}

static const size_t m4_cols[] = {32, 64, 96, 128, 160, 224, 256, 288, 384, 512};
enum { M4_COLS = sizeof m4_cols / sizeof m4_cols[0] };

START_TEST(m4_layout_and_back)
{
    const size_t cols = m4_cols[_i];
    for (size_t rows = 1; rows <= 16; rows++) {
        const size_t packed_bytes = rows * cols / 2;
        const size_t scale_bytes = rows * cols / 32;
        const size_t tile_bytes = up(cols, 128) / 128 * 1088;
        uint8_t *packed = random_bytes(packed_bytes, 1000 * rows + cols);
        uint8_t *scales = random_bytes(scale_bytes, 2000 * rows + cols);
        uint8_t *tile = random_bytes(tile_bytes, 1);
        uint8_t *expected = random_bytes(tile_bytes, 2);
        m4_by_the_document(expected, packed, scales, rows, cols);
        k3_m4_tile_make(tile, packed, scales, rows, cols);
        ck_assert_msg(memcmp(tile, expected, tile_bytes) == 0, "%zu x %zu", rows, cols);

        uint8_t *packed_back = random_bytes(packed_bytes, 3);
        uint8_t *scales_back = random_bytes(scale_bytes, 4);
        k3_m4_tile_unmake(packed_back, scales_back, rows, cols, tile);
        ck_assert_msg(memcmp(packed_back, packed, packed_bytes) == 0, "%zu x %zu", rows, cols);
        ck_assert_msg(memcmp(scales_back, scales, scale_bytes) == 0, "%zu x %zu", rows, cols);
        free(packed_back);
        free(scales_back);
        free(packed);
        free(scales);
        free(tile);
        free(expected);
    }
}
END_TEST

static const struct {
    uint16_t bits;
    bool is_finite;
    const char *why;
} bf16s[] = {
    {0x0000, true, "zero"},      {0x8000, true, "minus zero"},      {0x0001, true, "subnormal"},
    {0x7f7f, true, "largest"},   {0xff7f, true, "most negative"},   {0x7f00, true, "exponent 254"},
    {0x7f80, false, "infinity"}, {0xff80, false, "minus infinity"}, {0x7f81, false, "signalling"},
    {0x7fc0, false, "quiet"},    {0xffff, false, "all bits"},
};

/* Alone at each place of a buffer that takes every path of the search. */
START_TEST(bf16_nonfinite)
{
    static const size_t counts[] = {1, 2, 1023, 1024, 1025, 3000, 4096};
    for (size_t c = 0; c < sizeof counts / sizeof counts[0]; c++) {
        const size_t count = counts[c];
        uint8_t *bytes = calloc(count, 2);
        for (size_t at = 0; at < count; at++) {
            k3_le16_put(bytes + 2 * at, bf16s[_i].bits);
            const size_t found = k3_bf16_find_nonfinite(bytes, count);
            if (found != (bf16s[_i].is_finite ? SIZE_MAX : at)) {
                ck_abort_msg("%s at %zu of %zu: %zu", bf16s[_i].why, at, count, found);
            }
            k3_le16_put(bytes + 2 * at, 0x3f80);
        }
        free(bytes);
    }
}
END_TEST

START_TEST(bf16_every_value)
{
    for (uint32_t bits = 0; bits < 0x10000; bits++) {
        uint8_t bytes[2];
        k3_le16_put(bytes, (uint16_t)bits);
        const bool is_finite = (bits >> 7 & 0xff) != 0xff;
        if (k3_bf16_find_nonfinite(bytes, 1) != (is_finite ? SIZE_MAX : 0)) {
            ck_abort_msg("bits %04x", bits);
        }
    }
}
END_TEST

START_TEST(first_of_several)
{
    uint8_t bytes[2 * 5000] = {0};
    k3_le16_put(bytes + 2 * 4500, 0x7f80);
    k3_le16_put(bytes + 2 * 2222, 0xffc0);
    ck_assert_uint_eq(k3_bf16_find_nonfinite(bytes, 5000), 2222);
    ck_assert_uint_eq(k3_bf16_find_nonfinite(bytes + 2 * 2223, 2777), 4500 - 2223);
    ck_assert_uint_eq(k3_bf16_find_nonfinite(bytes, 2222), SIZE_MAX);
    ck_assert_uint_eq(k3_bf16_find_nonfinite(bytes, 0), SIZE_MAX);
    ck_assert_uint_eq(k3_f32_find_nonfinite(bytes, 0), SIZE_MAX);
}
END_TEST

static const struct {
    uint32_t bits;
    bool is_finite;
    const char *why;
} f32s[] = {
    {0x00000000, true, "zero"},
    {0x80000000, true, "minus zero"},
    {0x00000001, true, "subnormal"},
    {0x7f7fffff, true, "largest"},
    {0x7f800000, false, "infinity"},
    {0xff800000, false, "minus infinity"},
    {0x7f800001, false, "signalling"},
    {0xffffffff, false, "all bits"},
    {0x0000ff80, true, "a bf16 infinity in the low half"},
};

START_TEST(f32_nonfinite)
{
    uint8_t bytes[4 * 37] = {0};
    for (size_t at = 0; at < 37; at++) {
        k3_le32_put(bytes + 4 * at, f32s[_i].bits);
        ck_assert_msg(k3_f32_find_nonfinite(bytes, 37) == (f32s[_i].is_finite ? SIZE_MAX : at),
                      "%s at %zu", f32s[_i].why, at);
        k3_le32_put(bytes + 4 * at, 0);
    }
}
END_TEST

/* docs/format.md 8.1, last paragraph: one nibble of a group that is zero elsewhere. */
static void check_code(unsigned code, unsigned nibble, size_t column)
{
    uint8_t packed[3][16] = {{0}};
    const uint8_t scales[3] = {127, (uint8_t)code, 127};
    packed[1][column / 2] = (uint8_t)(nibble << (column % 2 == 0 ? 0 : 4));
    /* the neighbours are full of nibbles that matter */
    memset(packed[0], 0x77, 16);
    memset(packed[2], 0x77, 16);
    const bool is_zero = nibble == 0 || nibble == 8;
    const bool is_bad = code >= 253 || (code == 0 && !is_zero);
    if (k3_mxfp4_find_forbidden(packed[0], scales, 3) != (is_bad ? 1 : SIZE_MAX)) {
        ck_abort_msg("code %u, nibble %u in column %zu", code, nibble, column);
    }
}

START_TEST(mxfp4_every_code)
{
    for (unsigned code = 0; code < 256; code++) {
        for (unsigned nibble = 0; nibble < 16; nibble++) {
            for (size_t column = 0; column < 32; column++) {
                check_code(code, nibble, column);
            }
        }
    }
}
END_TEST

START_TEST(mxfp4_zero_groups)
{
    uint8_t packed[2 * 16];
    uint8_t scales[2] = {0, 0};
    memset(packed, 0x80, sizeof packed);
    packed[3] = 0x08;
    packed[20] = 0x88;
    ck_assert_uint_eq(k3_mxfp4_find_forbidden(packed, scales, 2), SIZE_MAX);
    packed[31] = 0x90;
    ck_assert_uint_eq(k3_mxfp4_find_forbidden(packed, scales, 2), 1);
    ck_assert_uint_eq(k3_mxfp4_find_forbidden(packed, scales, 1), SIZE_MAX);
    ck_assert_uint_eq(k3_mxfp4_find_forbidden(packed, scales, 0), SIZE_MAX);
}
END_TEST

Suite *k3_suite(void)
{
    Suite *suite = suite_create("tiles");
    TCase *round = tcase_create("layout and round trip");
    tcase_add_loop_test(round, b16_layout_and_back, 0, B16_COLS);
    tcase_add_loop_test(round, m4_layout_and_back, 0, M4_COLS);
    suite_add_tcase(suite, round);
    TCase *refused = tcase_create("what a pack never holds");
    tcase_add_loop_test(refused, bf16_nonfinite, 0, sizeof bf16s / sizeof bf16s[0]);
    tcase_add_test(refused, bf16_every_value);
    tcase_add_test(refused, first_of_several);
    tcase_add_loop_test(refused, f32_nonfinite, 0, sizeof f32s / sizeof f32s[0]);
    tcase_add_test(refused, mxfp4_every_code);
    tcase_add_test(refused, mxfp4_zero_groups);
    suite_add_tcase(suite, refused);
    return suite;
}
