/* SPDX-License-Identifier: Apache-2.0 */
#include "format/pack/tiles.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "format/base/bytes.h"
#include "format/base/ckd.h"
#include "format/pack/layout.h"

enum {
    ROWS = 16,
    LINE = 64,  /* bytes of a line: one dword per row */
    GROUP = 32, /* columns that share an MXFP4 scale  */
    SUPER = 128
};

/* Transposes 4 x 4 dwords: out[c][r] = in[r][c]. The one inner loop of all four transforms, so it
 * uses the vector registers that every x86-64 has; the plain form gives the same bytes. */
static inline void turn_4x4(uint8_t *out, size_t out_stride, const uint8_t *in, size_t in_stride)
{
#if defined(__SSE2__)
    const __m128i r0 = _mm_loadu_si128((const void *)in);
    const __m128i r1 = _mm_loadu_si128((const void *)(in + in_stride));
    const __m128i r2 = _mm_loadu_si128((const void *)(in + 2 * in_stride));
    const __m128i r3 = _mm_loadu_si128((const void *)(in + 3 * in_stride));
    const __m128i low01 = _mm_unpacklo_epi32(r0, r1);
    const __m128i low23 = _mm_unpacklo_epi32(r2, r3);
    const __m128i high01 = _mm_unpackhi_epi32(r0, r1);
    const __m128i high23 = _mm_unpackhi_epi32(r2, r3);
    _mm_storeu_si128((void *)out, _mm_unpacklo_epi64(low01, low23));
    _mm_storeu_si128((void *)(out + out_stride), _mm_unpackhi_epi64(low01, low23));
    _mm_storeu_si128((void *)(out + 2 * out_stride), _mm_unpacklo_epi64(high01, high23));
    _mm_storeu_si128((void *)(out + 3 * out_stride), _mm_unpackhi_epi64(high01, high23));
#else
    for (size_t r = 0; r < 4; r++) {
        for (size_t c = 0; c < 4; c++) {
            memcpy(out + c * out_stride + 4 * r, in + r * in_stride + 4 * c, 4);
        }
    }
#endif
}

/* The same for 16 x 16 dwords: 64 bytes of each of 16 rows to 16 lines, or back. Four rows at a
 * time and each to its end: all 16 at once, at a stride of whole pages, would fall into one set of
 * the first-level cache. */
static void turn_16x16(uint8_t *out, size_t out_stride, const uint8_t *in, size_t in_stride)
{
    for (size_t r = 0; r < 16; r += 4) {
        for (size_t c = 0; c < 16; c += 4) {
            turn_4x4(out + c * out_stride + 4 * r, out_stride, in + r * in_stride + 4 * c,
                     in_stride);
        }
    }
}

/* Columns at the front that turn_16x16 can do, 32 at a time: none where rows are missing. */
static size_t b16_whole_pairs(size_t rows, size_t cols)
{
    return rows == ROWS ? cols / 32 * 16 : 0;
}

void k3_b16_tile_make(uint8_t *out_tile, const uint8_t *source, size_t row_stride, size_t rows,
                      size_t cols)
{
    const size_t pairs = cols / 2;
    const size_t whole = b16_whole_pairs(rows, cols);
    const size_t tile_bytes = 2 * ROWS * (size_t)k3_round_up(cols, SUPER);
    memset(out_tile + whole * LINE, 0, tile_bytes - whole * LINE);
    for (size_t p = 0; p < whole; p += 16) {
        turn_16x16(out_tile + p * LINE, LINE, source + 4 * p, row_stride);
    }
    for (size_t r = 0; r < rows; r++) {
        const uint8_t *row = source + r * row_stride;
        uint8_t *lane = out_tile + 4 * r;
        for (size_t p = whole; p < pairs; p++) {
            memcpy(lane + p * LINE, row + 4 * p, 4);
        }
        if (cols % 2 != 0) {
            memcpy(lane + pairs * LINE, row + 4 * pairs, 2);
        }
    }
}

void k3_b16_tile_unmake(uint8_t *out_rows, size_t row_stride, size_t rows, size_t cols,
                        const uint8_t *tile)
{
    const size_t pairs = cols / 2;
    const size_t whole = b16_whole_pairs(rows, cols);
    for (size_t p = 0; p < whole; p += 16) {
        turn_16x16(out_rows + 4 * p, row_stride, tile + p * LINE, LINE);
    }
    for (size_t r = 0; r < rows; r++) {
        uint8_t *row = out_rows + r * row_stride;
        const uint8_t *lane = tile + 4 * r;
        for (size_t p = whole; p < pairs; p++) {
            memcpy(row + 4 * p, lane + p * LINE, 4);
        }
        if (cols % 2 != 0) {
            memcpy(row + 4 * pairs, lane + pairs * LINE, 2);
        }
    }
}

/* Address of the dword (row r, 8-column unit q of group g) and of the scale code in an M4 tile. */
static size_t m4_dword_at(size_t group, size_t q, size_t r)
{
    return group / 4 * K3_M4_SUPERBLOCK_BYTES + (1 + 4 * (group % 4) + q) * LINE + 4 * r;
}

static size_t m4_scale_at(size_t group, size_t r)
{
    return group / 4 * K3_M4_SUPERBLOCK_BYTES + ROWS * (group % 4) + r;
}

