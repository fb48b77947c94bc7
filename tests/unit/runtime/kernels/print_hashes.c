/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "tests/unit/runtime/kernels/fixture.h"
#include "tests/unit/runtime/kernels/hashes.h"

/* Prints "kernel digest" of the tier that is named, or of every tier after a line "# tier" each.
 * tests/golden/kernels_hashes.txt is what `print_hashes scalar` prints, and a comment. No
 * libraries: cross_neon.sh builds it for Arm. */

static void print(const struct k3_kernels *tier)
{
    struct kt_hash hashes[KT_HASHES_MAX];
    const size_t count = kt_hashes(tier, hashes);
    for (size_t i = 0; i < count; i++) {
        char hex[K3_DIGEST_HEX_BYTES];
        k3_digest_hex(&hashes[i].digest, hex);
        printf("%s %s\n", hashes[i].name, hex);
    }
}

int main(int argc, char **argv)
{
    const struct k3_kernels *tiers[KT_TIERS_MAX];
    kt_tiers(tiers);
    for (size_t t = 0; tiers[t]; t++) {
        if (argc < 2) {
            printf("# %s\n", tiers[t]->name);
        }
        if (argc < 2 || strcmp(argv[1], tiers[t]->name) == 0) {
            print(tiers[t]);
        }
    }
    return 0;
}
