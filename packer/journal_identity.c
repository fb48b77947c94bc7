/* SPDX-License-Identifier: Apache-2.0 */
#include "packer/journal_identity.h"

#include <inttypes.h>
#include <stdlib.h>

#include "format/pack/byte_reader.h"

#define JOURNAL_VERSION 2U

/* Names, types, shapes and places of a shard's tensors: two headers that say the same have the same
 * digest. */
static struct k3_digest digest_header(const struct k3_shard_header *header,
                                      struct k3_digest_stream *stream)
{
    k3_digest_stream_reset(stream);
    uint8_t word[8];
    k3_le64_put(word, header->data_start);
    k3_digest_stream_update(stream, word, sizeof word);
    for (size_t i = 0; i < header->entry_count; i++) {
        const struct k3_tensor_entry *e = &header->entries[i];
        uint8_t fixed[16 + 2 + 8 * K3_TENSOR_DIMS_MAX] = {0};
        k3_le64_put(fixed, e->begin);
        k3_le64_put(fixed + 8, e->end);
        fixed[16] = e->dims;
        fixed[17] = e->dtype;
        for (size_t d = 0; d < e->dims; d++) {
            k3_le64_put(fixed + 18 + 8 * d, e->shape[d]);
        }
        k3_digest_stream_update(stream, fixed, sizeof fixed);
        k3_digest_stream_update(stream, e->name, strlen(e->name) + 1);
    }
    return k3_digest_stream_value(stream);
}

struct shard_identity {
    uint64_t file_bytes, modified_ns;
    struct k3_digest header;
    const uint8_t *name;
    uint32_t name_len;
};

static void write_fixed(const struct k3_census *census, const struct k3_digest *files,
                        struct k3_byte_writer *w)
{
    uint8_t spec[K3_MODEL_SPEC_FIXED_BYTES + K3_LAYERS_MAX];
    k3_model_spec_encode(&census->tables.spec, spec);
    k3_writer_u32(w, JOURNAL_VERSION);
    k3_writer_u32(w, K3_VERSION_MAJOR << 16 | K3_VERSION_MINOR);
    k3_writer_u32(w, (uint32_t)k3_model_spec_encoded_bytes(&census->tables.spec));
    k3_writer_put(w, spec, k3_model_spec_encoded_bytes(&census->tables.spec));
    k3_writer_put(w, files->bytes, K3_DIGEST_BYTES);
    k3_writer_u32(w, census->has_sha256);
    k3_writer_u32(w, (uint32_t)census->set.shard_count);
}

static void write_shard(const struct k3_shard *shard, const struct k3_digest *header,
                        struct k3_byte_writer *w)
{
    k3_writer_u64(w, shard->file_bytes);
    k3_writer_u64(w, (uint64_t)shard->modified_ns);
    k3_writer_put(w, header->bytes, K3_DIGEST_BYTES);
    k3_writer_u32(w, (uint32_t)strlen(shard->name));
    k3_writer_put(w, shard->name, strlen(shard->name));
}

static void write_all(const struct k3_census *census, const struct k3_digest *files,
                      const struct k3_digest *headers, struct k3_byte_writer *w)
{
    write_fixed(census, files, w);
    for (size_t i = 0; i < census->set.shard_count; i++) {
        write_shard(&census->set.shards[i], &headers[i], w);
    }
}

static enum k3_code digest_files(const struct k3_file_bundle *files, struct k3_digest *out_digest,
                                 struct k3_error *err)
{
    uint8_t *bytes = NULL;
    size_t len = 0;
    const enum k3_code code = k3_file_bundle_encode(files, &bytes, &len, err);
    if (code == K3_OK) {
        *out_digest = k3_digest_of(bytes, len);
    }
    free(bytes);
    return code;
}

static enum k3_code digest_headers(const struct k3_shard_set *set, struct k3_digest *out_headers,
                                   struct k3_error *err)
{
    struct k3_digest_stream *stream = NULL;
    enum k3_code code = k3_digest_stream_create(&stream, err);
    for (size_t i = 0; code == K3_OK && i < set->shard_count; i++) {
        out_headers[i] = digest_header(&set->shards[i].header, stream);
    }
    if (stream) {
        k3_digest_stream_destroy(stream);
    }
    return code;
}

enum k3_code k3_identity_encode(const struct k3_census *census, uint8_t **out_bytes,
                                size_t *out_len, struct k3_error *err)
{
    struct k3_digest files;
    struct k3_digest *headers = calloc(census->set.shard_count, sizeof *headers);
    uint8_t *bytes = NULL;
    enum k3_code code = headers ? digest_files(&census->files, &files, err)
                                : k3_fail_no_memory(err, "journal identity");
    if (code == K3_OK) {
        code = digest_headers(&census->set, headers, err);
    }
    if (code == K3_OK) {
        struct k3_byte_writer w = {0};
        write_all(census, &files, headers, &w);
        bytes = malloc(w.at);
        if (bytes) {
            w = (struct k3_byte_writer){.bytes = bytes};
            write_all(census, &files, headers, &w);
            *out_bytes = bytes;
            *out_len = w.at;
        } else {
            code = k3_fail_no_memory(err, "journal identity");
        }
    }
    free(headers);
    return code;
}

