/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/kernels/tier.h"

K3_TIER_DECLARE(neon);
K3_TIER_DEFINE(neon);
