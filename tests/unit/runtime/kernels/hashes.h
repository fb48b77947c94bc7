/* SPDX-License-Identifier: Apache-2.0 */
#ifndef K3_TESTS_UNIT_RUNTIME_KERNELS_HASHES_H
#define K3_TESTS_UNIT_RUNTIME_KERNELS_HASHES_H

#include "format/base/digest.h"
#include "runtime/kernels/kernels.h"

/* One digest per kernel over its outputs on fixed pseudo-random inputs: what every tier, compiler
 * and machine must reproduce (tests/golden/kernels_hashes.txt). NaNs count as one NaN. */
struct kt_hash {
    const char *name;
    struct k3_digest digest;
};

#define KT_HASHES_MAX 32

/* Returns how many were filled in. */
size_t kt_hashes(const struct k3_kernels *tier, struct kt_hash out_hashes[KT_HASHES_MAX]);

#endif
