/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/engine/philox.h"

#define ROUNDS 10

void k3_philox4x32(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4])
{
    uint32_t c0 = counter[0], c1 = counter[1], c2 = counter[2], c3 = counter[3];
    uint32_t k0 = key[0], k1 = key[1];
    for (int round = 0; round < ROUNDS; round++) {
        const uint64_t p0 = (uint64_t)c0 * 0xD2511F53U, p1 = (uint64_t)c2 * 0xCD9E8D57U;
        c0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
        c1 = (uint32_t)p1;
        c2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
        c3 = (uint32_t)p0;
        k0 += 0x9E3779B9U;
        k1 += 0xBB67AE85U;
    }
    out[0] = c0;
    out[1] = c1;
    out[2] = c2;
    out[3] = c3;
}

double k3_philox_uniform(uint64_t seed, uint64_t n)
{
    const uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
    const uint32_t counter[4] = {(uint32_t)n, (uint32_t)(n >> 32), 0, 0};
    uint32_t out[4];
    k3_philox4x32(counter, key, out);
    const uint64_t high = out[0] >> 5, low = out[1] >> 6;
    return (double)((high << 26) + low) * 0x1p-53;
}
