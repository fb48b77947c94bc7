/* SPDX-License-Identifier: Apache-2.0 */
#ifndef K3_RUNTIME_RESIDENCY_EXPERT_CACHE_H
#define K3_RUNTIME_RESIDENCY_EXPERT_CACHE_H

#include "runtime/residency/backing.h"
#include "runtime/residency/budget.h"
#include "runtime/residency/integrity.h"

/* Experts that are held: a fixed number of slots. The router's list
 * is fetched in its order by as many threads as there are; the reader takes the experts in that
 * order too. Every function is called under the caller's lock, except k3_expert_job_run. */

#define K3_EXPERT_NONE  UINT32_MAX
#define K3_EXPERT_GOING (UINT32_MAX - 1) /* in slot_of: being dropped, not to be fetched yet */

enum k3_slot_state { K3_SLOT_EMPTY, K3_SLOT_COMING, K3_SLOT_HERE, K3_SLOT_BAD };

struct k3_expert_slot {
    uint64_t used_at; /* by the cache's clock           */
    uint32_t number;  /* expert in file order           */
    uint32_t wanted;  /* place in the list, or NONE     */
    uint32_t holds;
    uint8_t state; /* enum k3_slot_state             */
};

struct k3_expert_cache {
    const struct k3_pack *pack; /* borrowed */
    struct k3_backing *backing; /* borrowed */
    enum k3_check_policy policy;
    struct k3_expert_slot *slots; /* owned */
    uint32_t slot_count;
    uint32_t *slot_of;   /* owned: by number, or NONE, GOING */
    uint8_t *is_checked; /* owned: by number          */
    uint32_t *list;      /* owned: numbers that the router chose */
    uint32_t list_count, taken;
    uint64_t clock;
    struct k3_error error;

    uint64_t read_bytes, acquired, misses, checked_bytes, check_ns;
};

K3_MUST_CHECK enum k3_code k3_expert_cache_init(const struct k3_pack *pack,
                                                struct k3_backing *backing, uint32_t slot_count,
                                                enum k3_check_policy policy,
                                                struct k3_expert_cache *out_cache,
                                                struct k3_error *err);
void k3_expert_cache_done(struct k3_expert_cache *cache);

/* What the reader does: announce a list, take its experts in order, give them back. */
void k3_expert_cache_announce(struct k3_expert_cache *cache, uint32_t layer,
                              const uint32_t *experts, uint32_t count);
K3_MUST_CHECK enum k3_code k3_expert_cache_take(struct k3_expert_cache *cache, uint64_t number,
                                                bool *out_is_ready, struct k3_error *err);
void k3_expert_cache_release(struct k3_expert_cache *cache, uint64_t number);

/* What an input thread does. */
struct k3_expert_job {
    uint32_t slot, number, evicted; /* evicted: a number, or NONE */
    bool checks;
    uint64_t check_ns;
};
bool k3_expert_job_take(struct k3_expert_cache *cache, struct k3_expert_job *out_job);
K3_MUST_CHECK enum k3_code k3_expert_job_run(const struct k3_expert_cache *cache,
                                             struct k3_expert_job *job, struct k3_error *err);
void k3_expert_job_finish(struct k3_expert_cache *cache, const struct k3_expert_job *job,
                          enum k3_code code, const struct k3_error *err);

#endif
