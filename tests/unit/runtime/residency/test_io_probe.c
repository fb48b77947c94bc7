/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/residency/io_probe.h"

#include "tests/support/suite_main.h"

static const struct {
    const char *why;
    bool is_measured;
    struct k3_io_rate mmap, direct;
    enum k3_io_kind io;
} cases[] = {
    {"nothing measured", false, {0, 0}, {9e9, 0}, K3_IO_MMAP},
    {"equal", true, {2e9, 0.03}, {2e9, 0.03}, K3_IO_MMAP},
    {"a little slower", true, {1.7e9, 0.03}, {2e9, 0.03}, K3_IO_MMAP},
    {"clearly slower", true, {1.5e9, 0.03}, {2e9, 0.03}, K3_IO_DIRECT},
    {"faster", true, {2.5e9, 0.03}, {2e9, 0.03}, K3_IO_MMAP},
    {"as fast, but small pages", true, {2e9, 0.65}, {2e9, 0.03}, K3_IO_DIRECT},
    {"dear both ways", true, {2e9, 0.65}, {2e9, 0.5}, K3_IO_MMAP},
};

START_TEST(decision)
{
    struct k3_io_finding f = {
        .is_measured = cases[_i].is_measured, .mmap = cases[_i].mmap, .direct = cases[_i].direct};
    k3_io_decide(&f);
    ck_assert_msg(f.io == cases[_i].io, "%s", cases[_i].why);
    ck_assert_ptr_nonnull(f.reason);
}
END_TEST

Suite *k3_suite(void)
{
    Suite *suite = suite_create("io probe");
    TCase *contract = tcase_create("decision");
    tcase_add_loop_test(contract, decision, 0, (int)(sizeof cases / sizeof cases[0]));
    suite_add_tcase(suite, contract);
    return suite;
}
