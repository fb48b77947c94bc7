/* SPDX-License-Identifier: Apache-2.0 */
#include "packer/list.h"

#include <inttypes.h>
#include <stdlib.h>

#include "format/tool/size_text.h"

static enum k3_code read_superblock(const struct k3_file *file, uint8_t *out_bytes,
                                    struct k3_error *err)
{
    return k3_file_read(file, 0, out_bytes, K3_SUPERBLOCK_BYTES, err);
}

enum k3_code k3_listing_open(const char *folder, struct k3_listing *out_listing,
                             struct k3_error *err)
{
    struct k3_listing *l = out_listing;
    *l = (struct k3_listing){.pack.index = K3_FILE_CLOSED};
    enum k3_code code = k3_pack_open(folder, &l->pack, err);
    if (code != K3_OK) {
        return code;
    }
    code = k3_index_provenance(&l->pack.sections, &l->pack.tables, &l->provenance, err);
    if (code == K3_OK) {
        code = k3_section_set_read(&l->pack.trunk, K3_FILE_TRUNK, &l->data_sections[0], err);
    }
    if (code == K3_OK) {
        code = k3_section_set_read(&l->pack.experts, K3_FILE_EXPERTS, &l->data_sections[1], err);
    }
    if (code == K3_OK) {
        code = read_superblock(&l->pack.index, l->superblocks[0], err);
    }
    if (code == K3_OK) {
        code = read_superblock(&l->pack.trunk, l->superblocks[1], err);
    }
    if (code == K3_OK) {
        code = read_superblock(&l->pack.experts, l->superblocks[2], err);
    }
    if (code != K3_OK) {
        k3_listing_close(l);
    }
    return code;
}

void k3_listing_close(struct k3_listing *listing)
{
    k3_section_set_done(&listing->data_sections[0]);
    k3_section_set_done(&listing->data_sections[1]);
    k3_provenance_done(&listing->provenance);
    k3_pack_close(&listing->pack);
}

static const char *encoding_name(unsigned encoding)
{
    static const char *const names[] = {"?", "F32", "TAPS", "B16", "ROWS"};
    return encoding < sizeof names / sizeof names[0] ? names[encoding] : names[0];
}

static void list_files(const struct k3_listing *l, FILE *stream)
{
    const struct k3_file *files[] = {&l->pack.index, &l->pack.trunk, &l->pack.experts};
    static const char *const names[] = {K3_INDEX_NAME, K3_TRUNK_NAME, K3_EXPERTS_NAME};
    char hex[K3_DIGEST_HEX_BYTES], size[K3_SIZE_TEXT_BYTES];
    k3_digest_hex(&l->pack.superblock.pack_id, hex);
    fprintf(stream, "pack %s, written by %s\n\nfiles\n", hex, l->pack.superblock.writer);
    for (unsigned i = 0; i < 3; i++) {
        k3_size_format(files[i]->file_bytes, size);
        fprintf(stream, "  %-12s %16" PRIu64 "  %s\n", names[i], files[i]->file_bytes, size);
    }
    for (unsigned i = 0; i < K3_BUNDLED_COUNT; i++) {
        if (l->pack.files.files[i].bytes) {
            fprintf(stream, "  carries %s, %zu bytes\n", k3_bundled_name((enum k3_bundled_file)i),
                    l->pack.files.files[i].len);
        }
    }
}

