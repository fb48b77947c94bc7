/* SPDX-License-Identifier: Apache-2.0 */
#include "packer/verify.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "format/base/ckd.h"
#include "format/pack/pack_reader.h"

static const enum k3_file_kind kinds[] = {K3_FILE_INDEX, K3_FILE_TRUNK, K3_FILE_EXPERTS};

static struct k3_damage damage_of(enum k3_damage_kind kind, enum k3_file_kind file)
{
    return (struct k3_damage){.kind = kind, .file = file, .layer = K3_TOP_LEVEL};
}

/* Which id do most of the files carry? A file with another one belongs to another pack. */
static void choose_pack_id(struct k3_verify *v)
{
    unsigned votes_best = 0;
    for (unsigned i = 0; i < 3; i++) {
        unsigned votes = 0;
        for (unsigned j = 0; v->files[i].has_superblock && j < 3; j++) {
            votes +=
                v->files[j].has_superblock && k3_digest_equal(&v->files[i].set.superblock.pack_id,
                                                              &v->files[j].set.superblock.pack_id);
        }
        if (votes > votes_best) { /* equal votes: the index wins */
            votes_best = votes;
            v->has_pack_id = true;
            v->pack_id = v->files[i].set.superblock.pack_id;
        }
    }
}

static bool is_of_pack(const struct k3_file_check *f)
{
    return f->has_superblock && !f->is_foreign;
}

/* Provenance in an index without a superblock: only where the rest of it makes the pack's id. */
static enum k3_code doubt_salvaged_index(struct k3_verify *v, struct k3_error *err)
{
    struct k3_file_check *index = &v->files[0];
    if (index->has_superblock || !index->is_salvaged) {
        return K3_OK;
    }
    struct k3_pack_tables tables = {0};
    struct k3_file_bundle files = {0};
    enum k3_code code = K3_ERR_DAMAGED;
    index->set.superblock.pack_id = v->pack_id;
    bool is_whole = v->has_pack_id;
    for (unsigned kind = 1; kind <= K3_SECTION_CONTENT_LAST; kind++) {
        is_whole = is_whole && index->is_good[kind];
    }
    if (is_whole) {
        code = k3_index_decode(&index->set, &tables, &files, NULL);
    }
    if (code == K3_OK) {
        k3_pack_tables_done(&tables);
        k3_file_bundle_done(&files);
    } else {
        index->is_good[K3_SECTION_SHARDS] = false;
    }
    return code == K3_ERR_NO_MEMORY ? k3_fail_no_memory(err, K3_INDEX_NAME) : K3_OK;
}

static void find_foreign(struct k3_verify *v)
{
    for (unsigned i = 0; i < 3; i++) {
        struct k3_file_check *f = &v->files[i];
        f->is_foreign =
            f->has_superblock && !k3_digest_equal(&f->set.superblock.pack_id, &v->pack_id);
        if (f->is_foreign) {
            struct k3_damage d = damage_of(K3_DAMAGE_FILE, kinds[i]);
            d.bytes = f->file.file_bytes;
            k3_damage_add(&v->damage, &d, "belongs to another pack (its pack id differs)");
        }
    }
}

/* A section that stands in two files has the same bytes in both. */
static void compare_copies(struct k3_verify *v)
{
    const struct k3_file_check *index = k3_verify_file(v, K3_FILE_INDEX);
    for (unsigned i = 1; i < 3; i++) {
        const struct k3_file_check *other = &v->files[i];
        for (unsigned kind = 1; kind <= K3_SECTION_KINDS; kind++) {
            const struct k3_section *a = k3_section_find(&index->set, (enum k3_section_kind)kind);
            const struct k3_section *b = k3_section_find(&other->set, (enum k3_section_kind)kind);
            if (!index->is_good[kind] || !other->is_good[kind] || !is_of_pack(index) ||
                !is_of_pack(other) || k3_digest_equal(&a->stored_digest, &b->stored_digest)) {
                continue;
            }
            struct k3_damage d = damage_of(K3_DAMAGE_SECTION, other->kind);
            d.section = (enum k3_section_kind)kind;
            d.offset = b->offset;
            d.bytes = b->stored_bytes;
            k3_damage_add(&v->damage, &d, "section %s differs from the copy in the index",
                          k3_section_name(d.section));
        }
    }
}

