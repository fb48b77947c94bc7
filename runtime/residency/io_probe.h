/* SPDX-License-Identifier: Apache-2.0 */
#ifndef K3_RUNTIME_RESIDENCY_IO_PROBE_H
#define K3_RUNTIME_RESIDENCY_IO_PROBE_H

#include "format/pack/pack_reader.h"
#include "runtime/residency/backing.h"

/* Which way of reading suits this pack on this machine: a few blocks of the trunk are read both
 * ways once, and the finding is kept under $XDG_CACHE_HOME/k3infer (or ~/.cache/k3infer) by pack
 * id, kernel and device. */
struct k3_io_rate {
    double bytes_per_second, cpu_seconds_per_gb;
};

struct k3_io_finding {
    enum k3_io_kind io; /* MMAP or DIRECT */
    bool was_cached;
    bool is_measured; /* rates are known: enough bytes came from a device */
    struct k3_io_rate mmap, direct;
    const char *reason; /* static text */
};

/* Never fails: what cannot be measured is answered with mmap. At most about two seconds. */
void k3_io_probe(const struct k3_pack *pack, struct k3_io_finding *out_finding);

/* The decision alone. */
void k3_io_decide(struct k3_io_finding *finding);

#endif
