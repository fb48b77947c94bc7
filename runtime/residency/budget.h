/* SPDX-License-Identifier: Apache-2.0 */
#ifndef K3_RUNTIME_RESIDENCY_BUDGET_H
#define K3_RUNTIME_RESIDENCY_BUDGET_H

#include <stdbool.h>
#include <stddef.h>

#include "format/pack/tables.h"
#include "runtime/residency/memory_limits.h"

/* The memory plan: pure functions, made before anything is allocated (docs/memory.md). */

/* What a person asked for. */
enum k3_ram_kind { K3_RAM_AUTO, K3_RAM_SIZE, K3_RAM_PRESET };

struct k3_ram_request {
    enum k3_ram_kind kind;
    uint64_t bytes;     /* K3_RAM_SIZE: the whole budget; K3_RAM_PRESET: the machine's memory */
    const char *preset; /* K3_RAM_PRESET: its name                                            */
};

/* "laptop", "desktop", "workstation", "server", "max". false: no such name. */
bool k3_ram_preset(const char *name, struct k3_ram_request *out_request);

/* What stays free below a limit: max(256 MiB, 3 %). */
uint64_t k3_headroom_bytes(uint64_t limit_bytes);

/* The whole budget in bytes. *out_was_clipped: a preset is larger than this machine. Errors:
 * BUDGET (an explicit size above the machine or its control group; says what would work). */
K3_MUST_CHECK enum k3_code k3_ram_resolve(const struct k3_ram_request *request,
                                          const struct k3_memory_limits *limits,
                                          uint64_t *out_bytes, bool *out_was_clipped,
                                          struct k3_error *err);

/* Bytes of one session. */
struct k3_session_sizes {
    uint64_t state_bytes;   /* recurrent states and convolution history          */
    uint64_t latent_bytes;  /* rows of the MLA layers for the whole context      */
    uint64_t scratch_bytes; /* working memory of a pass                          */
    uint64_t logit_bytes;   /* logits and the sampler                            */
};

struct k3_budget_request {
    const struct k3_pack_tables *tables; /* borrowed */
    uint64_t total_bytes;
    uint64_t base_bytes; /* held already: program, index, tables, vocabulary, stacks */
    size_t chunk;        /* tokens of a prefill pass; 0: planned                     */
    size_t chunk_max;    /* of a planned one: the prompt's length, >= 1              */
    /* Sizes of a session whose passes have up to `chunk` tokens; false when they overflow. */
    bool (*session_sizes)(const void *context, size_t chunk, struct k3_session_sizes *out_sizes);
    const void *context;
};

/* One ledger. Everything below total_bytes is accounted for. */
struct k3_budget {
    uint64_t total_bytes;
    uint64_t floor_bytes; /* the smallest total that works for this request */

    uint64_t base_bytes, page_table_bytes;
    struct k3_session_sizes session;
    uint64_t window_bytes; /* trunk on its way through       */
    uint64_t pinned_bytes; /* trunk that stays               */
    uint64_t slot_bytes;   /* of one expert                  */
    uint32_t slot_count;   /* experts held                   */
    uint64_t unused_bytes;

    size_t chunk;
    uint64_t share_bytes; /* pinned at the start of every extent */
    uint64_t run_bytes;   /* trunk that is acquired at once      */
    uint32_t wave;        /* experts that are acquired at once   */

    uint64_t trunk_pass_bytes;     /* of a pass with logits, nothing kept */
    uint64_t trunk_streamed_bytes; /* of it, read every time              */
    uint64_t expert_token_bytes;   /* of a token, nothing kept            */
    double expert_hit_share;       /* if routing were uniform             */
    double ideal_token_bytes;      /* read per token of decode            */
};

/* Errors: BUDGET, below the floor, with the number that works. */
K3_MUST_CHECK enum k3_code k3_budget_plan(const struct k3_budget_request *request,
                                          struct k3_budget *out_budget, struct k3_error *err);

/* The parts of the trunk that every pass goes through: blocks 0..count of the block table, and the
 * first one that only a pass with logits needs. The embedding is read by rows and is not here. */
struct k3_trunk_path {
    uint32_t block_count, head_first;
};
struct k3_trunk_path k3_trunk_path_of(const struct k3_pack_tables *tables);

/* Block `number` of the table: where it lies. */
struct k3_trunk_block {
    uint64_t file_offset, bytes;
    uint64_t in_extent; /* offset in its extent */
    uint32_t extent;
};
struct k3_trunk_block k3_trunk_block_of(const struct k3_pack_tables *tables, uint32_t extent,
                                        uint32_t block_in_extent);

/* Bytes at the start of a block that a share pins. */
static inline uint64_t k3_block_kept(const struct k3_trunk_block *block, uint64_t share_bytes)
{
    const uint64_t left = share_bytes > block->in_extent ? share_bytes - block->in_extent : 0;
    return left < block->bytes ? left : block->bytes;
}

#endif
