/* SPDX-License-Identifier: Apache-2.0 */
#ifndef K3_RUNTIME_ENGINE_ENGINE_H
#define K3_RUNTIME_ENGINE_ENGINE_H

#include "format/pack/pack_reader.h"
#include "format/vocab/vocab.h"
#include "runtime/kernels/kernels.h"
#include "runtime/model/model.h"
#include "runtime/residency/weight_store.h"
#include "runtime/thread/pool.h"
#include "runtime/tokenizer/tokenizer.h"

/* A pack, opened and then loaded: everything that sessions share. */
struct k3_engine_options {
    unsigned threads;                 /* compute threads, >= 1 */
    const struct k3_kernels *kernels; /* NULL: the best of this machine */
};

struct k3_engine {
    struct k3_pack pack;
    const struct k3_kernels *kernels;
    struct k3_pool *pool;
    struct k3_weight_store *weights; /* NULL until k3_engine_load */
    struct k3_vocab *vocab;
    struct k3_tokenizer *tokenizer;
    uint32_t end_ids[2]; /* the config's end id, then [EOS] where the vocabulary has it */
    uint32_t end_id_count;
};

/* Errors: those of k3_pack_open; MALFORMED (tokenizer), UNSUPPORTED (floating-point environment),
 * NO_MEMORY. The engine must not move while sessions use it. */
K3_MUST_CHECK enum k3_code k3_engine_open(const char *pack_folder,
                                          const struct k3_engine_options *options,
                                          struct k3_engine *out_engine, struct k3_error *err);
void k3_engine_close(struct k3_engine *engine);

/* Gives an open engine its weights, within a budget: threads begin to read. Errors: IO, NO_MEMORY.
 */
K3_MUST_CHECK enum k3_code k3_engine_load(struct k3_engine *engine, const struct k3_budget *budget,
                                          const struct k3_store_options *options,
                                          struct k3_error *err);

bool k3_engine_is_end(const struct k3_engine *engine, uint32_t id);

/* Compute threads to use when nobody says: physical cores in the affinity mask, within the CPU
 * quota of the cgroup. At least 1. */
unsigned k3_default_threads(void);

#endif
