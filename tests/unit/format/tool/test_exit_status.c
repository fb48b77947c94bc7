/* SPDX-License-Identifier: Apache-2.0 */
#include "format/tool/exit_status.h"
#include "tests/support/suite_main.h"

/* The table of the man pages. */
static const struct {
    enum k3_code code;
    int status;
} rows[] = {
    {K3_OK, 0},
    {K3_ERR_USAGE, 64},
    {K3_ERR_MALFORMED, 65},
    {K3_ERR_DAMAGED, 65},
    {K3_ERR_NO_INPUT, 66},
    {K3_ERR_UNSUPPORTED, 69},
    {K3_ERR_NO_MEMORY, 71},
    {K3_ERR_CANT_CREATE, 73},
    {K3_ERR_IO, 74},
    {K3_ERR_BUSY, 75},
    {K3_ERR_INTERRUPTED, 75},
    {K3_ERR_BUDGET, 78},
    {(enum k3_code)9999, 70},
};

START_TEST(test_table)
{
    ck_assert_int_eq(k3_exit_status(rows[_i].code), rows[_i].status);
}
END_TEST

Suite *k3_suite(void)
{
    Suite *suite = suite_create("exit_status");
    TCase *contract = tcase_create("contract");
    tcase_add_loop_test(contract, test_table, 0, (int)(sizeof rows / sizeof rows[0]));
    suite_add_tcase(suite, contract);
    return suite;
}
