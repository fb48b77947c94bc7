/* SPDX-License-Identifier: Apache-2.0 */
#include "format/base/bytes.h"
#include "format/tool/json_out.h"
#include "packer/list.h"

static void put_superblock(struct k3_json_out *out, const uint8_t *p, const char *name)
{
    char writer[K3_WRITER_BYTES + 1] = {0};
    memcpy(writer, p + 96, K3_WRITER_BYTES);
    k3_json_object_begin(out, name);
    k3_json_hex(out, "magic", p, 8);
    k3_json_u64(out, "version_major", k3_le16_get(p + 8));
    k3_json_u64(out, "version_minor", k3_le16_get(p + 10));
    k3_json_u64(out, "feature_incompat", k3_le32_get(p + 12));
    k3_json_u64(out, "feature_compat", k3_le32_get(p + 16));
    k3_json_u64(out, "file_kind", k3_le32_get(p + 20));
    k3_json_hex(out, "pack_id", p + 24, K3_DIGEST_BYTES);
    k3_json_u64(out, "file_bytes", k3_le64_get(p + 40));
    k3_json_u64(out, "section_table_offset", k3_le64_get(p + 48));
    k3_json_u64(out, "section_count", k3_le32_get(p + 56));
    k3_json_hex(out, "section_table_digest", p + 64, K3_DIGEST_BYTES);
    k3_json_u64(out, "data_offset", k3_le64_get(p + 80));
    k3_json_u64(out, "data_end", k3_le64_get(p + 88));
    k3_json_string(out, "writer", writer);
    k3_json_hex(out, "superblock_digest", p + 4080, K3_DIGEST_BYTES);
    k3_json_object_end(out);
}

static void put_sections(struct k3_json_out *out, const struct k3_section_set *set,
                         const char *name)
{
    k3_json_array_begin(out, name);
    for (uint32_t i = 0; i < set->count; i++) {
        const struct k3_section *s = &set->sections[i];
        k3_json_object_begin(out, NULL);
        k3_json_u64(out, "kind", s->kind);
        k3_json_u64(out, "flags", s->flags);
        k3_json_u64(out, "offset", s->offset);
        k3_json_u64(out, "stored_bytes", s->stored_bytes);
        k3_json_u64(out, "raw_bytes", s->raw_bytes);
        k3_json_digest(out, "stored_digest", &s->stored_digest);
        k3_json_object_end(out);
    }
    k3_json_array_end(out);
}

static void put_spec(struct k3_json_out *out, const struct k3_model_spec *s)
{
    k3_json_object_begin(out, "model_spec");
    k3_json_u64(out, "layers", s->layers);
    k3_json_u64(out, "hidden", s->hidden);
    k3_json_u64(out, "vocab", s->vocab);
    k3_json_u64(out, "kda_heads", s->kda_heads);
    k3_json_u64(out, "kda_head_dim", s->kda_head_dim);
    k3_json_u64(out, "conv_taps", s->conv_taps);
    k3_json_u64(out, "mla_heads", s->mla_heads);
    k3_json_u64(out, "q_lora_rank", s->q_lora_rank);
    k3_json_u64(out, "kv_lora_rank", s->kv_lora_rank);
    k3_json_u64(out, "qk_nope_head_dim", s->qk_nope_head_dim);
    k3_json_u64(out, "qk_rope_head_dim", s->qk_rope_head_dim);
    k3_json_u64(out, "v_head_dim", s->v_head_dim);
    k3_json_u64(out, "dense_layers", s->dense_layers);
    k3_json_u64(out, "dense_intermediate", s->dense_intermediate);
    k3_json_u64(out, "experts", s->experts);
    k3_json_u64(out, "experts_per_token", s->experts_per_token);
    k3_json_u64(out, "shared_experts", s->shared_experts);
    k3_json_u64(out, "latent", s->latent);
    k3_json_u64(out, "expert_intermediate", s->expert_intermediate);
    k3_json_u64(out, "attn_res_block_layers", s->attn_res_block_layers);
    k3_json_u64(out, "bos_id", s->bos_id);
    k3_json_u64(out, "eos_id", s->eos_id);
    k3_json_u64(out, "pad_id", s->pad_id);
    k3_json_f64(out, "rms_norm_eps", s->rms_norm_eps);
    k3_json_f64(out, "situ_beta", s->situ_beta);
    k3_json_f64(out, "situ_linear_beta", s->situ_linear_beta);
    k3_json_f64(out, "gate_lower_bound", s->gate_lower_bound);
    k3_json_f64(out, "routed_scaling_factor", s->routed_scaling_factor);
    k3_json_u64(out, "max_positions", s->max_positions);
    k3_json_array_begin(out, "layer_kinds");
    for (uint32_t i = 0; i < s->layers; i++) {
        k3_json_u64(out, NULL, s->layer_kind[i]);
    }
    k3_json_array_end(out);
    k3_json_object_end(out);
}

