/* SPDX-License-Identifier: Apache-2.0 */
#ifndef K3_FORMAT_BASE_CLOCK_H
#define K3_FORMAT_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

/* Nanoseconds of the monotonic clock: for durations only. */
static inline uint64_t k3_clock_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000U + (uint64_t)now.tv_nsec;
}

#endif
