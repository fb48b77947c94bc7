/* SPDX-License-Identifier: Apache-2.0 */
#include "format/base/bytes.h"

#include <math.h>

#include "tests/support/suite_main.h"

START_TEST(little_endian)
{
    uint8_t bytes[8] = {0};
    k3_le64_put(bytes, UINT64_C(0x8877665544332211));
    for (unsigned i = 0; i < 8; i++) {
        ck_assert_uint_eq(bytes[i], 0x11 * (i + 1));
    }
    ck_assert_uint_eq(k3_le16_get(bytes), 0x2211);
    ck_assert_uint_eq(k3_le32_get(bytes), 0x44332211);
    ck_assert_uint_eq(k3_le64_get(bytes), UINT64_C(0x8877665544332211));
    k3_le16_put(bytes, 0xfedc);
    k3_le32_put(bytes + 2, 0xa1b2c3d4);
    ck_assert_uint_eq(k3_le16_get(bytes), 0xfedc);
    ck_assert_uint_eq(k3_le32_get(bytes + 2), 0xa1b2c3d4);
    ck_assert_uint_eq(bytes[6], 0x77);
}
END_TEST

START_TEST(bf16_is_the_upper_half)
{
    ck_assert(k3_bf16_widen(0x3f80) == 1.0F);
    ck_assert(k3_bf16_widen(0xc040) == -3.0F);
    ck_assert(isinf(k3_bf16_widen(0x7f80)));
    ck_assert(isnan(k3_bf16_widen(0x7fc0)));
    for (uint32_t bits = 0; bits < 0x10000; bits++) {
        ck_assert_uint_eq(k3_f32_to_bits(k3_bf16_widen((uint16_t)bits)), bits << 16);
    }
}
END_TEST

START_TEST(zero_bytes)
{
    uint8_t bytes[100] = {0};
    ck_assert(k3_bytes_are_zero(bytes, 0));
    ck_assert(k3_bytes_are_zero(bytes, sizeof bytes));
    for (size_t i = 0; i < sizeof bytes; i++) {
        bytes[i] = 1;
        ck_assert(!k3_bytes_are_zero(bytes, sizeof bytes));
        ck_assert(k3_bytes_are_zero(bytes, i));
        bytes[i] = 0;
    }
}
END_TEST

Suite *k3_suite(void)
{
    Suite *suite = suite_create("bytes");
    TCase *contract = tcase_create("contract");
    tcase_add_test(contract, little_endian);
    tcase_add_test(contract, bf16_is_the_upper_half);
    tcase_add_test(contract, zero_bytes);
    suite_add_tcase(suite, contract);
    return suite;
}
