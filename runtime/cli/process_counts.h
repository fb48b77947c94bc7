/* SPDX-License-Identifier: Apache-2.0 */
#ifndef K3_RUNTIME_CLI_PROCESS_COUNTS_H
#define K3_RUNTIME_CLI_PROCESS_COUNTS_H

#include <stdint.h>

#include "runtime/thread/pool.h"

/* What the system says about this process: counts since its start, and memory now. 0 where it does
 * not say. */
struct k3_process_counts {
    uint64_t device_read_bytes; /* /proc/self/io read_bytes */
    uint64_t major_faults, minor_faults;
    uint64_t compute_faults; /* of compute threads, both kinds; needs a pool */
    uint64_t cpu_ns;
    uint64_t peak_resident_bytes; /* mapped file pages included */
    uint64_t anonymous_bytes, mapped_bytes, page_table_bytes;
};

/* pool: whose threads are looked at; may be NULL. */
void k3_process_counts_read(const struct k3_pool *pool, struct k3_process_counts *out_counts);

#endif
