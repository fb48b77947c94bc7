/* SPDX-License-Identifier: Apache-2.0 */
#ifndef K3_RUNTIME_RESIDENCY_WEIGHT_STORE_H
#define K3_RUNTIME_RESIDENCY_WEIGHT_STORE_H

#include "runtime/model/weight_source.h"
#include "runtime/residency/backing.h"
#include "runtime/residency/budget.h"
#include "runtime/residency/integrity.h"

/* Everything behind the two doors: a pack's weights within a budget, brought in and checked by
 * threads of its own, experts before trunk, so that compute threads meet neither disk nor fault. */
struct k3_weight_store;

enum k3_pin_kind { K3_PIN_SOFT, K3_PIN_HARD };

struct k3_store_options {
    enum k3_io_kind io; /* not AUTO */
    enum k3_check_policy check;
    enum k3_pin_kind pin;
    unsigned threads; /* of input, >= 1 */
};

/* Counted from the start. */
struct k3_store_counts {
    uint64_t trunk_bytes, expert_bytes, experts; /* handed out */
    uint64_t trunk_read_bytes, expert_read_bytes, row_read_bytes;
    uint64_t ideal_bytes; /* needed and not kept */
    uint64_t pinned_bytes, expert_hits, expert_misses;
    uint64_t checked_bytes, check_ns;       /* check_ns: summed over the input threads */
    uint64_t trunk_wait_ns, expert_wait_ns; /* of the reader                            */
    uint64_t failed_hints, refused_locks;
    uint64_t input_cpu_ns; /* of the input threads, up to their last wait */
};

/* Borrows the pack, which must outlive it; budget is copied from. Errors: IO, NO_MEMORY. */
K3_MUST_CHECK enum k3_code k3_weight_store_create(const struct k3_pack *pack,
                                                  const struct k3_budget *budget,
                                                  const struct k3_store_options *options,
                                                  struct k3_weight_store **out_store,
                                                  struct k3_error *err);
void k3_weight_store_destroy(struct k3_weight_store *store);

struct k3_weight_source k3_weight_store_doors(struct k3_weight_store *store);
void k3_weight_store_counts(struct k3_weight_store *store, struct k3_store_counts *out_counts);

/* What is in use: DIRECT may have become READ. */
enum k3_io_kind k3_weight_store_io(const struct k3_weight_store *store);

/* For a SIGBUS handler: which file and offset an address belongs to. NULL when it is not ours.
 * Async signal safe. */
const char *k3_weight_store_locate(const struct k3_weight_store *store, const void *address,
                                   uint64_t *out_offset);

#endif
