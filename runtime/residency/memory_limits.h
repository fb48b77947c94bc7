/* SPDX-License-Identifier: Apache-2.0 */
#ifndef K3_RUNTIME_RESIDENCY_MEMORY_LIMITS_H
#define K3_RUNTIME_RESIDENCY_MEMORY_LIMITS_H

#include <stdint.h>

/* How much memory this process may use: the machine's, and every limit of the control groups that
 * it is in and of their ancestors, version 1 and 2. */
#define K3_MEMORY_NO_LIMIT   UINT64_MAX
#define K3_LIMIT_SOURCE_ROOM 256

struct k3_memory_limits {
    uint64_t physical_bytes; /* MemTotal; K3_MEMORY_NO_LIMIT where it cannot be read          */
    uint64_t cgroup_bytes;   /* smallest limit of the chain, K3_MEMORY_NO_LIMIT without any   */
    char cgroup_source[K3_LIMIT_SOURCE_ROOM]; /* the file that holds it, "" without any       */
    char peak_source[K3_LIMIT_SOURCE_ROOM];   /* the file with this group's own peak, or ""   */
};

/* `root` goes in front of every path that is read ("" is this machine), so that a folder of files
 * can stand for another machine. What cannot be read is no limit. */
void k3_memory_limits_read(const char *root, struct k3_memory_limits *out_limits);

/* Largest memory that this process's group has been charged with; 0 when nobody says. Others in the
 * group count, and so does what came before this process. */
uint64_t k3_memory_group_peak(const struct k3_memory_limits *limits);

/* The tightest of them all. */
uint64_t k3_memory_limit(const struct k3_memory_limits *limits);

#endif
