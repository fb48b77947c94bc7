/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE /* sched_getaffinity, CPU_COUNT */
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>

#include "runtime/engine/engine.h"

/* Is this processor the first of its core's hardware threads? Unknown counts as yes. */
static bool is_first_of_core(int cpu)
{
    char path[96];
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", cpu);
    FILE *file = fopen(path, "re");
    int first = cpu;
    if (file) {
        if (fscanf(file, "%d", &first) != 1) {
            first = cpu;
        }
        fclose(file);
    }
    return first == cpu;
}

static unsigned cores_in_affinity(void)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    if (sched_getaffinity(0, sizeof set, &set) != 0) {
        return 1;
    }
    unsigned cores = 0;
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        cores += CPU_ISSET((size_t)cpu, &set) && is_first_of_core(cpu);
    }
    /* An affinity mask may hold only second siblings. */
    return cores > 0 ? cores : (unsigned)CPU_COUNT(&set);
}

/* Whole processors that the cgroup's quota allows, rounded up; 0 when there is no quota. */
static unsigned quota(void)
{
    long long limit = -1, period = 0;
    FILE *file = fopen("/sys/fs/cgroup/cpu.max", "re"); /* v2; "max 100000" does not parse */
    if (file) {
        if (fscanf(file, "%lld %lld", &limit, &period) != 2) {
            limit = -1;
        }
        fclose(file);
    } else {
        FILE *quota_file = fopen("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "re");
        FILE *period_file = fopen("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "re");
        if (!quota_file || fscanf(quota_file, "%lld", &limit) != 1 || !period_file ||
            fscanf(period_file, "%lld", &period) != 1) {
            limit = -1;
        }
        if (quota_file) {
            fclose(quota_file);
        }
        if (period_file) {
            fclose(period_file);
        }
    }
    return limit > 0 && period > 0 ? (unsigned)((limit + period - 1) / period) : 0;
}

unsigned k3_default_threads(void)
{
    const unsigned cores = cores_in_affinity(), allowed = quota();
    const unsigned count = allowed > 0 && allowed < cores ? allowed : cores;
    return count < K3_POOL_THREADS_MAX ? count : K3_POOL_THREADS_MAX;
}
