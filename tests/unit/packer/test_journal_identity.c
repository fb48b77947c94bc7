/* SPDX-License-Identifier: Apache-2.0 */
#include "packer/journal_identity.h"
#include "tests/support/suite_main.h"
#include "tests/unit/format/pack/pack_fixture.h"

#include <stdlib.h>
#include <string.h>

#define SHARDS 4U

/* As much of a census as an identity looks at. */
struct fixture {
    struct k3_pack_parts parts;
    struct k3_shard shards[SHARDS];
    struct k3_tensor_entry entries[SHARDS];
    struct k3_census census;
};

static void make(struct fixture *f)
{
    static char names[SHARDS][2] = {"a", "b", "c", "d"};
    const struct k3_model_spec spec = k3_toy_spec();
    *f = (struct fixture){0};
    k3_pack_parts_init(&f->parts, &spec, 4, SHARDS, 1);
    for (unsigned i = 0; i < SHARDS; i++) {
        f->entries[i] = (struct k3_tensor_entry){.name = "tensor", .end = 10, .dims = 1};
        f->entries[i].shape[0] = 10;
        f->shards[i] = (struct k3_shard){.name = names[i], .file_bytes = 100, .modified_ns = 5};
        f->shards[i].header.entries = &f->entries[i];
        f->shards[i].header.entry_count = 1;
    }
    f->census.tables = f->parts.tables;
    f->census.files = f->parts.files;
    f->census.set.shards = f->shards;
    f->census.set.shard_count = SHARDS;
}

static uint8_t *encode(const struct fixture *f, size_t *out_len)
{
    struct k3_error err;
    uint8_t *bytes = NULL;
    ck_assert_ok(k3_identity_encode(&f->census, &bytes, out_len, &err));
    return bytes;
}

/* How many changes there are when shards before `done` are packed; whether a later one changed. */
static size_t compare(const struct fixture *a, const struct fixture *b, uint32_t done, bool *later)
{
    size_t a_len = 0, b_len = 0;
    uint8_t *before = encode(a, &a_len), *now = encode(b, &b_len);
    struct k3_problems changes = {0};
    k3_identity_compare(before, a_len, now, b_len, done, &changes, later);
    const size_t count = changes.total;
    k3_problems_done(&changes);
    free(before);
    free(now);
    return count;
}

static void change_nothing(struct fixture *f)
{
    (void)f;
}
static void change_size(struct fixture *f)
{
    f->shards[1].file_bytes++;
}
static void change_time(struct fixture *f)
{
    f->shards[1].modified_ns++;
}
static void change_table(struct fixture *f)
{
    f->entries[1].shape[0] = 5;
}
static void change_tensor_name(struct fixture *f)
{
    f->entries[1].name = "other";
}
static void change_name(struct fixture *f)
{
    f->shards[1].name[0] = 'x';
}
static void change_count(struct fixture *f)
{
    f->census.set.shard_count--;
}
static void change_spec(struct fixture *f)
{
    f->census.tables.spec.situ_beta += 1;
}
static void change_files(struct fixture *f)
{
    f->parts.files.files[K3_BUNDLED_CONFIG].bytes[0] ^= 1;
}

static const struct {
    void (*change)(struct fixture *f);
    bool forbids_when_done, forbids_when_not, is_later;
} rows[] = {
    {change_nothing, false, false, false},   {change_size, true, false, true},
    {change_time, true, false, true},        {change_table, true, false, true},
    {change_tensor_name, true, false, true}, {change_name, true, true, false},
    {change_count, true, true, false},       {change_spec, true, true, false},
    {change_files, true, true, false},
};

START_TEST(test_changes)
{
    struct fixture a, b;
    bool later = false;
    make(&a);
    make(&b);
    const char first = b.shards[1].name[0];
    size_t a_len = 0;
    uint8_t *before = encode(&a, &a_len); /* names are shared: encode before the change */
    rows[_i].change(&b);
    for (uint32_t done = 0; done <= SHARDS; done++) {
        size_t b_len = 0;
        uint8_t *now = encode(&b, &b_len);
        struct k3_problems changes = {0};
        k3_identity_compare(before, a_len, now, b_len, done, &changes, &later);
        const bool forbids = done >= 2 ? rows[_i].forbids_when_done : rows[_i].forbids_when_not;
        ck_assert_int_eq(changes.total > 0, forbids);
        ck_assert_int_eq(later, done < 2 && rows[_i].is_later);
        k3_problems_done(&changes);
        free(now);
    }
    b.shards[1].name[0] = first;
    free(before);
    k3_pack_parts_done(&a.parts);
    k3_pack_parts_done(&b.parts);
}
END_TEST

/* A record whose digest is right was written by us; another version may have written it. */
START_TEST(test_cut_and_garbage)
{
    struct fixture f;
    bool later = false;
    make(&f);
    ck_assert_uint_eq(compare(&f, &f, SHARDS, &later), 0);
    size_t len = 0;
    uint8_t *bytes = encode(&f, &len);
    for (size_t cut = 0; cut < len; cut += 3) {
        struct k3_problems changes = {0};
        k3_identity_compare(bytes, cut, bytes, len, SHARDS, &changes, &later);
        ck_assert_uint_gt(changes.total, 0);
        k3_problems_done(&changes);
    }
    uint64_t seed = 7;
    for (unsigned i = 0; i < 500; i++) {
        uint8_t *garbage = malloc(len);
        ck_assert_ptr_nonnull(garbage);
        memcpy(garbage, bytes, len);
        const size_t at = k3_test_random(&seed) % len;
        garbage[at] = (uint8_t)(garbage[at] ^ (1 + k3_test_random(&seed) % 255));
        struct k3_problems changes = {0};
        k3_identity_compare(garbage, len, bytes, len, SHARDS, &changes, &later);
        ck_assert_uint_gt(changes.total, 0);
        k3_problems_done(&changes);
        free(garbage);
    }
    free(bytes);
    k3_pack_parts_done(&f.parts);
}
END_TEST

Suite *k3_suite(void)
{
    Suite *suite = suite_create("journal_identity");
    TCase *changes = tcase_create("changes");
    tcase_add_loop_test(changes, test_changes, 0, (int)(sizeof rows / sizeof rows[0]));
    suite_add_tcase(suite, changes);
    TCase *damage = tcase_create("damage");
    tcase_add_test(damage, test_cut_and_garbage);
    suite_add_tcase(suite, damage);
    return suite;
}