const struct k3_file_check *k3_verify_holder(const struct k3_verify *v, enum k3_section_kind kind)
{
    for (unsigned i = 0; i < 3; i++) {
        if (v->files[i].is_good[kind] && is_of_pack(&v->files[i])) {
            return &v->files[i];
        }
    }
    for (unsigned i = 0; i < 3; i++) {
        if (v->files[i].is_good[kind] && !v->files[i].is_foreign) {
            return &v->files[i]; /* its superblock is lost */
        }
    }
    return NULL;
}

static void add_content_damage(struct k3_verify *v, const struct k3_error *why)
{
    struct k3_damage d = damage_of(K3_DAMAGE_SECTION, K3_FILE_INDEX);
    d.offset = why->file_offset == K3_ERROR_NO_OFFSET ? 0 : why->file_offset;
    k3_damage_add(&v->damage, &d, "%s", why->message);
}

/* Tables from good sections, wherever they are; the spec must be among them. */
static enum k3_code make_tables(struct k3_verify *v, struct k3_error *err)
{
    struct k3_section_bytes raw[K3_SECTION_EXPERT_DIGESTS + 1] = {{0}};
    for (unsigned kind = 1; kind <= K3_SECTION_EXPERT_DIGESTS; kind++) {
        const struct k3_file_check *holder = k3_verify_holder(v, (enum k3_section_kind)kind);
        if (holder) {
            const struct k3_section *s = k3_section_find(&holder->set, (enum k3_section_kind)kind);
            raw[kind].bytes = k3_section_stored(&holder->set, s);
            raw[kind].len = (size_t)s->raw_bytes;
        }
    }
    if (!raw[K3_SECTION_MODEL_SPEC].bytes) {
        return K3_OK; /* said already */
    }
    v->has_trunk_digests = raw[K3_SECTION_TRUNK_EXTENTS].bytes &&
                           raw[K3_SECTION_TRUNK_TENSORS].bytes &&
                           raw[K3_SECTION_TRUNK_DIGESTS].bytes;
    v->has_expert_digests =
        raw[K3_SECTION_EXPERT_LAYOUT].bytes && raw[K3_SECTION_EXPERT_DIGESTS].bytes;
    for (unsigned kind = K3_SECTION_TRUNK_EXTENTS; kind <= K3_SECTION_EXPERT_DIGESTS; kind++) {
        const bool is_usable =
            kind <= K3_SECTION_TRUNK_DIGESTS ? v->has_trunk_digests : v->has_expert_digests;
        if (!is_usable) {
            raw[kind] = (struct k3_section_bytes){0};
        }
    }
    struct k3_error why = {0};
    const enum k3_code code = k3_pack_tables_decode(raw, &v->tables, &why);
    v->has_tables = code == K3_OK;
    if (code == K3_ERR_NO_MEMORY) {
        return k3_fail_no_memory(err, "tables");
    }
    if (code != K3_OK) {
        add_content_damage(v, &why);
    }
    return K3_OK;
}

/* The index as a whole: what the reader demands beyond the digests of its sections. */
static enum k3_code decode_index(struct k3_verify *v, struct k3_error *err)
{
    struct k3_file_check *index = k3_verify_file(v, K3_FILE_INDEX);
    if (!index->is_sound || !is_of_pack(index)) {
        return make_tables(v, err);
    }
    struct k3_error why = {0};
    enum k3_code code = k3_index_decode(&index->set, &v->tables, &v->bundle, &why);
    v->has_tables = v->has_bundle = code == K3_OK;
    v->has_trunk_digests = v->has_expert_digests = code == K3_OK;
    if (code == K3_OK) {
        code = k3_index_provenance(&index->set, &v->tables, &v->provenance, &why);
        v->has_provenance = code == K3_OK;
    }
    if (code == K3_ERR_NO_MEMORY) {
        return k3_fail_no_memory(err, K3_INDEX_NAME);
    }
    if (code != K3_OK) {
        add_content_damage(v, &why);
    }
    return K3_OK;
}

