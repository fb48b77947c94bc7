/* SPDX-License-Identifier: Apache-2.0 */
#include "format/base/digest.h"

#include <string.h>

#include "tests/support/suite_main.h"

#define PATTERN_BYTES 100000

/* Hex from `xxhsum -H2` 0.8.1 over the same bytes. */
static const struct {
    size_t pattern_len; /* bytes i -> i*i + i/7; 0: `text` instead */
    const char *text;
    const char *hex;
} vectors[] = {
    {0, "", "99aa06d3014798d86001c324468d497f"},
    {0, "a", "a96faf705af16834e6c632b61e964e1f"},
    {0, "The quick brown fox jumps over the lazy dog", "ddd650205ca3e7fa24a1cc2e3a8a7651"},
    {200, NULL, "18a31224bf21639186c883d010734275"},
    {1000, NULL, "fa7080caa2b6abf689c3ff3e32db8527"},
    {PATTERN_BYTES, NULL, "e28813558cb5af5ad0d057cdc2a27a4c"},
};

static uint8_t pattern[PATTERN_BYTES];

static void set_up(void)
{
    for (size_t i = 0; i < sizeof pattern; i++) {
        pattern[i] = (uint8_t)(i * i + i / 7);
    }
}

START_TEST(known_values)
{
    const char *text = vectors[_i].text;
    const void *bytes = text ? (const void *)text : (const void *)pattern;
    const size_t len = text ? strlen(text) : vectors[_i].pattern_len;
    char hex[K3_DIGEST_HEX_BYTES];
    const struct k3_digest whole = k3_digest_of(bytes, len);
    k3_digest_hex(&whole, hex);
    ck_assert_str_eq(hex, vectors[_i].hex);
}
END_TEST

START_TEST(pieces_give_the_whole)
{
    static const size_t steps[] = {1, 7, 64, 240, 241, 1024, 65537, PATTERN_BYTES};
    struct k3_error err = {0};
    struct k3_digest_stream *stream = NULL;
    ck_assert_ok(k3_digest_stream_create(&stream, &err));
    const struct k3_digest whole = k3_digest_of(pattern, sizeof pattern);
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        k3_digest_stream_reset(stream);
        for (size_t at = 0; at < sizeof pattern; at += steps[i]) {
            const size_t rest = sizeof pattern - at;
            k3_digest_stream_update(stream, pattern + at, rest < steps[i] ? rest : steps[i]);
        }
        const struct k3_digest pieces = k3_digest_stream_value(stream);
        ck_assert(k3_digest_equal(&whole, &pieces));
    }
    k3_digest_stream_destroy(stream);
}
END_TEST

START_TEST(a_value_does_not_end_the_stream)
{
    struct k3_error err = {0};
    struct k3_digest_stream *stream = NULL;
    ck_assert_ok(k3_digest_stream_create(&stream, &err));
    k3_digest_stream_update(stream, pattern, 500);
    const struct k3_digest half = k3_digest_stream_value(stream);
    k3_digest_stream_update(stream, pattern + 500, 500);
    const struct k3_digest both = k3_digest_stream_value(stream);
    const struct k3_digest expected_half = k3_digest_of(pattern, 500);
    const struct k3_digest expected_both = k3_digest_of(pattern, 1000);
    ck_assert(k3_digest_equal(&half, &expected_half));
    ck_assert(k3_digest_equal(&both, &expected_both));
    ck_assert(!k3_digest_equal(&half, &both));
    k3_digest_stream_destroy(stream);
}
END_TEST

START_TEST(one_bit_changes_it)
{
    const struct k3_digest before = k3_digest_of(pattern, 300);
    for (size_t i = 0; i < 300; i++) {
        pattern[i] ^= 1;
        const struct k3_digest after = k3_digest_of(pattern, 300);
        ck_assert(!k3_digest_equal(&before, &after));
        pattern[i] ^= 1;
    }
}
END_TEST

Suite *k3_suite(void)
{
    Suite *suite = suite_create("digest");
    TCase *contract = tcase_create("contract");
    tcase_add_checked_fixture(contract, set_up, NULL);
    tcase_add_loop_test(contract, known_values, 0, sizeof vectors / sizeof vectors[0]);
    tcase_add_test(contract, pieces_give_the_whole);
    tcase_add_test(contract, a_value_does_not_end_the_stream);
    tcase_add_test(contract, one_bit_changes_it);
    suite_add_tcase(suite, contract);
    return suite;
}
