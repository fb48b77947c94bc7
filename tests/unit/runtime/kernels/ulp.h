/* SPDX-License-Identifier: Apache-2.0 */
#ifndef K3_TESTS_UNIT_RUNTIME_KERNELS_ULP_H
#define K3_TESTS_UNIT_RUNTIME_KERNELS_ULP_H

#include <stdint.h>

/* The error of our exp, sigmoid and tanh against long double, in units of the last place of the
 * float result (2^-149 among subnormals). Where the result is constant (exp beyond overflow, tanh
 * beyond 10, ...) the oracle is that constant and costs nothing. */
enum kt_function { KT_EXP, KT_SIGMOID, KT_TANH };
#define KT_FUNCTIONS 3

struct kt_ulp {
    double worst;  /* infinite when the result is of the wrong kind */
    uint32_t bits; /* the input where */
};

const char *kt_function_name(enum kt_function function);
float kt_function_call(enum kt_function function, float x);

/* Inputs with bit patterns first, first + stride, ... (count of them), wrapping at 2^32. */
struct kt_ulp kt_ulp_sweep(enum kt_function function, uint32_t first, uint32_t stride,
                           uint64_t count);

#endif
