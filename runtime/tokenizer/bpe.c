/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/tokenizer/bpe.h"

#include <stdbool.h>
#include <stdlib.h>

#include "format/base/assert.h"

#define NO_RANK UINT32_MAX

/* Ranks differ for different bytes, so a candidate that was overtaken by another join is told by
 * its rank: it is no longer the pair_rank of the part it names. */

void k3_bpe_scratch_done(struct k3_bpe_scratch *scratch)
{
    free(scratch->parts);
    free(scratch->heap);
    *scratch = (struct k3_bpe_scratch){0};
}

/* A piece of n bytes puts at most n - 1 candidates in at first; each of its at most n - 1 joins
 * takes one out and puts at most two in. So 2n entries are room enough. */
static enum k3_code reserve(struct k3_bpe_scratch *scratch, size_t len, struct k3_error *err)
{
    if (len <= scratch->piece_bytes_max) {
        return K3_OK;
    }
    const size_t wanted = len < 256 ? 256 : len + len / 2;
    k3_bpe_scratch_done(scratch);
    scratch->parts = calloc(wanted, sizeof *scratch->parts);
    scratch->heap = calloc(2 * wanted, sizeof *scratch->heap);
    if (!scratch->parts || !scratch->heap) {
        k3_bpe_scratch_done(scratch);
        return k3_fail_no_memory(err, "byte pairs");
    }
    scratch->piece_bytes_max = wanted;
    return K3_OK;
}

static void heap_push(struct k3_bpe_scratch *scratch, uint64_t entry)
{
    uint64_t *heap = scratch->heap;
    size_t at = scratch->heap_count++;
    while (at > 0 && heap[(at - 1) / 2] > entry) {
        heap[at] = heap[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    heap[at] = entry;
}

static uint64_t heap_pop(struct k3_bpe_scratch *scratch)
{
    uint64_t *heap = scratch->heap;
    const uint64_t least = heap[0];
    const size_t count = --scratch->heap_count;
    const uint64_t moved = heap[count];
    size_t at = 0;
    for (size_t child = 1; child < count; child = 2 * at + 1) {
        if (child + 1 < count && heap[child + 1] < heap[child]) {
            child++;
        }
        if (heap[child] >= moved) {
            break;
        }
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = moved;
    return least;
}

struct joining {
    const struct k3_vocab *vocab;
    struct k3_bpe_scratch *scratch;
    const uint8_t *piece;
    size_t len;
};

/* Looks up the part at `left` joined with its right neighbour, and notes it as a candidate. */
static void consider_pair(const struct joining *joining, uint32_t left)
{
    struct k3_bpe_part *part = &joining->scratch->parts[left];
    part->pair_rank = NO_RANK;
    if (part->end == joining->len) {
        return;
    }
    const uint32_t end = joining->scratch->parts[part->end].end;
    uint32_t rank = 0;
    if (k3_vocab_find_rank(joining->vocab, joining->piece + left, end - left, &rank)) {
        part->pair_rank = rank;
        heap_push(joining->scratch, (uint64_t)rank << 32 | left);
    }
}

static void start_with_bytes(const struct joining *joining)
{
    joining->scratch->heap_count = 0;
    for (uint32_t i = 0; i < joining->len; i++) {
        uint32_t rank = 0;
        const bool is_token = k3_vocab_find_rank(joining->vocab, joining->piece + i, 1, &rank);
        k3_assert(is_token); /* a vocabulary has every single byte */
        joining->scratch->parts[i] =
            (struct k3_bpe_part){.end = i + 1, .previous = i - 1, .rank = rank};
    }
    for (uint32_t i = 0; i < joining->len; i++) {
        consider_pair(joining, i);
    }
}

static void join(const struct joining *joining, uint32_t left)
{
    struct k3_bpe_part *parts = joining->scratch->parts;
    struct k3_bpe_part *right = &parts[parts[left].end];
    parts[left].rank = parts[left].pair_rank;
    parts[left].end = right->end;
    right->pair_rank = NO_RANK; /* gone, and with it its candidates */
    if (right->end < joining->len) {
        parts[right->end].previous = left;
    }
    consider_pair(joining, left);
    if (left > 0) {
        consider_pair(joining, parts[left].previous);
    }
}

static void join_all(const struct joining *joining)
{
    while (joining->scratch->heap_count > 0) {
        const uint64_t least = heap_pop(joining->scratch);
        const uint32_t left = (uint32_t)least;
        if (joining->scratch->parts[left].pair_rank == (uint32_t)(least >> 32)) {
            join(joining, left);
        }
    }
}

enum k3_code k3_bpe_encode(const struct k3_vocab *vocab, struct k3_bpe_scratch *scratch,
                           const uint8_t *piece, size_t len, struct k3_token_ids *ids,
                           struct k3_error *err)
{
    k3_assert(len > 0 && len < UINT32_MAX);
    uint32_t rank = 0;
    if (k3_vocab_find_rank(vocab, piece, len, &rank)) {
        return k3_token_ids_append(ids, rank, err);
    }
    enum k3_code code = reserve(scratch, len, err);
    if (code != K3_OK) {
        return code;
    }
    const struct joining joining = {vocab, scratch, piece, len};
    start_with_bytes(&joining);
    join_all(&joining);
    for (uint32_t i = 0; code == K3_OK && i < len; i = scratch->parts[i].end) {
        code = k3_token_ids_append(ids, scratch->parts[i].rank, err);
    }
    return code;
}
