/* SPDX-License-Identifier: Apache-2.0 */
#ifndef K3_RUNTIME_KERNELS_LANES_MLA_H
#define K3_RUNTIME_KERNELS_LANES_MLA_H

#include "runtime/kernels/lanes/panel.h"

/* MLA: arithmetic.md 7. Both sums are the product of a panel of lanes with broadcast numbers:
 * scores have heads in the lanes and positions broadcast, the mix has latent channels in the lanes
 * and the heads' probabilities broadcast. */

#define PANEL_VECTORS (LANES == 4 ? 4 : 2)
#define PANEL_T       (LANES == 16 ? 12U : 6U)
#define PANEL_LANES   ((size_t)PANEL_VECTORS * LANES)

/* A block of up to PANEL_T rows of x, in the smallest of three shapes that holds them. */
static void add_block(vd *totals, const float *w, size_t w_stride, const float *x, size_t terms,
                      size_t rows)
{
    if (rows == 1) {
        panel_add(totals, w, w_stride, NULL, x, terms, PANEL_VECTORS, 1);
    } else if (rows <= PANEL_T / 3) {
        panel_add(totals, w, w_stride, NULL, x, terms, PANEL_VECTORS, PANEL_T / 3);
    } else {
        panel_add(totals, w, w_stride, NULL, x, terms, PANEL_VECTORS, PANEL_T);
    }
}

/* The sums of row t of x: PANEL_LANES floats. */
static void narrow_totals(float *out, const vd *totals, size_t t)
{
    for (size_t v = 0; v < PANEL_VECTORS; v++) {
        const vd *at = totals + 2 * (t * PANEL_VECTORS + v);
        vf_store(out + v * LANES, vf_narrow(at[0], at[1]));
    }
}

/* panel[i][lane] = query[lane][i]; lanes beyond `heads` stay as they are. */
static void transpose(float *panel, const float *query, size_t query_stride, size_t heads,
                      size_t terms)
{
    for (size_t h = 0; h < heads; h++) {
        for (size_t i = 0; i < terms; i++) {
            panel[i * PANEL_LANES + h] = query[h * query_stride + i];
        }
    }
}

#define SCORE_POSITIONS 96U /* per pass: sums of 24 KiB; a multiple of PANEL_T */

/* Scores of `heads` <= PANEL_LANES heads at `positions` <= SCORE_POSITIONS positions. */
static void score_block(float *scores, size_t score_stride, const float *query, size_t query_stride,
                        size_t heads, const float *rows, size_t row_stride, size_t row_len,
                        size_t positions, float scale)
{
    vd totals[SCORE_POSITIONS * PANEL_VECTORS * 2];
    float w[K3_SUPERBLOCK * PANEL_LANES] = {0};
    float x[PANEL_T * K3_SUPERBLOCK];
    memset(totals, 0, sizeof totals);
    for (size_t col = 0; col < row_len; col += K3_SUPERBLOCK) {
        const size_t terms = min_size(K3_SUPERBLOCK, row_len - col);
        transpose(w, query + col, query_stride, heads, terms);
        for (size_t s = 0; s < positions; s += PANEL_T) {
            const size_t count = min_size(PANEL_T, positions - s);
            pack_rows(x, rows + s * row_stride + col, row_stride, terms, count, PANEL_T);
            add_block(totals + 2 * s * PANEL_VECTORS, w, PANEL_LANES, x, terms, count);
        }
    }
    for (size_t s = 0; s < positions; s++) {
        float lanes[PANEL_LANES];
        narrow_totals(lanes, totals, s);
        for (size_t h = 0; h < heads; h++) {
            scores[h * score_stride + s] = lanes[h] * scale;
        }
    }
}

void K3_FN(mla_scores)(float *scores, size_t score_stride, const float *query, size_t query_stride,
                       size_t heads, const float *rows, size_t row_stride, size_t row_len,
                       size_t positions, float scale)
{
    for (size_t s = 0; s < positions; s += SCORE_POSITIONS) {
        for (size_t h = 0; h < heads; h += PANEL_LANES) {
            score_block(scores + h * score_stride + s, score_stride, query + h * query_stride,
                        query_stride, min_size(PANEL_LANES, heads - h), rows + s * row_stride,
                        row_stride, row_len, min_size(SCORE_POSITIONS, positions - s), scale);
        }
    }
}

#define MIX_HEADS    24U  /* per pass, a multiple of PANEL_T */
#define MIX_CHANNELS 128U /* per pass                       */
#define MIX_BLOCKS   (MIX_CHANNELS / PANEL_LANES)

/* `width` <= PANEL_LANES channels of `terms` rows, where a full line would leave the rows. */
static void copy_lines(float *w, const float *rows, size_t row_stride, size_t width, size_t terms)
{
    memset(w, 0, K3_SUPERBLOCK * PANEL_LANES * sizeof *w);
    for (size_t i = 0; i < terms; i++) {
        memcpy(w + i * PANEL_LANES, rows + i * row_stride, width * sizeof *w);
    }
}

/* `channels` <= MIX_CHANNELS latent channels of `heads` <= MIX_HEADS heads. */
static void mix_block(float *mix, size_t mix_stride, const float *p, size_t p_stride, size_t heads,
                      const float *rows, size_t row_stride, size_t channels, size_t positions)
{
    vd totals[MIX_BLOCKS][MIX_HEADS * PANEL_VECTORS * 2];
    float w[K3_SUPERBLOCK * PANEL_LANES];
    float x[MIX_HEADS * K3_SUPERBLOCK];
    memset(totals, 0, sizeof totals);
    for (size_t s = 0; s < positions; s += K3_SUPERBLOCK) {
        const size_t terms = min_size(K3_SUPERBLOCK, positions - s);
        pack_rows(x, p + s, p_stride, terms, heads, MIX_HEADS);
        for (size_t j = 0; j < channels; j += PANEL_LANES) {
            const float *lines = rows + s * row_stride + j;
            size_t line_stride = row_stride;
            if (channels - j < PANEL_LANES) {
                copy_lines(w, lines, row_stride, channels - j, terms);
                lines = w;
                line_stride = PANEL_LANES;
            }
            for (size_t h = 0; h < heads; h += PANEL_T) {
                add_block(totals[j / PANEL_LANES] + 2 * h * PANEL_VECTORS, lines, line_stride,
                          x + h * K3_SUPERBLOCK, terms, min_size(PANEL_T, heads - h));
            }
        }
    }
    for (size_t j = 0; j < channels; j += PANEL_LANES) {
        for (size_t h = 0; h < heads; h++) {
            float lanes[PANEL_LANES];
            narrow_totals(lanes, totals[j / PANEL_LANES], h);
            memcpy(mix + h * mix_stride + j, lanes,
                   min_size(PANEL_LANES, channels - j) * sizeof *mix);
        }
    }
}

void K3_FN(mla_mix)(float *mix, size_t mix_stride, const float *p, size_t p_stride, size_t heads,
                    const float *rows, size_t row_stride, size_t latent, size_t positions)
{
    for (size_t j = 0; j < latent; j += MIX_CHANNELS) {
        for (size_t h = 0; h < heads; h += MIX_HEADS) {
            mix_block(mix + h * mix_stride + j, mix_stride, p + h * p_stride, p_stride,
                      min_size(MIX_HEADS, heads - h), rows + j, row_stride,
                      min_size(MIX_CHANNELS, latent - j), positions);
        }
    }
}

#endif
