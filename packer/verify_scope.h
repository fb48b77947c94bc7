/* SPDX-License-Identifier: Apache-2.0 */
#ifndef K3_PACKER_VERIFY_SCOPE_H
#define K3_PACKER_VERIFY_SCOPE_H

#include <stdbool.h>

#include "format/pack/tables.h"

/* Which part of a pack's data is read. Zeroed is all of it. Layers and experts add up: what either
 * names is read; of that a sample is taken, where one was asked for. */
#define K3_SCOPE_EXPERTS_MAX 256U

struct k3_expert_choice {
    uint32_t layer, first, last; /* experts first..last of a layer */
};

struct k3_verify_scope {
    bool has_layers;
    uint32_t first_layer, last_layer; /* their trunk and their experts */
    struct k3_expert_choice experts[K3_SCOPE_EXPERTS_MAX];
    unsigned expert_count;
    double sample_percent; /* 0: no sample, everything; else up to 100 */
    uint64_t sample_seed;  /* which blocks and experts are in the sample */
};

static inline bool k3_scope_is_partial(const struct k3_verify_scope *scope)
{
    return scope->has_layers || scope->expert_count > 0 || scope->sample_percent > 0;
}

/* "L:E,L:A-B,..." of --experts; "P" or "P%" of --sample. Errors: USAGE. */
K3_MUST_CHECK enum k3_code k3_scope_parse_experts(const char *text, struct k3_verify_scope *scope,
                                                  struct k3_error *err);
K3_MUST_CHECK enum k3_code k3_scope_parse_sample(const char *text, struct k3_verify_scope *scope,
                                                 struct k3_error *err);

/* Does the model have what was asked for? Errors: USAGE, with what there is. */
K3_MUST_CHECK enum k3_code k3_scope_check(const struct k3_verify_scope *scope,
                                          const struct k3_pack_tables *tables,
                                          struct k3_error *err);

/* Block `block` of an extent; expert by number. Pure: the same answer each time. */
bool k3_scope_has_block(const struct k3_verify_scope *scope, const struct k3_trunk_extent *extent,
                        uint32_t block);
bool k3_scope_has_expert(const struct k3_verify_scope *scope, const struct k3_expert_layout *layout,
                         uint64_t expert);

/* "layers 3-5, experts 7:12, a sample of 5 %" */
#define K3_SCOPE_TEXT_BYTES 400
void k3_scope_format(const struct k3_verify_scope *scope, char out_text[K3_SCOPE_TEXT_BYTES]);

#endif
