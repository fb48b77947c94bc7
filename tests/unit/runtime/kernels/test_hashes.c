/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/suite_main.h"
#include "tests/unit/runtime/kernels/fixture.h"
#include "tests/unit/runtime/kernels/hashes.h"

/* Every tier gives the digests that are committed, whatever compiled it and wherever it runs.
 * K3_UPDATE_GOLDEN=1 rewrites the file from the scalar tier. */

#define GOLDEN K3_TESTS_DIR "/golden/kernels_hashes.txt"
#define COMMENT                                                                                    \
    "# print_hashes scalar; K3_UPDATE_GOLDEN=1 of unit.runtime.kernels.hashes rewrites it\n"

static void rewrite(void)
{
    FILE *out = fopen(GOLDEN, "w");
    ck_assert_ptr_nonnull(out);
    fputs(COMMENT, out);
    struct kt_hash hashes[KT_HASHES_MAX];
    const size_t count = kt_hashes(k3_kernels_by_name("scalar"), hashes);
    for (size_t i = 0; i < count; i++) {
        char hex[K3_DIGEST_HEX_BYTES];
        k3_digest_hex(&hashes[i].digest, hex);
        fprintf(out, "%s %s\n", hashes[i].name, hex);
    }
    ck_assert_int_eq(fclose(out), 0);
}

START_TEST(test_golden)
{
    if (_i == 0 && getenv("K3_UPDATE_GOLDEN")) {
        rewrite();
    }
    const struct k3_kernels *tiers[KT_TIERS_MAX];
    kt_tiers(tiers);
    struct kt_hash hashes[KT_HASHES_MAX];
    for (size_t t = 0; tiers[t]; t++) {
        const size_t count = kt_hashes(tiers[t], hashes);
        FILE *golden = fopen(GOLDEN, "r");
        ck_assert_msg(golden != NULL, "cannot open %s", GOLDEN);
        char comment[sizeof COMMENT + 1];
        ck_assert_ptr_nonnull(fgets(comment, sizeof comment, golden));
        for (size_t i = 0; i < count; i++) {
            char name[64];
            char expected[64];
            char hex[K3_DIGEST_HEX_BYTES];
            ck_assert_int_eq(fscanf(golden, "%63s %63s", name, expected), 2);
            k3_digest_hex(&hashes[i].digest, hex);
            ck_assert_str_eq(name, hashes[i].name);
            ck_assert_msg(strcmp(hex, expected) == 0, "%s %s: %s, not %s", tiers[t]->name, name,
                          hex, expected);
        }
        fclose(golden);
    }
}
END_TEST

Suite *k3_suite(void)
{
    Suite *suite = suite_create("kernels: recorded hashes");
    TCase *golden = tcase_create("golden");
    tcase_add_loop_test(golden, test_golden, 0, 1);
    suite_add_tcase(suite, golden);
    return suite;
}
