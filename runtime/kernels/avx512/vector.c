/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/kernels/avx512/simd.h"

#include "runtime/kernels/lanes/vector.h"
