/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/engine/engine.h"

static enum k3_code open_tokenizer(struct k3_engine *engine, struct k3_error *err)
{
    const struct k3_file_bundle *files = &engine->pack.files;
    enum k3_code code = k3_vocab_create(
        files->files[K3_BUNDLED_TIKTOKEN].bytes, files->files[K3_BUNDLED_TIKTOKEN].len,
        files->files[K3_BUNDLED_TOKENIZER_CONFIG].bytes,
        files->files[K3_BUNDLED_TOKENIZER_CONFIG].len, &engine->vocab, err);
    if (code != K3_OK) {
        return code;
    }
    const struct k3_model_spec *spec = &engine->pack.tables.spec;
    if (k3_vocab_count(engine->vocab) != spec->vocab) {
        return k3_fail(err, K3_ERR_MALFORMED, K3_ERROR_NO_OFFSET,
                       "the tokenizer has %u tokens, the model %u", k3_vocab_count(engine->vocab),
                       spec->vocab);
    }
    engine->end_ids[engine->end_id_count++] = spec->eos_id;
    uint32_t eos = 0;
    if (!k3_vocab_find_added(engine->vocab, "[EOS]", &eos)) {
        return k3_fail(err, K3_ERR_MALFORMED, K3_ERROR_NO_OFFSET,
                       "tokenizer_config.json: no added token is spelled [EOS], which ends a text");
    }
    if (eos != spec->eos_id) {
        engine->end_ids[engine->end_id_count++] = eos;
    }
    return k3_tokenizer_create(engine->vocab, K3_TEXT_CAPS_RELEASED, &engine->tokenizer, err);
}

enum k3_code k3_engine_open(const char *pack_folder, const struct k3_engine_options *options,
                            struct k3_engine *out_engine, struct k3_error *err)
{
    struct k3_engine engine = {.kernels = options->kernels ? options->kernels : k3_kernels_best()};
    enum k3_code code = k3_pack_open(pack_folder, &engine.pack, err);
    if (code != K3_OK) {
        return code;
    }
    *out_engine = engine;
    code = open_tokenizer(out_engine, err);
    if (code == K3_OK) {
        code = k3_pool_create(options->threads, k3_float_environment_check, &out_engine->pool, err);
    }
    if (code != K3_OK) {
        k3_engine_close(out_engine);
    }
    return code;
}

enum k3_code k3_engine_load(struct k3_engine *engine, const struct k3_budget *budget,
                            const struct k3_store_options *options, struct k3_error *err)
{
    return k3_weight_store_create(&engine->pack, budget, options, &engine->weights, err);
}

void k3_engine_close(struct k3_engine *engine)
{
    k3_weight_store_destroy(engine->weights);
    k3_pool_destroy(engine->pool);
    k3_tokenizer_destroy(engine->tokenizer);
    k3_vocab_destroy(engine->vocab);
    k3_pack_close(&engine->pack);
    *engine = (struct k3_engine){
        .pack = {.index = K3_FILE_CLOSED, .trunk = K3_FILE_CLOSED, .experts = K3_FILE_CLOSED}};
}

bool k3_engine_is_end(const struct k3_engine *engine, uint32_t id)
{
    for (uint32_t i = 0; i < engine->end_id_count; i++) {
        if (engine->end_ids[i] == id) {
            return true;
        }
    }
    return false;
}
