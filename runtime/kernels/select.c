/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "runtime/kernels/tier.h"

K3_TIER_DECLARE(scalar);

/* Does this processor have it, and does the system save its registers? __builtin_cpu_supports asks
 * both (cpuid, and xgetbv for the AVX and AVX-512 state). */
#if defined(__x86_64__)
K3_TIER_DECLARE(avx2);
K3_TIER_DECLARE(avx512);

static int has_avx2(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}
static int has_avx512(void)
{
    return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}
#elif defined(__aarch64__)
K3_TIER_DECLARE(neon); /* part of the base architecture */
#endif

static int always(void)
{
    return 1;
}

/* Fastest first; the scalar tier ends the list. */
static const struct {
    const struct k3_kernels *kernels;
    int (*is_supported)(void);
} tiers[] = {
#if defined(__x86_64__)
    {&k3_avx512_kernels, has_avx512},
    {&k3_avx2_kernels, has_avx2},
#elif defined(__aarch64__)
    {&k3_neon_kernels, always},
#endif
    {&k3_scalar_kernels, always},
};

const struct k3_kernels *k3_kernels_best(void)
{
    size_t i = 0;
    while (!tiers[i].is_supported()) {
        i++;
    }
    return tiers[i].kernels;
}

const struct k3_kernels *k3_kernels_by_name(const char *name)
{
    for (size_t i = 0; i < sizeof tiers / sizeof tiers[0]; i++) {
        if (strcmp(tiers[i].kernels->name, name) == 0) {
            return tiers[i].is_supported() ? tiers[i].kernels : NULL;
        }
    }
    return NULL;
}
