/* SPDX-License-Identifier: Apache-2.0 */
#include "format/vocab/added_tokens.h"

#include <stdio.h>
#include <string.h>

#include "format/base/json.h"

/* An id in JSON is a key, so it is written as a string: "163585". */
static bool parse_id(const char *text, uint32_t *out_id)
{
    uint64_t id = 0;
    for (const char *c = text; *c; c++) {
        if (*c < '0' || *c > '9' || id > UINT32_MAX / 10) {
            return false;
        }
        id = id * 10 + (uint64_t)(*c - '0');
    }
    const bool is_shortest = text[0] != '\0' && (text[0] != '0' || text[1] == '\0');
    *out_id = (uint32_t)id;
    return is_shortest && id <= UINT32_MAX;
}

static enum k3_code refuse(const char *key, const char *why, struct k3_error *err)
{
    return k3_fail(err, K3_ERR_MALFORMED, K3_ERROR_NO_OFFSET, "added token '%.32s': %s", key, why);
}

static enum k3_code parse_entry(const char *key, const json_t *entry, uint32_t first_id,
                                struct k3_added_token *slots, struct k3_error *err)
{
    uint32_t id = 0;
    if (!parse_id(key, &id)) {
        return refuse(key, "not a token id", err);
    }
    if (id < first_id || id - first_id >= K3_VOCAB_ADDED_COUNT) {
        return refuse(key, "not one of the 256 ids after the ranks of tiktoken.model", err);
    }
    const json_t *content = json_object_get(entry, "content");
    const json_t *special = json_object_get(entry, "special");
    const size_t len = json_string_length(content); /* 0 for what is not a string */
    if (len == 0 || len > K3_VOCAB_SPELLING_BYTES_MAX) {
        return refuse(key, "\"content\" must be a string of 1 to 256 bytes", err);
    }
    if (!json_is_boolean(special)) {
        return refuse(key, "\"special\" must be true or false", err);
    }
    struct k3_added_token *slot = &slots[id - first_id];
    memcpy(slot->spelling, json_string_value(content), len + 1);
    slot->is_special = json_is_true(special);
    return K3_OK;
}

static enum k3_code parse_entries(json_t *root, uint32_t first_id, struct k3_added_token *slots,
                                  struct k3_error *err)
{
    json_t *entries = json_object_get(root, "added_tokens_decoder");
    if (!json_is_object(entries)) {
        return k3_fail(err, K3_ERR_MALFORMED, K3_ERROR_NO_OFFSET,
                       "\"added_tokens_decoder\" is missing or not an object");
    }
    const char *key = NULL;
    json_t *entry = NULL;
    json_object_foreach(entries, key, entry)
    {
        const enum k3_code code = parse_entry(key, entry, first_id, slots, err);
        if (code != K3_OK) {
            return code;
        }
    }
    return K3_OK;
}

static void name_reserved(struct k3_added_token *slots, uint32_t first_id)
{
    for (uint32_t i = 0; i < K3_VOCAB_ADDED_COUNT; i++) {
        if (slots[i].spelling[0] == '\0') {
            snprintf(slots[i].spelling, sizeof slots[i].spelling, "<|reserved_token_%lu|>",
                     (unsigned long)first_id + i);
            slots[i].is_special = true;
        }
    }
}

static enum k3_code check_distinct(const struct k3_added_token *slots, uint32_t first_id,
                                   struct k3_error *err)
{
    for (uint32_t i = 0; i < K3_VOCAB_ADDED_COUNT; i++) {
        for (uint32_t j = 0; j < i; j++) {
            if (strcmp(slots[i].spelling, slots[j].spelling) == 0) {
                return k3_fail(err, K3_ERR_MALFORMED, K3_ERROR_NO_OFFSET,
                               "added tokens %lu and %lu are both spelled '%.64s'",
                               (unsigned long)first_id + j, (unsigned long)first_id + i,
                               slots[i].spelling);
            }
        }
    }
    return K3_OK;
}

enum k3_code k3_added_tokens_parse(const uint8_t *config, size_t config_len, uint32_t first_id,
                                   struct k3_added_token out_slots[static K3_VOCAB_ADDED_COUNT],
                                   struct k3_error *err)
{
    json_t *root = NULL;
    /* Reals, for the released file has an integer of 100 bits: "model_max_length", 10^30 or so. */
    enum k3_code code =
        k3_json_parse_reals(config, config_len, K3_VOCAB_CONFIG_BYTES_MAX, &root, err);
    if (code == K3_OK) {
        memset(out_slots, 0, K3_VOCAB_ADDED_COUNT * sizeof *out_slots);
        code = parse_entries(root, first_id, out_slots, err);
    }
    if (code == K3_OK) {
        name_reserved(out_slots, first_id);
        code = check_distinct(out_slots, first_id, err);
    }
    json_decref(root);
    return code == K3_OK ? code : k3_error_context(err, code, "tokenizer_config.json");
}
