/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/tokenizer/marker_set.h"

#include <stdlib.h>
#include <string.h>

/* Bytes ascending, a spelling before those it begins. */
static int compare_markers(const void *a, const void *b)
{
    const struct k3_token_view *left = &((const struct k3_marker *)a)->spelling;
    const struct k3_token_view *right = &((const struct k3_marker *)b)->spelling;
    const size_t common = left->len < right->len ? left->len : right->len;
    const int order = memcmp(left->bytes, right->bytes, common);
    return order != 0 ? order : (left->len > right->len) - (left->len < right->len);
}

void k3_marker_set_init(struct k3_marker_set *set, const struct k3_vocab *vocab)
{
    *set = (struct k3_marker_set){0};
    const uint32_t first_id = k3_vocab_rank_count(vocab);
    for (uint32_t i = 0; i < K3_VOCAB_ADDED_COUNT; i++) {
        const struct k3_token_view spelling = k3_vocab_token(vocab, first_id + i);
        set->markers[i] = (struct k3_marker){.spelling = spelling, .id = first_id + i};
        set->starts_one[spelling.bytes[0]] = true;
    }
    qsort(set->markers, K3_VOCAB_ADDED_COUNT, sizeof set->markers[0], compare_markers);
}

/* Markers [low, high) are those that start with the bytes read so far. One that ends there is the
 * first of them; each further byte moves low up and high down. */
const struct k3_marker *k3_marker_set_match(const struct k3_marker_set *set, const uint8_t *bytes,
                                            size_t len)
{
    if (len == 0 || !set->starts_one[bytes[0]]) {
        return NULL;
    }
    const struct k3_marker *longest = NULL;
    const struct k3_marker *low = set->markers;
    const struct k3_marker *high = set->markers + K3_VOCAB_ADDED_COUNT;
    for (size_t read = 0;; read++) {
        if (low < high && low->spelling.len == read) {
            longest = low++;
        }
        if (read == len) {
            return longest;
        }
        while (low < high && low->spelling.bytes[read] < bytes[read]) {
            low++;
        }
        while (low < high && high[-1].spelling.bytes[read] > bytes[read]) {
            high--;
        }
        if (low == high) {
            return longest;
        }
    }
}
