/* SPDX-License-Identifier: Apache-2.0 */
#include "format/pack/file_bundle.h"

#include <stdlib.h>

#include "format/pack/byte_reader.h"

static const struct {
    const char *name;
    bool is_required;
} known[K3_BUNDLED_COUNT] = {
    [K3_BUNDLED_CONFIG] = {"config.json", true},
    [K3_BUNDLED_GENERATION_CONFIG] = {"generation_config.json", false},
    [K3_BUNDLED_TIKTOKEN] = {"tiktoken.model", true},
    [K3_BUNDLED_TOKENIZER_CONFIG] = {"tokenizer_config.json", true},
    [K3_BUNDLED_LICENSE] = {"LICENSE", false},
};

const char *k3_bundled_name(enum k3_bundled_file file)
{
    return known[file].name;
}

bool k3_bundled_is_required(enum k3_bundled_file file)
{
    return known[file].is_required;
}

void k3_file_bundle_done(struct k3_file_bundle *bundle)
{
    for (unsigned i = 0; i < K3_BUNDLED_COUNT; i++) {
        free(bundle->files[i].bytes);
    }
    *bundle = (struct k3_file_bundle){0};
}

static void write_bundle(const struct k3_file_bundle *bundle, struct k3_byte_writer *w)
{
    uint32_t count = 0;
    for (unsigned i = 0; i < K3_BUNDLED_COUNT; i++) {
        count += bundle->files[i].bytes != NULL;
    }
    k3_writer_u32(w, count);
    for (unsigned i = 0; i < K3_BUNDLED_COUNT; i++) {
        if (bundle->files[i].bytes) {
            const size_t name_len = strlen(known[i].name);
            k3_writer_u32(w, (uint32_t)name_len);
            k3_writer_u64(w, bundle->files[i].len);
            k3_writer_put(w, known[i].name, name_len);
            k3_writer_put(w, bundle->files[i].bytes, bundle->files[i].len);
        }
    }
}

static enum k3_code check_required(const struct k3_file_bundle *bundle, struct k3_error *err)
{
    for (unsigned i = 0; i < K3_BUNDLED_COUNT; i++) {
        if (known[i].is_required && !bundle->files[i].bytes) {
            return k3_fail(err, K3_ERR_MALFORMED, 0, "FILES: %s is missing", known[i].name);
        }
    }
    return K3_OK;
}

enum k3_code k3_file_bundle_encode(const struct k3_file_bundle *bundle, uint8_t **out_bytes,
                                   size_t *out_len, struct k3_error *err)
{
    const enum k3_code code = check_required(bundle, err);
    if (code != K3_OK) {
        return code;
    }
    struct k3_byte_writer w = {0};
    write_bundle(bundle, &w);
    uint8_t *bytes = malloc(w.at);
    if (!bytes) {
        return k3_fail_no_memory(err, "FILES");
    }
    w = (struct k3_byte_writer){.bytes = bytes};
    write_bundle(bundle, &w);
    *out_bytes = bytes;
    *out_len = w.at;
    return K3_OK;
}

/* Index of the next known name at or after `from`; K3_BUNDLED_COUNT when it is not known. */
static unsigned find_name(const uint8_t *name, uint32_t name_len, unsigned from)
{
    unsigned i = from;
    while (i < K3_BUNDLED_COUNT &&
           (strlen(known[i].name) != name_len || memcmp(known[i].name, name, name_len) != 0)) {
        i++;
    }
    return i;
}

static enum k3_code decode_files(struct k3_byte_reader *r, struct k3_file_bundle *bundle,
                                 struct k3_error *err)
{
    const uint32_t count = k3_reader_u32(r);
    unsigned next = 0;
    for (uint32_t n = 0; n < count; n++) {
        const uint32_t name_len = k3_reader_u32(r);
        const uint64_t len = k3_reader_u64(r);
        const uint8_t *name = k3_reader_take(r, name_len);
        const uint8_t *content = k3_reader_take(r, len);
        const unsigned i = r->failed ? K3_BUNDLED_COUNT : find_name(name, name_len, next);
        if (i == K3_BUNDLED_COUNT) {
            return k3_fail(err, K3_ERR_MALFORMED, r->at,
                           "FILES: record %u is cut, unknown, "
                           "repeated or out of order",
                           n);
        }
        /* One byte more, so that contents are C strings where they are text. */
        bundle->files[i].bytes = calloc(1, (size_t)len + 1);
        if (!bundle->files[i].bytes) {
            return k3_fail_no_memory(err, known[i].name);
        }
        memcpy(bundle->files[i].bytes, content, (size_t)len);
        bundle->files[i].len = (size_t)len;
        next = i + 1;
    }
    if (r->failed || r->at != r->len) {
        return k3_fail(err, K3_ERR_MALFORMED, r->at, "FILES: does not end after its last record");
    }
    return check_required(bundle, err);
}

enum k3_code k3_file_bundle_decode(const uint8_t *bytes, size_t len,
                                   struct k3_file_bundle *out_bundle, struct k3_error *err)
{
    struct k3_byte_reader r = {.bytes = bytes, .len = len};
    struct k3_file_bundle bundle = {0};
    const enum k3_code code = decode_files(&r, &bundle, err);
    if (code != K3_OK) {
        k3_file_bundle_done(&bundle);
        return code;
    }
    *out_bundle = bundle;
    return K3_OK;
}
