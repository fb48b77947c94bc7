/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/kernels/transcendental.h"

#include "runtime/kernels/kernels.h"

double k3_exp_d(double x)
{
    return k3_inline_exp_d(x);
}

double k3_sigmoid_d(double x)
{
    return k3_inline_sigmoid_d(x);
}

float k3_exp_f(float x)
{
    return k3_inline_exp_f(x);
}

float k3_sigmoid_f(float x)
{
    return k3_inline_sigmoid_f(x);
}

float k3_tanh_f(float x)
{
    return k3_inline_tanh_f(x);
}
