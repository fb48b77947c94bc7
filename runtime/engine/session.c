/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/engine/session.h"

#include <inttypes.h>
#include <stdlib.h>

#include "format/base/ckd.h"

static size_t logit_rows(const struct k3_session_options *options)
{
    return options->wants_all_logits ? options->chunk : 1;
}

uint64_t k3_session_bytes(const struct k3_engine *engine, const struct k3_session_options *options)
{
    const struct k3_model_spec *spec = &engine->pack.tables.spec;
    const uint64_t state = k3_sequence_bytes(spec, options->context);
    const uint64_t scratch = k3_scratch_bytes(spec, options->chunk, options->context,
                                              k3_pool_thread_count(engine->pool));
    const uint64_t logits = logit_rows(options) * k3_padded(spec->vocab) * sizeof(float);
    uint64_t total = 0;
    if (ckd_add(&total, state, scratch) || ckd_add(&total, total, logits)) {
        return UINT64_MAX;
    }
    return total;
}

enum k3_code k3_session_init(const struct k3_engine *engine,
                             const struct k3_session_options *options,
                             struct k3_session *out_session, struct k3_error *err)
{
    const struct k3_model_spec *spec = &engine->pack.tables.spec;
    if (options->context > spec->max_positions) {
        return k3_fail(err, K3_ERR_USAGE, K3_ERROR_NO_OFFSET,
                       "a context of %" PRIu64 " positions is more than the model's %" PRIu64,
                       options->context, spec->max_positions);
    }
    struct k3_session s = {.engine = engine, .options = *options};
    enum k3_code code = k3_sequence_init(spec, options->context, &s.sequence, err);
    if (code == K3_OK) {
        const struct k3_compute compute = {.kernels = engine->kernels, .pool = engine->pool};
        code = k3_model_init(&engine->pack.tables, k3_weight_store_doors(engine->weights), compute,
                             options->chunk, options->context, options->mla_eps, &s.model, err);
    }
    if (code == K3_OK) {
        s.logits = calloc(logit_rows(options) * k3_padded(spec->vocab), sizeof(float));
        code = s.logits ? K3_OK : k3_fail_no_memory(err, "logits");
    }
    if (code != K3_OK) {
        k3_session_done(&s);
        return code;
    }
    *out_session = s;
    return K3_OK;
}

void k3_session_done(struct k3_session *session)
{
    k3_sequence_done(&session->sequence);
    k3_model_done(&session->model);
    free(session->logits);
    *session = (struct k3_session){0};
}

static enum k3_code check_ids(const struct k3_session *session, const uint32_t *ids, size_t count,
                              struct k3_error *err)
{
    const struct k3_sequence *sequence = &session->sequence;
    if (count > sequence->context - sequence->length) {
        return k3_fail(err, K3_ERR_USAGE, K3_ERROR_NO_OFFSET,
                       "%zu tokens at position %" PRIu64 " do not fit a context of %" PRIu64
                       " positions; raise --context",
                       count, sequence->length, sequence->context);
    }
    const uint32_t vocab = session->engine->pack.tables.spec.vocab;
    for (size_t i = 0; i < count; i++) {
        if (ids[i] >= vocab) {
            return k3_fail(err, K3_ERR_USAGE, K3_ERROR_NO_OFFSET,
                           "token id %u (number %zu) does not exist: ids are 0..%u", ids[i], i + 1,
                           vocab - 1);
        }
    }
    return K3_OK;
}

struct pass {
    const struct k3_feed_hook *hook;
    struct k3_feed_progress progress;
};

static bool before_layer(void *user, uint32_t layer)
{
    struct pass *pass = user;
    if (!pass->hook || !pass->hook->report) {
        return true;
    }
    pass->progress.layer = layer;
    return pass->hook->report(pass->hook->user, &pass->progress);
}

static enum k3_code hand_out_rows(const struct k3_session *session, size_t rows,
                                  const struct k3_feed_hook *hook, struct k3_error *err)
{
    const size_t stride = k3_padded(session->engine->pack.tables.spec.vocab);
    for (size_t i = 0; i < rows; i++) {
        const enum k3_code code = hook->row(hook->user, session->logits + i * stride, err);
        if (code != K3_OK) {
            return code;
        }
    }
    return K3_OK;
}

enum k3_code k3_session_feed(struct k3_session *session, const uint32_t *ids, size_t count,
                             const struct k3_feed_hook *hook, const float **out_logits,
                             struct k3_error *err)
{
    enum k3_code code = check_ids(session, ids, count, err);
    const bool is_all = session->options.wants_all_logits;
    const size_t vocab_row = k3_padded(session->engine->pack.tables.spec.vocab);
    struct pass pass = {.hook = hook,
                        .progress = {.tokens = count, .layers = session->model.spec->layers}};
    const struct k3_layer_hook layer_hook = {.before = before_layer, .user = &pass};
    size_t last = 0;
    for (size_t done = 0; code == K3_OK && done < count;) {
        const size_t step = k3_min_u64(session->options.chunk, count - done);
        const bool needs_logits = is_all || done + step == count;
        pass.progress.tokens_done = done;
        code = k3_model_forward(&session->model, &session->sequence, ids + done, step,
                                needs_logits ? session->logits : NULL, is_all, &layer_hook, err);
        if (code == K3_OK && is_all && hook && hook->row) {
            code = hand_out_rows(session, step, hook, err);
        }
        done += step;
        last = is_all ? step - 1 : 0;
    }
    if (code == K3_OK) {
        *out_logits = session->logits + last * vocab_row;
    }
    return code;
}
