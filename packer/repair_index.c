/* SPDX-License-Identifier: Apache-2.0 */
#include "packer/repair_index.h"

#include <stdlib.h>
#include <string.h>

#include "format/base/ckd.h"
#include "format/pack/pack_reader.h"
#include "format/pack/pack_seal.h"
#include "packer/against.h"
#include "packer/buffer.h"
#include "packer/source_reader.h"

#define PIECE_BYTES (UINT64_C(8) << 20)

/* A range of the open shard, digested. */
static enum k3_code digest_range(struct k3_source_reader *reader, struct k3_buffer *scratch,
                                 struct k3_digest_stream *stream, uint64_t offset, uint64_t len,
                                 struct k3_digest *out_digest, struct k3_error *err)
{
    enum k3_code code = k3_buffer_reserve(scratch, PIECE_BYTES, err);
    k3_digest_stream_reset(stream);
    for (uint64_t done = 0; code == K3_OK && done < len; done += PIECE_BYTES) {
        bool is_zero = false;
        code = k3_source_read(reader, offset + done, scratch->bytes,
                              k3_min_u64(PIECE_BYTES, len - done), stream, &is_zero, err);
    }
    *out_digest = k3_digest_stream_value(stream);
    return code;
}

static enum k3_code digest_shard(struct k3_census *census, struct k3_source_reader *reader,
                                 struct k3_digest_stream *stream, struct k3_buffer *scratch,
                                 uint32_t number, struct k3_error *err)
{
    const struct k3_shard *shard = &census->set.shards[number];
    struct k3_digest digest;
    enum k3_code code = k3_source_begin(reader, number, err);
    if (code == K3_OK) {
        code = digest_range(reader, scratch, stream, 0, shard->header.data_start, &digest, err);
    }
    for (size_t i = 0; code == K3_OK && i < shard->header.entry_count; i++) {
        const struct k3_tensor_entry *entry = &shard->header.entries[i];
        const uint32_t source = census->owner[shard->first_tensor + i];
        code = digest_range(reader, scratch, stream, shard->header.data_start + entry->begin,
                            entry->end - entry->begin, &digest, err);
        if (source != K3_NO_SOURCE) {
            k3_source_at(&census->tables, &census->provenance, source)->digest = digest;
        }
    }
    return code == K3_OK ? k3_source_end(reader, &census->provenance.shards[number].digest, err)
                         : code;
}

static enum k3_code digest_shards(struct k3_census *census, const struct k3_observer *observer,
                                  struct k3_error *err)
{
    struct k3_source_reader reader = {0};
    struct k3_digest_stream *stream = NULL;
    struct k3_buffer scratch = {0};
    enum k3_code code = k3_source_reader_init(&reader, &census->set, observer, err);
    if (code == K3_OK) {
        code = k3_digest_stream_create(&stream, err);
    }
    for (uint32_t i = 0; code == K3_OK && i < census->set.shard_count; i++) {
        code = digest_shard(census, &reader, stream, &scratch, i, err);
    }
    if (stream) {
        k3_digest_stream_destroy(stream);
    }
    k3_buffer_done(&scratch);
    k3_source_reader_done(&reader);
    return code;
}

enum k3_code k3_repair_provenance(struct k3_verify *verify, const char *checkpoint,
                                  struct k3_problems *problems, struct k3_error *err)
{
    struct k3_census census = {0};
    enum k3_code code = k3_census_take(checkpoint, &census, problems, err);
    if (code == K3_OK && !k3_tables_are_equal(&verify->tables, &census.tables)) {
        code = k3_fail(err, K3_ERR_MALFORMED, K3_ERROR_NO_OFFSET,
                       "'%s' is another model than '%s' was made from", checkpoint, verify->folder);
    }
    if (code == K3_OK) {
        code = digest_shards(&census, verify->observer, err);
    }
    if (code == K3_OK) {
        k3_provenance_done(&verify->provenance);
        verify->provenance = census.provenance;
        verify->has_provenance = true;
        census.provenance = (struct k3_provenance){0};
        if (!verify->has_bundle) { /* the pack id will show whether these are the right ones */
            verify->bundle = census.files;
            verify->has_bundle = true;
            census.files = (struct k3_file_bundle){0};
        }
    }
    k3_census_done(&census);
    return code;
}

