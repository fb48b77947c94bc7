/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/runtime/kernels/ulp.h"

#include <float.h>
#include <math.h>

#include "format/base/bytes.h"
#include "runtime/kernels/kernels.h"

const char *kt_function_name(enum kt_function function)
{
    static const char *const names[KT_FUNCTIONS] = {"exp", "sigmoid", "tanh"};
    return names[function];
}

float kt_function_call(enum kt_function function, float x)
{
    return function == KT_EXP       ? k3_exp_f(x)
           : function == KT_SIGMOID ? k3_sigmoid_f(x)
                                    : k3_tanh_f(x);
}

static long double true_exp(long double x)
{
    return x > 89.0L ? HUGE_VALL : x < -104.0L ? 0.0L : fabsl(x) < 0x1p-30L ? 1.0L + x : expl(x);
}

static long double true_sigmoid(long double x)
{
    if (x < 0.0L) {
        const long double e = true_exp(x);
        return e / (1.0L + e);
    }
    return x > 60.0L ? 1.0L : 1.0L / (1.0L + true_exp(-x));
}

static long double true_tanh(long double x)
{
    const long double a = fabsl(x);
    return a > 30.0L ? copysignl(1.0L, x) : a < 0x1p-16L ? x - x * x * x / 3.0L : tanhl(x);
}

static long double oracle(enum kt_function function, float x)
{
    const long double wide = (long double)x;
    return function == KT_EXP       ? true_exp(wide)
           : function == KT_SIGMOID ? true_sigmoid(wide)
                                    : true_tanh(wide);
}

/* The distance between floats where `value` lies. */
static double unit(float value)
{
    const uint32_t exponent = k3_f32_to_bits(value) >> 23 & 255;
    return ldexp(1.0, (int)(exponent ? exponent : 1) - 150);
}

static double error_at(enum kt_function function, float x)
{
    const float got = kt_function_call(function, x);
    if (isnan(x)) {
        return isnan(got) ? 0.0 : HUGE_VAL;
    }
    const long double expected = oracle(function, x);
    if (isinf(got)) { /* right from half a unit above the largest float */
        return expected >= 0x1.ffffffp127L ? 0.0 : HUGE_VAL;
    }
    if (isnan(got) || isinf(expected)) {
        return HUGE_VAL;
    }
    return (double)fabsl((long double)got - expected) / unit((float)expected);
}

struct kt_ulp kt_ulp_sweep(enum kt_function function, uint32_t first, uint32_t stride,
                           uint64_t count)
{
    struct kt_ulp result = {0.0, first};
    uint32_t bits = first;
    for (uint64_t i = 0; i < count; i++, bits += stride) {
        const double error = error_at(function, k3_f32_from_bits(bits));
        if (error > result.worst) {
            result = (struct kt_ulp){error, bits};
        }
    }
    return result;
}
