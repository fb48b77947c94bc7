/* SPDX-License-Identifier: Apache-2.0 */
#ifndef K3_RUNTIME_KERNELS_LANES_LANES_H
#define K3_RUNTIME_KERNELS_LANES_LANES_H

#include "runtime/kernels/tier.h"
#include "runtime/kernels/transcendental.h"

/* The fast tiers are written once, over vectors whose lanes are independent outputs, and compiled
 * once per instruction set. A tier is a folder with
 *
 *   simd.h       K3_TIER, LANES (4, 8 or 16), vf (LANES floats), vd (LANES / 2 doubles), vi (LANES
 *                dwords) and the one-instruction operations on them, under the same names
 * everywhere m4.h         the decoding of an MXFP4 line, which no two instruction sets do alike,
 * and the block shapes that fit its registers matrix.c, vector.c, attention.c   which include
 * simd.h and the file of that name from here
 *
 * Everything is static inline: code compiled with a tier's flags must not be linked to another's.
 *
 * Registers: accumulators live in small arrays. They stay in registers only when every loop over
 * them is unrolled completely (one that is not costs a factor of four): K3_UNROLL before each. What
 * is touched once in 32 terms should stay in memory instead, where it takes no register from them:
 * in_memory() hides from the compiler that it could do otherwise. */

#define K3_TIER_PASTE_(tier, name) k3_##tier##_##name
#define K3_TIER_PASTE(tier, name)  K3_TIER_PASTE_(tier, name)
#define K3_FN(name)                K3_TIER_PASTE(K3_TIER, name)
#define K3_TIER_DECLARE_(tier)     K3_TIER_DECLARE(tier)
K3_TIER_DECLARE_(K3_TIER);

#if defined(__clang__)
#define K3_UNROLL _Pragma("clang loop unroll(full)")
#else
#define K3_UNROLL _Pragma("GCC unroll 32")
#endif

/* For functions whose integer arguments must be constants where they are used. */
#define K3_INLINE static inline __attribute__((always_inline))

K3_INLINE void *in_memory(void *array)
{
    __asm__("" : "+r"(array));
    return array;
}

/* The same address, but what it holds is loaded once more instead of being kept in a register. */
K3_INLINE const uint8_t *load_again(const uint8_t *address)
{
    __asm__("" : "+r"(address));
    return address;
}

#define K3_GROUP      32U  /* terms of one P chain  */
#define K3_SUPERBLOCK 128U /* terms of one float S  */
#define TILE_VECTORS  (16 / LANES)

K3_INLINE size_t min_size(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* T = T + (double)S for `vectors` sums; totals[2v] are the low lanes of sum v. */
K3_INLINE void totals_add(vd *totals, const vf *S, size_t vectors)
{
    K3_UNROLL
    for (size_t v = 0; v < vectors; v++) {
        totals[2 * v] = vd_add(totals[2 * v], vd_low(S[v]));
        totals[2 * v + 1] = vd_add(totals[2 * v + 1], vd_high(S[v]));
    }
}

#endif
