/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/kernels/neon/simd.h"

#include "runtime/kernels/lanes/vector.h"