static void put_extents(struct k3_json_out *out, const struct k3_pack_tables *t)
{
    k3_json_array_begin(out, "trunk_extents");
    for (uint32_t i = 0; i < t->extent_count; i++) {
        const struct k3_trunk_extent *e = &t->extents[i];
        k3_json_object_begin(out, NULL);
        k3_json_u64(out, "layer", e->layer);
        k3_json_u64(out, "tensor_first", e->tensor_first);
        k3_json_u64(out, "tensor_count", e->tensor_count);
        k3_json_u64(out, "block_first", e->block_first);
        k3_json_u64(out, "file_offset", e->file_offset);
        k3_json_u64(out, "used_bytes", e->used_bytes);
        k3_json_object_end(out);
    }
    k3_json_array_end(out);
}

static void put_tensors(struct k3_json_out *out, const struct k3_pack_tables *t)
{
    k3_json_array_begin(out, "trunk_tensors");
    for (uint32_t i = 0; i < t->tensor_count; i++) {
        const struct k3_trunk_tensor *e = &t->tensors[i];
        k3_json_object_begin(out, NULL);
        k3_json_u64(out, "layer", e->layer);
        k3_json_u64(out, "role", e->role);
        k3_json_u64(out, "encoding", e->encoding);
        k3_json_u64(out, "source_dtype", e->source_dtype);
        k3_json_u64(out, "matrix_count", e->matrix_count);
        k3_json_u64(out, "rows", e->rows);
        k3_json_u64(out, "cols", e->cols);
        k3_json_u64(out, "file_offset", e->file_offset);
        k3_json_u64(out, "stored_bytes", e->stored_bytes);
        k3_json_u64(out, "extent", e->extent);
        k3_json_u64(out, "source", e->source);
        k3_json_object_end(out);
    }
    k3_json_array_end(out);
}

static void put_digests(struct k3_json_out *out, const char *name, const struct k3_digest *digests,
                        uint64_t count)
{
    k3_json_array_begin(out, name);
    for (uint64_t i = 0; i < count; i++) {
        k3_json_digest(out, NULL, &digests[i]);
    }
    k3_json_array_end(out);
}

static void put_layout(struct k3_json_out *out, const struct k3_expert_layout *l)
{
    k3_json_object_begin(out, "expert_layout");
    k3_json_u64(out, "first_layer", l->first_layer);
    k3_json_u64(out, "layer_count", l->layer_count);
    k3_json_u64(out, "expert_count", l->expert_count);
    k3_json_u64(out, "data_offset", l->data_offset);
    k3_json_u64(out, "stride", l->stride);
    k3_json_u64(out, "used_bytes", l->used_bytes);
    k3_json_u64(out, "w2_offset", l->w2_offset);
    k3_json_object_end(out);
}

static void put_files(struct k3_json_out *out, const struct k3_file_bundle *files)
{
    k3_json_array_begin(out, "files");
    for (unsigned i = 0; i < K3_BUNDLED_COUNT; i++) {
        if (files->files[i].bytes) {
            const struct k3_digest digest =
                k3_digest_of(files->files[i].bytes, files->files[i].len);
            k3_json_object_begin(out, NULL);
            k3_json_string(out, "name", k3_bundled_name((enum k3_bundled_file)i));
            k3_json_u64(out, "content_length", files->files[i].len);
            k3_json_digest(out, "digest", &digest);
            k3_json_object_end(out);
        }
    }
    k3_json_array_end(out);
}