/* Groups at the front that can be done four at a time, by whole superblocks. */
static size_t m4_whole_groups(size_t rows, size_t cols)
{
    return rows == ROWS ? cols / SUPER * 4 : 0;
}

void k3_m4_tile_make(uint8_t *out_tile, const uint8_t *packed, const uint8_t *scales, size_t rows,
                     size_t cols)
{
    const size_t groups = cols / GROUP;
    const size_t whole = m4_whole_groups(rows, cols);
    const size_t whole_bytes = whole / 4 * K3_M4_SUPERBLOCK_BYTES;
    const size_t tile_bytes = (size_t)k3_round_up(cols, SUPER) / SUPER * K3_M4_SUPERBLOCK_BYTES;
    memset(out_tile + whole_bytes, 0, tile_bytes - whole_bytes);
    for (size_t g = 0; g < whole; g += 4) {
        uint8_t *line = out_tile + m4_scale_at(g, 0);
        for (size_t r = 0; r < ROWS; r++) {
            const uint32_t four = k3_le32_get(scales + r * groups + g);
            line[r] = (uint8_t)four;
            line[ROWS + r] = (uint8_t)(four >> 8);
            line[2 * ROWS + r] = (uint8_t)(four >> 16);
            line[3 * ROWS + r] = (uint8_t)(four >> 24);
        }
        turn_16x16(out_tile + m4_dword_at(g, 0, 0), LINE, packed + 16 * g, cols / 2);
    }
    for (size_t r = 0; r < rows; r++) {
        const uint8_t *row = packed + r * (cols / 2);
        for (size_t g = whole; g < groups; g++) {
            out_tile[m4_scale_at(g, r)] = scales[r * groups + g];
            for (size_t q = 0; q < 4; q++) {
                memcpy(out_tile + m4_dword_at(g, q, r), row + 16 * g + 4 * q, 4);
            }
        }
    }
}

void k3_m4_tile_unmake(uint8_t *out_packed, uint8_t *out_scales, size_t rows, size_t cols,
                       const uint8_t *tile)
{
    const size_t groups = cols / GROUP;
    const size_t whole = m4_whole_groups(rows, cols);
    for (size_t g = 0; g < whole; g += 4) {
        const uint8_t *line = tile + m4_scale_at(g, 0);
        for (size_t r = 0; r < ROWS; r++) {
            for (size_t k = 0; k < 4; k++) {
                out_scales[r * groups + g + k] = line[ROWS * k + r];
            }
        }
        turn_16x16(out_packed + 16 * g, cols / 2, tile + m4_dword_at(g, 0, 0), LINE);
    }
    for (size_t r = 0; r < rows; r++) {
        uint8_t *row = out_packed + r * (cols / 2);
        for (size_t g = whole; g < groups; g++) {
            out_scales[r * groups + g] = tile[m4_scale_at(g, r)];
            for (size_t q = 0; q < 4; q++) {
                memcpy(row + 16 * g + 4 * q, tile + m4_dword_at(g, q, r), 4);
            }
        }
    }
}

enum {
    FIND_STEP = 1024 /* a fixed count without a branch, so that compilers vectorise it */
};

static bool step_has_nonfinite(const uint8_t *bf16)
{
    const uint16_t exponent = 0x7f80;
    uint16_t bad = 0;
    for (size_t i = 0; i < FIND_STEP; i++) {
        uint16_t v;
        memcpy(&v, bf16 + 2 * i, sizeof v);
        bad |= (uint16_t)((v & exponent) == exponent);
    }
    return bad != 0;
}

size_t k3_bf16_find_nonfinite(const uint8_t *bf16, size_t count)
{
    const uint16_t exponent = 0x7f80;
    size_t i = 0;
    while (count - i >= FIND_STEP && !step_has_nonfinite(bf16 + 2 * i)) {
        i += FIND_STEP;
    }
    for (; i < count; i++) {
        if ((k3_le16_get(bf16 + 2 * i) & exponent) == exponent) {
            return i;
        }
    }
    return SIZE_MAX;
}

size_t k3_f32_find_nonfinite(const uint8_t *f32, size_t count)
{
    const uint32_t exponent = 0x7f800000;
    for (size_t i = 0; i < count; i++) {
        if ((k3_le32_get(f32 + 4 * i) & exponent) == exponent) {
            return i;
        }
    }
    return SIZE_MAX;
}

/* Are all 32 nibbles of a group 0 or 8? */
static bool group_is_zero(const uint8_t *packed)
{
    unsigned bits = 0;
    for (size_t i = 0; i < GROUP / 2; i++) {
        bits |= packed[i];
    }
    return (bits & 0x77) == 0;
}

size_t k3_mxfp4_find_forbidden(const uint8_t *packed, const uint8_t *scales, size_t groups)
{
    for (size_t g = 0; g < groups; g++) {
        /* Wraps: codes 253, 254, 255 and 0 become 0..3. */
        const uint8_t turned = (uint8_t)(scales[g] + 3);
        if (turned <= 3 && (turned != 3 || !group_is_zero(packed + g * (GROUP / 2)))) {
            return g;
        }
    }
    return SIZE_MAX;
}