static void list_model(const struct k3_model_spec *s, FILE *stream)
{
    uint32_t mla = 0;
    for (uint32_t i = 0; i < s->layers; i++) {
        mla += s->layer_kind[i] == K3_LAYER_MLA;
    }
    fprintf(stream, "\nmodel\n");
    fprintf(stream, "  %u layers: %u KDA, %u MLA; %u with a dense MLP, %u with experts\n",
            s->layers, s->layers - mla, mla, s->dense_layers, k3_spec_moe_layers(s));
    fprintf(stream, "  hidden %u, vocabulary %u, positions %" PRIu64 "\n", s->hidden, s->vocab,
            s->max_positions);
    fprintf(stream, "  KDA: %u heads of %u, %u taps\n", s->kda_heads, s->kda_head_dim,
            s->conv_taps);
    fprintf(stream, "  MLA: %u heads, ranks %u and %u, head dims %u+%u and %u\n", s->mla_heads,
            s->q_lora_rank, s->kv_lora_rank, s->qk_nope_head_dim, s->qk_rope_head_dim,
            s->v_head_dim);
    fprintf(stream, "  %u experts a layer, %u per token, %u shared; latent %u, width %u\n",
            s->experts, s->experts_per_token, s->shared_experts, s->latent, s->expert_intermediate);
}

static void list_tensors(const struct k3_pack_tables *t, const struct k3_trunk_extent *extent,
                         FILE *stream)
{
    for (uint32_t i = 0; i < extent->tensor_count; i++) {
        const struct k3_trunk_tensor *e = &t->tensors[extent->tensor_first + i];
        char name[K3_TENSOR_NAME_MAX];
        k3_role_source_name(e->layer, e->role, name);
        fprintf(stream, "         %16" PRIu64 " %14" PRIu64 "  %-4s %ux%ux%u  %s\n", e->file_offset,
                e->stored_bytes, encoding_name(e->encoding), e->matrix_count, e->rows, e->cols,
                name);
    }
}

static void list_trunk(const struct k3_pack_tables *t, bool with_tensors, FILE *stream)
{
    fprintf(stream, "\ntrunk: %u extents, %u tensors, %u blocks\n", t->extent_count,
            t->tensor_count, t->block_count);
    fprintf(stream, "  layer  %16s %14s  %s\n", "offset", "bytes", "tensors");
    for (uint32_t i = 0; i < t->extent_count; i++) {
        const struct k3_trunk_extent *e = &t->extents[i];
        char layer[16] = "top";
        if (e->layer != K3_TOP_LEVEL) {
            snprintf(layer, sizeof layer, "%u", e->layer);
        }
        fprintf(stream, "  %5s  %16" PRIu64 " %14" PRIu64 "  %u\n", layer, e->file_offset,
                e->used_bytes, e->tensor_count);
        if (with_tensors) {
            list_tensors(t, e, stream);
        }
    }
}

static void list_experts(const struct k3_expert_layout *l, FILE *stream)
{
    fprintf(stream,
            "\nexperts: %" PRIu64 " of %" PRIu64 " bytes, every %" PRIu64
            " bytes from byte %" PRIu64 " on; layers %u..%u, %u each\n",
            k3_expert_total(l), l->used_bytes, l->stride, l->data_offset, l->first_layer,
            l->first_layer + l->layer_count - 1, l->expert_count);
}

static void list_shards(const struct k3_provenance *p, FILE *stream)
{
    fprintf(stream, "\nmade from %u shards\n", p->shard_count);
    for (uint32_t i = 0; i < p->shard_count; i++) {
        char hex[K3_DIGEST_HEX_BYTES];
        k3_digest_hex(&p->shards[i].digest, hex);
        fprintf(stream, "  %s %16" PRIu64 "  %s\n", hex, p->shards[i].file_bytes,
                p->shards[i].name);
    }
}

enum k3_code k3_list_text(const struct k3_listing *listing, bool with_tensors, FILE *stream,
                          struct k3_error *err)
{
    list_files(listing, stream);
    list_model(&listing->pack.tables.spec, stream);
    list_trunk(&listing->pack.tables, with_tensors, stream);
    list_experts(&listing->pack.tables.layout, stream);
    list_shards(&listing->provenance, stream);
    if (fflush(stream) != 0 || ferror(stream)) {
        return k3_fail(err, K3_ERR_IO, K3_ERROR_NO_OFFSET, "cannot write the output");
    }
    return K3_OK;
}
