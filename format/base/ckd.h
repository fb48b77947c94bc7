/* SPDX-License-Identifier: Apache-2.0 */
#ifndef K3_FORMAT_BASE_CKD_H
#define K3_FORMAT_BASE_CKD_H

#include <stdbool.h>
#include <stdint.h>

/* C23's checked arithmetic by name: true means the exact result does not fit *out. */
#define ckd_add(out, a, b) __builtin_add_overflow((a), (b), (out))
#define ckd_sub(out, a, b) __builtin_sub_overflow((a), (b), (out))
#define ckd_mul(out, a, b) __builtin_mul_overflow((a), (b), (out))

/* Does [offset, offset + bytes) lie in [0, total)? No sum that could overflow. */
static inline bool k3_range_fits(uint64_t offset, uint64_t bytes, uint64_t total)
{
    return offset <= total && bytes <= total - offset;
}

/* Round up to a multiple of `unit` (> 0). The caller knows that the result fits. */
static inline uint64_t k3_round_up(uint64_t value, uint64_t unit)
{
    const uint64_t rest = value % unit;
    return rest == 0 ? value : value + (unit - rest);
}

static inline uint64_t k3_min_u64(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static inline uint64_t k3_max_u64(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

#endif
