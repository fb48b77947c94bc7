/* SPDX-License-Identifier: Apache-2.0 */
#ifndef K3_RUNTIME_KERNELS_LANES_MATH_H
#define K3_RUNTIME_KERNELS_LANES_MATH_H

#include "runtime/kernels/lanes/lanes.h"

/* transcendental.h in vectors, operation by operation. */

K3_INLINE vd vd_exp(vd x)
{
    static const double inverse_factorial[K3_EXP_TERMS] = K3_EXP_COEFFICIENTS;

    x = vd_clamp(x, K3_EXP_LOW, K3_EXP_HIGH);
    const vd rint = vd_set1(K3_RINT);
    const vd shifted = vd_add(vd_mul(x, vd_set1(K3_LOG2_E)), rint);
    const vd n = vd_sub(shifted, rint);
    vd r = vd_nfma(n, vd_set1(K3_LN2_HIGH), x);
    r = vd_nfma(n, vd_set1(K3_LN2_LOW), r);
    vd p = vd_set1(inverse_factorial[K3_EXP_TERMS - 1]);
    K3_UNROLL
    for (int k = K3_EXP_TERMS - 2; k >= 0; k--) {
        p = vd_fma(p, r, vd_set1(inverse_factorial[k]));
    }
    return vd_mul(p, vd_power_of_two(shifted));
}

K3_INLINE vd vd_sigmoid(vd x)
{
    const vd one = vd_set1(1.0);
    const vd e = vd_exp(vd_neg(vd_abs(x)));
    return vd_div(vd_select_ge(x, vd_zero(), one, e), vd_add(one, e));
}

K3_INLINE vd vd_tanh(vd x)
{
    const vd one = vd_set1(1.0);
    const vd a = vd_abs(x);
    const vd q = vd_mul(x, x);
    const vd t = vd_mul(vd_fma(q, vd_set1(2.0 / 15.0), vd_set1(-1.0 / 3.0)), q);
    const vd series = vd_fma(x, t, x);
    const vd e = vd_exp(vd_mul(vd_set1(-2.0), a));
    const vd quotient = vd_div(vd_sub(one, e), vd_add(one, e));
    return vd_copysign(vd_select_lt(a, vd_set1(K3_TANH_TINY), series, quotient), x);
}

K3_INLINE vf vf_exp(vf x)
{
    return vf_narrow(vd_exp(vd_low(x)), vd_exp(vd_high(x)));
}

K3_INLINE vf vf_sigmoid(vf x)
{
    return vf_narrow(vd_sigmoid(vd_low(x)), vd_sigmoid(vd_high(x)));
}

K3_INLINE vf vf_tanh(vf x)
{
    return vf_narrow(vd_tanh(vd_low(x)), vd_tanh(vd_high(x)));
}

#endif
