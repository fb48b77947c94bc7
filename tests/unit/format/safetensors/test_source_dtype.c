/* SPDX-License-Identifier: Apache-2.0 */
#include "format/safetensors/source_dtype.h"

#include <string.h>

#include "tests/support/suite_main.h"

START_TEST(names_find_themselves)
{
    for (int i = 0; i < K3_SOURCE_DTYPES; i++) {
        const enum k3_source_dtype dtype = (enum k3_source_dtype)i;
        enum k3_source_dtype found = K3_SOURCE_DTYPES;
        ck_assert(k3_source_dtype_find(k3_source_dtype_name(dtype), &found));
        ck_assert_int_eq(found, dtype);
        ck_assert_uint_ge(k3_source_dtype_bits(dtype), 4);
        ck_assert_uint_le(k3_source_dtype_bits(dtype), 64);
    }
}
END_TEST

START_TEST(the_model_s_own)
{
    ck_assert_str_eq(k3_source_dtype_name(K3_SOURCE_BF16), "BF16");
    ck_assert_uint_eq(k3_source_dtype_bits(K3_SOURCE_BF16), 16);
    ck_assert_uint_eq(k3_source_dtype_bits(K3_SOURCE_F32), 32);
    ck_assert_uint_eq(k3_source_dtype_bits(K3_SOURCE_U8), 8);
}
END_TEST

START_TEST(strangers_are_not_found)
{
    static const char *const names[] = {"", "bf16", "BF16 ", "F", "BF1", "FLOAT32", "I128"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        enum k3_source_dtype found = K3_SOURCE_DTYPES;
        ck_assert(!k3_source_dtype_find(names[i], &found));
        ck_assert_int_eq(found, K3_SOURCE_DTYPES);
    }
}
END_TEST

Suite *k3_suite(void)
{
    Suite *suite = suite_create("source_dtype");
    TCase *contract = tcase_create("contract");
    tcase_add_test(contract, names_find_themselves);
    tcase_add_test(contract, the_model_s_own);
    tcase_add_test(contract, strangers_are_not_found);
    suite_add_tcase(suite, contract);
    return suite;
}
