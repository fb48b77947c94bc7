/* SPDX-License-Identifier: Apache-2.0 */
#ifndef K3_RUNTIME_KERNELS_REF_REF_H
#define K3_RUNTIME_KERNELS_REF_REF_H

#include <math.h>

#include "format/base/bytes.h"
#include "runtime/kernels/tier.h"

/* The scalar tier: what every kernel means, in plain C. Slow is fine here, unclear is not. */

#define K3_REF(name) k3_scalar_##name
K3_TIER_DECLARE(scalar);

#define K3_GROUP      32U  /* terms of one P chain  */
#define K3_SUPERBLOCK 128U /* terms of one float S  */

static inline size_t ref_min(size_t a, size_t b)
{
    return a < b ? a : b;
}

#endif
