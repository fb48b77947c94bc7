/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "format/safetensors/checkpoint_folder.h"

/* <prefix>-<number>-of-<total>.safetensors, numbers from 1. */
struct numbered {
    const char *name;
    size_t prefix_len;
    int number_digits;
    int total_digits;
    uint64_t number;
    uint64_t total;
};

/* At most 7 digits, so that a list of what is missing has an end. Returns how many there were. */
static int read_digits(const char *text, uint64_t *out_value)
{
    int digits = 0;
    uint64_t value = 0;
    while (text[digits] >= '0' && text[digits] <= '9' && digits < 7) {
        value = 10 * value + (uint64_t)(text[digits] - '0');
        digits++;
    }
    *out_value = value;
    return digits;
}

/* The last "-<digits>-of-<digits>.safetensors" that ends the name. */
static bool read_numbered(const char *name, struct numbered *out)
{
    for (const char *dash = strchr(name, '-'); dash; dash = strchr(dash + 1, '-')) {
        struct numbered read = {.name = name, .prefix_len = (size_t)(dash - name)};
        const char *at = dash + 1;
        read.number_digits = read_digits(at, &read.number);
        at += read.number_digits;
        if (read.number_digits == 0 || strncmp(at, "-of-", 4) != 0) {
            continue;
        }
        at += 4;
        read.total_digits = read_digits(at, &read.total);
        at += read.total_digits;
        if (read.total_digits > 0 && strcmp(at, ".safetensors") == 0) {
            *out = read;
            return true;
        }
    }
    return false;
}

static bool is_same_prefix(const struct numbered *a, const struct numbered *b)
{
    return a->prefix_len == b->prefix_len && a->number_digits == b->number_digits &&
           memcmp(a->name, b->name, a->prefix_len) == 0;
}

static void report_missing(struct k3_problem_kind *kind, const struct numbered *like, uint64_t from,
                           uint64_t to)
{
    for (uint64_t number = from; number < to; number++) {
        k3_problem_kind_add(
            kind, "'%.*s-%0*" PRIu64 "-of-%0*" PRIu64 ".safetensors' is missing: download it",
            (int)like->prefix_len, like->name, like->number_digits, number, like->total_digits,
            like->total);
    }
}

/* False, with a problem, when this name cannot be one of the series that `last` is in. */
static bool check_numbers(const struct numbered *last, const struct numbered *shard,
                          struct k3_problem_kind *kind)
{
    if (shard->number < 1 || shard->number > shard->total) {
        k3_problem_kind_add(kind, "'%s' is numbered outside 1..%" PRIu64, shard->name,
                            shard->total);
        return false;
    }
    if (last->name && is_same_prefix(last, shard) && last->total != shard->total) {
        k3_problem_kind_add(kind,
                            "'%s' and '%s' are of different totals: two checkpoints in one "
                            "folder?",
                            last->name, shard->name);
        return false;
    }
    return true;
}

/* Names are sorted, so the shards of one prefix come in the order of their numbers. */
void k3_checkpoint_folder_report_gaps(const struct k3_checkpoint_folder *folder,
                                      struct k3_problems *problems)
{
    struct k3_problem_kind strange = {.problems = problems,
                                      .code = K3_ERR_MALFORMED,
                                      .what = "shards have strange numbers",
                                      .lines_max = K3_CHECKPOINT_LINES_MAX};
    struct k3_problem_kind missing = {.problems = problems,
                                      .code = K3_ERR_NO_INPUT,
                                      .what = "shards are missing",
                                      .lines_max = K3_CHECKPOINT_LINES_MAX};
    struct numbered last = {0};
    uint64_t expected = 1;
    for (size_t i = 0; i < folder->shard_count; i++) {
        struct numbered shard;
        if (!read_numbered(folder->shard_names[i], &shard) ||
            !check_numbers(&last, &shard, &strange)) {
            continue;
        }
        if (last.name && !is_same_prefix(&last, &shard)) {
            report_missing(&missing, &last, expected, last.total + 1);
            expected = 1;
        }
        report_missing(&missing, &shard, expected, shard.number);
        expected = shard.number + 1;
        last = shard;
    }
    if (last.name) {
        report_missing(&missing, &last, expected, last.total + 1);
    }
    k3_problem_kind_end(&strange);
    k3_problem_kind_end(&missing);
}