static void put_shards(struct k3_json_out *out, const struct k3_provenance *p)
{
    k3_json_array_begin(out, "shards");
    for (uint32_t i = 0; i < p->shard_count; i++) {
        const struct k3_shard_record *s = &p->shards[i];
        k3_json_object_begin(out, NULL);
        k3_json_string(out, "name", s->name);
        k3_json_u64(out, "flags", s->has_sha256);
        k3_json_u64(out, "file_bytes", s->file_bytes);
        k3_json_digest(out, "digest", &s->digest);
        k3_json_hex(out, "sha256", s->sha256, K3_SHA256_BYTES);
        k3_json_object_end(out);
    }
    k3_json_array_end(out);
}

static void put_place(struct k3_json_out *out, const struct k3_source_record *r)
{
    k3_json_u64(out, "shard", r->shard);
    k3_json_u64(out, "offset", r->offset);
    k3_json_u64(out, "bytes", r->bytes);
    k3_json_digest(out, "digest", &r->digest);
}

static void put_sources(struct k3_json_out *out, const struct k3_pack_tables *t,
                        const struct k3_provenance *p)
{
    k3_json_array_begin(out, "trunk_sources");
    for (uint32_t i = 0; i < t->source_count; i++) {
        const struct k3_trunk_tensor *tensor = k3_source_first_tensor(t, i);
        const struct k3_source_shape shape = k3_tensor_source_shape(t, tensor);
        char name[K3_TENSOR_NAME_MAX];
        k3_role_source_name(tensor->layer, tensor->role, name);
        k3_json_object_begin(out, NULL);
        k3_json_string(out, "name", name);
        k3_json_u64(out, "dtype", shape.dtype);
        k3_json_u64(out, "ndim", shape.ndim);
        k3_json_array_begin(out, "shape");
        for (uint32_t d = 0; d < shape.ndim; d++) {
            k3_json_u64(out, NULL, shape.shape[d]);
        }
        k3_json_array_end(out);
        put_place(out, &p->trunk[i]);
        k3_json_object_end(out);
    }
    k3_json_array_end(out);
    k3_json_array_begin(out, "expert_sources");
    const uint64_t count = k3_expert_total(&t->layout) * K3_EXPERT_PARTS;
    for (uint64_t i = 0; i < count; i++) {
        k3_json_object_begin(out, NULL);
        put_place(out, &p->experts[i]);
        k3_json_object_end(out);
    }
    k3_json_array_end(out);
}

enum k3_code k3_list_json(const struct k3_listing *listing, FILE *stream, struct k3_error *err)
{
    static const char *const names[] = {K3_INDEX_NAME, K3_TRUNK_NAME, K3_EXPERTS_NAME};
    const struct k3_pack_tables *t = &listing->pack.tables;
    const struct k3_section_set *sets[] = {&listing->pack.sections, &listing->data_sections[0],
                                           &listing->data_sections[1]};
    struct k3_json_out out = {.stream = stream, .flat_depth = 3};
    k3_json_object_begin(&out, NULL);
    k3_json_string(&out, "schema", "k3pack.list/1");
    k3_json_object_begin(&out, "superblocks");
    for (unsigned i = 0; i < 3; i++) {
        put_superblock(&out, listing->superblocks[i], names[i]);
    }
    k3_json_object_end(&out);
    k3_json_object_begin(&out, "section_tables");
    for (unsigned i = 0; i < 3; i++) {
        put_sections(&out, sets[i], names[i]);
    }
    k3_json_object_end(&out);
    put_spec(&out, &t->spec);
    put_extents(&out, t);
    put_tensors(&out, t);
    put_digests(&out, "trunk_digests", t->block_digests, t->block_count);
    put_layout(&out, &t->layout);
    put_digests(&out, "expert_digests", t->expert_digests, k3_expert_total(&t->layout));
    put_files(&out, &listing->pack.files);
    put_shards(&out, &listing->provenance);
    put_sources(&out, t, &listing->provenance);
    k3_json_object_end(&out);
    return k3_json_out_finish(&out, err);
}
