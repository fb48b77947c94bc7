/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/kernels/avx2/simd.h"

#include "runtime/kernels/lanes/attention.h"
#include "runtime/kernels/lanes/mla.h"
