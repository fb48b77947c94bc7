/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/engine/philox.h"

#include "tests/support/suite_main.h"

/* Known answers of the authors' Random123 distribution (kat_vectors, philox4x32 10). */
static const struct {
    uint32_t counter[4], key[2], expected[4];
} vectors[] = {
    {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
    {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
     {0xffffffff, 0xffffffff},
     {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
    {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
     {0xa4093822, 0x299f31d0},
     {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
};

START_TEST(known_answers)
{
    uint32_t out[4];
    k3_philox4x32(vectors[_i].counter, vectors[_i].key, out);
    for (int i = 0; i < 4; i++) {
        ck_assert_uint_eq(out[i], vectors[_i].expected[i]);
    }
}
END_TEST

START_TEST(uniform_is_in_range_and_even)
{
    double sum = 0;
    unsigned low = 0;
    const unsigned count = 20000;
    for (unsigned n = 0; n < count; n++) {
        const double u = k3_philox_uniform(42, n);
        ck_assert(u >= 0.0 && u < 1.0);
        sum += u;
        low += u < 0.25;
    }
    ck_assert_double_eq_tol(sum / count, 0.5, 0.01);
    ck_assert_double_eq_tol((double)low / count, 0.25, 0.01);
}
END_TEST

/* Seed and number go into the generator as docs/arithmetic.md says: low and high words. */
START_TEST(uniform_is_the_documented_function)
{
    const uint32_t key[2] = {0x89abcdef, 0x01234567};
    const uint32_t counter[4] = {7, 1, 0, 0};
    uint32_t out[4];
    k3_philox4x32(counter, key, out);
    const double expected = (double)(((uint64_t)(out[0] >> 5) << 26) + (out[1] >> 6)) * 0x1p-53;
    ck_assert_double_eq(k3_philox_uniform(0x0123456789abcdefU, 0x100000007U), expected);
}
END_TEST

Suite *k3_suite(void)
{
    Suite *suite = suite_create("philox");
    TCase *contract = tcase_create("contract");
    tcase_add_loop_test(contract, known_answers, 0, 3);
    tcase_add_test(contract, uniform_is_in_range_and_even);
    tcase_add_test(contract, uniform_is_the_documented_function);
    suite_add_tcase(suite, contract);
    return suite;
}
