/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/kernels/avx2/m4.h"

#include "runtime/kernels/lanes/matrix.h"
#include "runtime/kernels/lanes/router.h"
