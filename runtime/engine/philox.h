/* SPDX-License-Identifier: Apache-2.0 */
#ifndef K3_RUNTIME_ENGINE_PHILOX_H
#define K3_RUNTIME_ENGINE_PHILOX_H

#include <stdint.h>

/* Philox4x32-10, the counter-based generator of Salmon, Moraes, Dror and Shaw (SC 2011): a number
 * is a pure function of key and counter, the same on every machine. */
void k3_philox4x32(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]);

/* The n-th uniform number in [0, 1) of a seed: 53 bits (docs/arithmetic.md 11). */
double k3_philox_uniform(uint64_t seed, uint64_t n);

#endif
