/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/kernels/tier.h"

K3_TIER_DECLARE(avx512);
K3_TIER_DEFINE(avx512);