static struct shard_identity read_shard(struct k3_byte_reader *r)
{
    struct shard_identity s = {.file_bytes = k3_reader_u64(r), .modified_ns = k3_reader_u64(r)};
    const uint8_t *header = k3_reader_take(r, K3_DIGEST_BYTES);
    if (header) {
        memcpy(s.header.bytes, header, K3_DIGEST_BYTES);
    }
    s.name_len = k3_reader_u32(r);
    s.name = k3_reader_take(r, s.name_len);
    return s;
}

static void add_change(struct k3_problems *changes, const char *what)
{
    k3_problems_add(changes, K3_ERR_MALFORMED, "%s", what);
}

/* Both readers move behind the fixed part; false when the shards need not be compared. */
static bool compare_fixed(struct k3_byte_reader *before, struct k3_byte_reader *now,
                          struct k3_problems *changes, uint32_t *out_shards)
{
    const uint32_t version = k3_reader_u32(before), format = k3_reader_u32(before);
    if (version != k3_reader_u32(now) || format != k3_reader_u32(now)) {
        add_change(changes, "another version of k3pack began it");
        return false;
    }
    const uint32_t spec_len = k3_reader_u32(before), spec_len_now = k3_reader_u32(now);
    const uint8_t *spec = k3_reader_take(before, spec_len);
    const uint8_t *spec_now = k3_reader_take(now, spec_len_now);
    const uint8_t *files = k3_reader_take(before, K3_DIGEST_BYTES);
    const uint8_t *files_now = k3_reader_take(now, K3_DIGEST_BYTES);
    const uint32_t sha256 = k3_reader_u32(before), sha256_now = k3_reader_u32(now);
    const uint32_t shards = k3_reader_u32(before), shards_now = k3_reader_u32(now);
    if (before->failed || now->failed) {
        add_change(changes, "its journal cannot be understood");
        return false;
    }
    if (spec_len != spec_len_now || memcmp(spec, spec_now, spec_len) != 0) {
        add_change(changes, "'config.json' describes another model than when packing began");
    } else if (memcmp(files, files_now, K3_DIGEST_BYTES) != 0) {
        add_change(changes, "config or tokenizer files are not those with which packing began");
    }
    if (sha256 != sha256_now) {
        add_change(changes,
                   sha256 ? "it was begun with --sha256" : "it was begun without --sha256");
    }
    if (shards != shards_now) {
        k3_problems_add(changes, K3_ERR_MALFORMED, "there were %u shards, now there are %u", shards,
                        shards_now);
        return false;
    }
    *out_shards = shards;
    return true;
}

static void compare_shard(const struct shard_identity *before, const struct shard_identity *now,
                          bool is_done, struct k3_problems *changes, bool *out_later_changed)
{
    if (before->name_len != now->name_len || memcmp(before->name, now->name, now->name_len) != 0) {
        k3_problems_add(changes, K3_ERR_MALFORMED, "shard '%.*s' is now called '%.*s'",
                        (int)before->name_len, (const char *)before->name, (int)now->name_len,
                        (const char *)now->name);
        return;
    }
    const char *what = before->file_bytes != now->file_bytes             ? "size"
                       : !k3_digest_equal(&before->header, &now->header) ? "tensor table"
                       : before->modified_ns != now->modified_ns         ? "time of modification"
                                                                         : NULL;
    if (what && is_done) {
        k3_problems_add(changes, K3_ERR_MALFORMED,
                        "shard '%.*s' has another %s than when it was packed", (int)now->name_len,
                        (const char *)now->name, what);
    }
    *out_later_changed = *out_later_changed || (what && !is_done);
}

void k3_identity_compare(const uint8_t *before, size_t before_len, const uint8_t *now,
                         size_t now_len, uint32_t shards_done, struct k3_problems *changes,
                         bool *out_later_changed)
{
    struct k3_byte_reader a = {.bytes = before, .len = before_len};
    struct k3_byte_reader b = {.bytes = now, .len = now_len};
    uint32_t shards = 0;
    *out_later_changed = false;
    if (!compare_fixed(&a, &b, changes, &shards)) {
        return;
    }
    for (uint32_t i = 0; i < shards; i++) {
        const struct shard_identity old = read_shard(&a), new = read_shard(&b);
        if (a.failed || b.failed) {
            add_change(changes, "its journal cannot be understood");
            return;
        }
        compare_shard(&old, &new, i < shards_done, changes, out_later_changed);
    }
}
