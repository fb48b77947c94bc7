/* SPDX-License-Identifier: Apache-2.0 */
#include "packer/journal_record.h"
#include "tests/support/suite_main.h"

#include <string.h>

/* Three records, the second of them empty. */
#define PAYLOAD_BYTES 40U
struct journal {
    uint8_t bytes[3 * K3_JOURNAL_HEAD_BYTES + 2 * PAYLOAD_BYTES];
    size_t ends[3], len;
};

static void append(struct journal *j, unsigned number, enum k3_journal_kind kind, size_t len)
{
    uint8_t payload[PAYLOAD_BYTES];
    memset(payload, (int)(number + 1), sizeof payload);
    k3_journal_head_encode(kind, payload, len, j->bytes + j->len);
    memcpy(j->bytes + j->len + K3_JOURNAL_HEAD_BYTES, payload, len);
    j->len += K3_JOURNAL_HEAD_BYTES + len;
    j->ends[number] = j->len;
}

static struct journal make(void)
{
    struct journal j = {.len = 0};
    append(&j, 0, K3_JOURNAL_IDENTITY, PAYLOAD_BYTES);
    append(&j, 1, K3_JOURNAL_SHARD, 0);
    append(&j, 2, K3_JOURNAL_SHARD, PAYLOAD_BYTES);
    return j;
}

static int count_records(const uint8_t *bytes, size_t len)
{
    struct k3_journal_record record;
    int count = 0;
    for (size_t at = 0; k3_journal_record_next(bytes, len, &at, &record); count++) {
        ck_assert_uint_le(at, len);
    }
    return count;
}

START_TEST(test_round_trip)
{
    const struct journal j = make();
    struct k3_journal_record record;
    size_t at = 0;
    ck_assert(k3_journal_record_next(j.bytes, j.len, &at, &record));
    ck_assert_int_eq(record.kind, K3_JOURNAL_IDENTITY);
    ck_assert_uint_eq(record.payload_len, PAYLOAD_BYTES);
    ck_assert_uint_eq(record.payload[PAYLOAD_BYTES - 1], 1);
    ck_assert(k3_journal_record_next(j.bytes, j.len, &at, &record));
    ck_assert_uint_eq(record.payload_len, 0);
    ck_assert(k3_journal_record_next(j.bytes, j.len, &at, &record));
    ck_assert_uint_eq(record.payload[0], 3);
    ck_assert(!k3_journal_record_next(j.bytes, j.len, &at, &record));
    ck_assert_uint_eq(at, j.len);
}
END_TEST

START_TEST(test_torn_anywhere)
{
    const struct journal j = make();
    for (size_t len = 0; len <= j.len; len++) {
        const int whole = (len >= j.ends[0]) + (len >= j.ends[1]) + (len >= j.ends[2]);
        ck_assert_int_eq(count_records(j.bytes, len), whole);
    }
}
END_TEST

START_TEST(test_every_byte_flipped)
{
    for (size_t at = 0; at < make().len; at++) {
        struct journal j = make();
        j.bytes[at] ^= 0x10;
        const int before = (at >= j.ends[0]) + (at >= j.ends[1]);
        ck_assert_int_eq(count_records(j.bytes, j.len), before);
    }
}
END_TEST

START_TEST(test_huge_size)
{
    struct journal j = make();
    memset(j.bytes + 8, 0xff, 8);
    ck_assert_int_eq(count_records(j.bytes, j.len), 0);
}
END_TEST

Suite *k3_suite(void)
{
    Suite *suite = suite_create("journal_record");
    TCase *records = tcase_create("records");
    tcase_add_test(records, test_round_trip);
    suite_add_tcase(suite, records);
    TCase *damage = tcase_create("damage");
    tcase_add_test(damage, test_torn_anywhere);
    tcase_add_test(damage, test_every_byte_flipped);
    tcase_add_test(damage, test_huge_size);
    suite_add_tcase(suite, damage);
    return suite;
}
