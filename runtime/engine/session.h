/* SPDX-License-Identifier: Apache-2.0 */
#ifndef K3_RUNTIME_ENGINE_SESSION_H
#define K3_RUNTIME_ENGINE_SESSION_H

#include "runtime/engine/engine.h"

/* One timeline of tokens over a loaded pack: state, position, working memory. */
struct k3_session_options {
    uint64_t context; /* positions to reserve, >= 1 */
    size_t chunk;     /* tokens of one prefill pass, >= 1; logits do not depend on it */
    double mla_eps;
    bool wants_all_logits;
};

struct k3_session {
    const struct k3_engine *engine; /* borrowed */
    struct k3_session_options options;
    struct k3_sequence sequence;
    struct k3_model model;
    float *logits; /* owned: rows of k3_padded(vocab); one, or a chunk of them */
};

/* Where a pass stands: for progress, and for stopping (return false). `tokens_done` of `tokens`
 * have been fed before this pass; it is about to run `layer` of `layers`. */
struct k3_feed_progress {
    size_t tokens_done, tokens;
    uint32_t layer, layers;
};
struct k3_feed_hook {
    bool (*report)(void *user, const struct k3_feed_progress *progress); /* may be NULL */
    /* Every position's logits, in order, when wants_all_logits; may be NULL. */
    enum k3_code (*row)(void *user, const float *logits, struct k3_error *err);
    void *user;
};

/* Errors: USAGE (context beyond the model's), NO_MEMORY. */
K3_MUST_CHECK enum k3_code k3_session_init(const struct k3_engine *engine,
                                           const struct k3_session_options *options,
                                           struct k3_session *out_session, struct k3_error *err);
void k3_session_done(struct k3_session *session);

/* Feeds ids (at least one) at the next positions, in passes of at most `chunk`. *out_logits:
 * [vocab] of the last position, valid until the next call. Errors: USAGE (an id that does not
 * exist, no room in the context: with the numbers), DAMAGED, IO, INTERRUPTED. After an error the
 * session can only be ended. */
K3_MUST_CHECK enum k3_code k3_session_feed(struct k3_session *session, const uint32_t *ids,
                                           size_t count, const struct k3_feed_hook *hook,
                                           const float **out_logits, struct k3_error *err);

/* Bytes of memory that a session with these options takes. */
uint64_t k3_session_bytes(const struct k3_engine *engine, const struct k3_session_options *options);

#endif