static enum k3_code adopt(struct k3_section_builder *b, const struct k3_file_check *holder,
                          enum k3_section_kind kind, struct k3_error *err)
{
    const struct k3_section *s = k3_section_find(&holder->set, kind);
    uint8_t *raw = NULL;
    size_t raw_len = 0;
    enum k3_code code = k3_section_raw(&holder->set, kind, &raw, &raw_len, err);
    if (code != K3_OK) {
        return code;
    }
    b->stored[kind] = malloc((size_t)s->stored_bytes + 1);
    if (!b->stored[kind]) {
        code = k3_fail_no_memory(err, k3_section_name(kind));
    } else {
        memcpy(b->stored[kind], k3_section_stored(&holder->set, s), (size_t)s->stored_bytes);
        b->stored_len[kind] = (size_t)s->stored_bytes;
        b->raw_len[kind] = raw_len;
        b->raw_digest[kind] = k3_digest_of(raw, raw_len);
    }
    free(raw);
    return code;
}

/* What no file has a good copy of. */
static enum k3_code make_section(const struct k3_verify *v, struct k3_section_builder *b,
                                 enum k3_section_kind kind, struct k3_error *err)
{
    uint8_t *raw = NULL;
    size_t len = 0;
    enum k3_code code = K3_OK;
    if (kind == K3_SECTION_FILES && v->has_bundle) {
        code = k3_file_bundle_encode(&v->bundle, &raw, &len, err);
    } else if (kind > K3_SECTION_FILES && v->has_provenance) {
        code = k3_provenance_encode(&v->provenance, &v->tables, kind, &raw, &len, err);
    } else if (kind > K3_SECTION_FILES) {
        return K3_OK; /* left out: the data files do without, the index does not */
    } else {
        code = k3_fail(err, K3_ERR_DAMAGED, K3_ERROR_NO_OFFSET,
                       "'%s': no good copy of section %s is left: this pack cannot be repaired, "
                       "make it anew",
                       v->folder, k3_section_name(kind));
    }
    if (code == K3_OK) {
        code = k3_section_builder_put(b, kind, raw, len, err);
    }
    free(raw);
    return code;
}

enum k3_code k3_repair_sections(struct k3_verify *verify, struct k3_section_builder *out_builder,
                                struct k3_error *err)
{
    struct k3_section_builder b = {0};
    enum k3_code code = K3_OK;
    for (unsigned kind = 1; code == K3_OK && kind <= K3_SECTION_KINDS; kind++) {
        const struct k3_file_check *holder = k3_verify_holder(verify, (enum k3_section_kind)kind);
        code = holder ? adopt(&b, holder, (enum k3_section_kind)kind, err)
                      : make_section(verify, &b, (enum k3_section_kind)kind, err);
    }
    if (code == K3_OK) {
        const struct k3_digest pack_id = k3_section_builder_pack_id(&b);
        if (!verify->has_pack_id) {
            verify->pack_id = pack_id;
            verify->has_pack_id = true;
        } else if (!k3_digest_equal(&pack_id, &verify->pack_id)) {
            code = k3_fail(err, K3_ERR_DAMAGED, K3_ERROR_NO_OFFSET,
                           "'%s': what is left of it and of the checkpoint does not make its pack "
                           "id: config and tokenizer files must be those it was made with",
                           verify->folder);
        }
    }
    if (code != K3_OK) {
        k3_section_builder_done(&b);
        return code;
    }
    *out_builder = b;
    return K3_OK;
}

enum k3_code k3_repair_tail(const struct k3_verify *verify,
                            const struct k3_section_builder *builder, const struct k3_file *file,
                            enum k3_file_kind kind, struct k3_error *err)
{
    const uint64_t end = kind == K3_FILE_TRUNK ? k3_trunk_data_end(&verify->tables)
                                               : k3_experts_data_end(&verify->tables);
    const enum k3_code code =
        k3_section_builder_write(builder, file, kind, end, &verify->pack_id, err);
    return code == K3_OK ? k3_file_sync(file, err) : code;
}

enum k3_code k3_repair_index(const struct k3_verify *verify,
                             const struct k3_section_builder *builder, struct k3_error *err)
{
    char *partial = k3_partial_path(verify->folder, K3_FILE_INDEX);
    char *final = k3_path_join(verify->folder, K3_INDEX_NAME);
    struct k3_file file = K3_FILE_CLOSED;
    enum k3_code code = partial && final ? k3_file_open_write(partial, &file, err)
                                         : k3_fail_no_memory(err, verify->folder);
    if (code == K3_OK) {
        code = k3_section_builder_write(builder, &file, K3_FILE_INDEX, 0, &verify->pack_id, err);
    }
    if (code == K3_OK) {
        code = k3_file_sync(&file, err);
    }
    k3_file_close(&file);
    if (code == K3_OK) {
        code = k3_file_publish(verify->folder, partial, final, err);
    }
    free(partial);
    free(final);
    return code;
}