/* A damaged index may still have provenance that can be read. */
static enum k3_code salvage_provenance(struct k3_verify *v, struct k3_error *err)
{
    const struct k3_file_check *index = k3_verify_file(v, K3_FILE_INDEX);
    if (v->has_provenance || !v->has_tables || !v->has_trunk_digests || index->is_foreign ||
        !index->is_good[K3_SECTION_SHARDS] || !index->is_good[K3_SECTION_TRUNK_SOURCES] ||
        !index->is_good[K3_SECTION_EXPERT_SOURCES]) {
        return K3_OK;
    }
    const enum k3_code code = k3_index_provenance(&index->set, &v->tables, &v->provenance, NULL);
    v->has_provenance = code == K3_OK;
    return code == K3_ERR_NO_MEMORY ? k3_fail_no_memory(err, "provenance") : K3_OK;
}

static void compare_data_ends(struct k3_verify *v)
{
    for (unsigned i = 1; v->has_tables && i < 3; i++) {
        const struct k3_file_check *f = &v->files[i];
        const bool is_known = f->kind == K3_FILE_TRUNK ? v->has_trunk_digests : true;
        const uint64_t end = f->kind == K3_FILE_TRUNK ? k3_trunk_data_end(&v->tables)
                                                      : k3_experts_data_end(&v->tables);
        if (is_known && is_of_pack(f) && f->set.superblock.data_end != end) {
            const struct k3_damage d = damage_of(K3_DAMAGE_SUPERBLOCK, f->kind);
            k3_damage_add(&v->damage, &d, "data end at byte %" PRIu64 ", the tables say %" PRIu64,
                          f->set.superblock.data_end, end);
        }
    }
}

static enum k3_code examine(struct k3_verify *v, struct k3_error *err)
{
    bool any = false;
    for (unsigned i = 0; i < 3; i++) {
        const enum k3_code code =
            k3_file_check_make(v->folder, kinds[i], &v->files[i], &v->damage, err);
        if (code != K3_OK) {
            return code;
        }
        any = any || v->files[i].is_there;
    }
    if (!any) {
        struct k3_pack pack;
        const enum k3_code code = k3_pack_open(v->folder, &pack, err); /* knows how to say why */
        return code == K3_OK ? K3_ERR_NO_INPUT : code;
    }
    choose_pack_id(v);
    find_foreign(v);
    compare_copies(v);
    enum k3_code code = doubt_salvaged_index(v, err);
    if (code == K3_OK) {
        code = decode_index(v, err);
    }
    if (code == K3_OK) {
        code = salvage_provenance(v, err);
    }
    compare_data_ends(v);
    return code;
}

enum k3_code k3_verify_structure(const char *folder, const struct k3_observer *observer,
                                 struct k3_verify *out_verify, struct k3_error *err)
{
    struct k3_verify v = {.folder = folder, .observer = observer};
    const enum k3_code code = examine(&v, err);
    if (code != K3_OK) {
        k3_verify_done(&v);
        return code;
    }
    *out_verify = v;
    return K3_OK;
}

enum k3_code k3_verify_salvage_bundle(struct k3_verify *verify, struct k3_error *err)
{
    const struct k3_file_check *holder = k3_verify_holder(verify, K3_SECTION_FILES);
    uint8_t *raw = NULL;
    size_t len = 0;
    struct k3_error why = {0};
    enum k3_code code =
        holder ? k3_section_raw(&holder->set, K3_SECTION_FILES, &raw, &len, &why) : K3_OK;
    if (code == K3_OK && raw) {
        code = k3_file_bundle_decode(raw, len, &verify->bundle, &why);
        verify->has_bundle = code == K3_OK;
    }
    free(raw);
    return code == K3_ERR_NO_MEMORY ? k3_fail_no_memory(err, "carried files") : K3_OK;
}

void k3_verify_done(struct k3_verify *verify)
{
    for (unsigned i = 0; i < 3; i++) {
        k3_file_check_done(&verify->files[i]);
    }
    k3_pack_tables_done(&verify->tables);
    k3_file_bundle_done(&verify->bundle);
    k3_provenance_done(&verify->provenance);
    k3_damage_done(&verify->damage);
    free(verify->block_state);
    free(verify->expert_state);
    *verify = (struct k3_verify){0};
}
