/* SPDX-License-Identifier: Apache-2.0 */
#ifndef K3_RUNTIME_RESIDENCY_TRUNK_STREAM_H
#define K3_RUNTIME_RESIDENCY_TRUNK_STREAM_H

#include "runtime/residency/backing.h"
#include "runtime/residency/budget.h"
#include "runtime/residency/integrity.h"

/* The trunk on its way through memory: blocks in order of use, pass after pass, fetched ahead of
 * the reader as far as the window allows and dropped behind it. The pinned start of every extent
 * comes with the first pass and stays.
 *
 * Positions count blocks from the first pass on and never turn back: block = position % count.
 * Every function is called under the caller's lock, except k3_trunk_job_run. */

enum k3_block_state {
    K3_BLOCK_ABSENT,
    K3_BLOCK_COMING,
    K3_BLOCK_HERE,
    K3_BLOCK_BAD,
    K3_BLOCK_GOING
};

struct k3_stream_block {
    uint64_t file_offset;
    uint32_t bytes, kept; /* kept: at its start, stays once it is here */
    uint32_t extent;
    uint8_t state; /* enum k3_block_state */
    bool has_kept, is_checked, was_used;
    uint16_t holds;
};

struct k3_trunk_stream {
    const struct k3_pack *pack; /* borrowed */
    struct k3_backing *backing; /* borrowed */
    enum k3_check_policy policy;
    bool locks_pin;
    struct k3_stream_block *blocks; /* owned: the whole path */
    uint32_t count, head_first;
    uint64_t window_bytes, window_used;

    uint64_t at;      /* the reader is here; everything before it has been used     */
    uint64_t needed;  /* the reader waits for positions before this one             */
    uint64_t next;    /* to be fetched                                              */
    uint64_t oldest;  /* everything before it has been dropped or is pinned         */
    uint64_t counted; /* ideal_bytes holds the positions before this one            */
    uint64_t pass;    /* that has begun; its first position is pass * count         */
    bool has_begun, needs_head;
    struct k3_error error; /* of the first bad block */

    uint64_t read_bytes, ideal_bytes, pinned_bytes, checked_bytes, check_ns, refused_locks;
};

K3_MUST_CHECK enum k3_code
k3_trunk_stream_init(const struct k3_pack *pack, struct k3_backing *backing,
                     const struct k3_budget *budget, enum k3_check_policy policy, bool locks_pin,
                     struct k3_trunk_stream *out_stream, struct k3_error *err);
void k3_trunk_stream_done(struct k3_trunk_stream *stream);

void k3_trunk_stream_pass(struct k3_trunk_stream *stream, bool needs_head);

/* What the reader does. hold: counts the blocks of a range as held; then wait until is_ready, or
 * until an error comes back. Ranges lie before the embedding. */
void k3_trunk_stream_hold(struct k3_trunk_stream *stream, uint64_t offset, uint64_t bytes);
K3_MUST_CHECK enum k3_code k3_trunk_stream_poll(const struct k3_trunk_stream *stream,
                                                uint64_t offset, uint64_t bytes, bool *out_is_ready,
                                                struct k3_error *err);
void k3_trunk_stream_release(struct k3_trunk_stream *stream, uint64_t offset, uint64_t bytes);

/* What an input thread does: take a job (false: nothing to do now), run it unlocked, finish it. */
struct k3_trunk_job {
    uint32_t block, from; /* from: what comes before it in the block is there already */
    bool is_drop, is_refresh, checks;
    uint64_t check_ns;
};
bool k3_trunk_job_take(struct k3_trunk_stream *stream, struct k3_trunk_job *out_job);
K3_MUST_CHECK enum k3_code k3_trunk_job_run(const struct k3_trunk_stream *stream,
                                            struct k3_trunk_job *job, struct k3_error *err);
void k3_trunk_job_finish(struct k3_trunk_stream *stream, const struct k3_trunk_job *job,
                         enum k3_code code, const struct k3_error *err);

#endif
