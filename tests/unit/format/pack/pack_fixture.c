/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/format/pack/pack_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "format/base/assert.h"
#include "format/base/bytes.h"
#include "format/base/ckd.h"
#include "format/pack/pack_seal.h"

static void must(enum k3_code code, const struct k3_error *err)
{
    if (code != K3_OK) {
        fprintf(stderr, "pack fixture: %s\n", err->message);
        abort();
    }
}

static void *must_have(void *memory)
{
    k3_assert(memory);
    return memory;
}

uint64_t k3_test_random(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

void k3_test_random_fill(uint64_t *state, void *bytes, size_t len)
{
    uint8_t *p = bytes;
    for (size_t at = 0; at < len; at += 8) {
        const uint64_t word = k3_test_random(state);
        memcpy(p + at, &word, len - at < 8 ? len - at : 8);
    }
}

struct k3_model_spec k3_toy_spec(void)
{
    return (struct k3_model_spec){
        .layers = 3,
        .hidden = 48,
        .vocab = 300,
        .max_positions = 4096,
        .kda_heads = 3,
        .kda_head_dim = 20,
        .conv_taps = 4,
        .mla_heads = 2,
        .q_lora_rank = 24,
        .kv_lora_rank = 40,
        .qk_nope_head_dim = 12,
        .qk_rope_head_dim = 6,
        .v_head_dim = 10,
        .dense_layers = 1,
        .dense_intermediate = 72,
        .experts = 5,
        .experts_per_token = 2,
        .shared_experts = 2,
        .latent = 64,
        .expert_intermediate = 96,
        .attn_res_block_layers = 2,
        .bos_id = 44,
        .eos_id = 46,
        .pad_id = 299,
        .rms_norm_eps = 1e-5,
        .situ_beta = 4.0,
        .situ_linear_beta = 25.0,
        .gate_lower_bound = -5.0,
        .routed_scaling_factor = 1.5,
        .layer_kind = {K3_LAYER_KDA, K3_LAYER_MLA, K3_LAYER_KDA},
    };
}

static void fill_files(struct k3_file_bundle *files)
{
    static const char *const contents[K3_BUNDLED_COUNT] = {
        [K3_BUNDLED_CONFIG] = "{\"model_type\": \"kimi_k3\"}\n",
        [K3_BUNDLED_TIKTOKEN] = "AA== 0\nAQ== 1\nAg== 2\n",
        [K3_BUNDLED_TOKENIZER_CONFIG] = "{}",
        [K3_BUNDLED_LICENSE] = "",
    };
    *files = (struct k3_file_bundle){0};
    for (unsigned i = 0; i < K3_BUNDLED_COUNT; i++) {
        if (contents[i]) {
            files->files[i].bytes = must_have(malloc(strlen(contents[i]) + 1));
            files->files[i].len = strlen(contents[i]);
            memcpy(files->files[i].bytes, contents[i], strlen(contents[i]) + 1);
        }
    }
}

/* Puts sources into shards in turn; each shard grows by what it gets. */
static void place_source(struct k3_provenance *p, struct k3_source_record *record, uint32_t shard,
                         uint64_t bytes, uint64_t *seed)
{
    struct k3_shard_record *s = &p->shards[shard];
    *record = (struct k3_source_record){.shard = shard, .offset = s->file_bytes, .bytes = bytes};
    k3_test_random_fill(seed, record->digest.bytes, K3_DIGEST_BYTES);
    s->file_bytes += bytes;
}

static void fill_provenance(struct k3_provenance *p, const struct k3_pack_tables *tables,
                            uint64_t *seed)
{
    for (uint32_t i = 0; i < p->shard_count; i++) {
        struct k3_shard_record *shard = &p->shards[i];
        char name[64];
        snprintf(name, sizeof name, "model-%05u-of-%06u.safetensors", i + 1, p->shard_count);
        shard->name = must_have(strdup(name));
        shard->file_bytes = 1000 + 8 * (uint64_t)i;
        k3_test_random_fill(seed, shard->digest.bytes, K3_DIGEST_BYTES);
        shard->has_sha256 = i % 2 == 1;
        if (shard->has_sha256) {
            k3_test_random_fill(seed, shard->sha256, K3_SHA256_BYTES);
        }
    }
    for (uint32_t i = 0; i < tables->source_count; i++) {
        const struct k3_trunk_tensor *tensor = k3_source_first_tensor(tables, i);
        const struct k3_source_shape shape = k3_tensor_source_shape(tables, tensor);
        place_source(p, &p->trunk[i], i % p->shard_count, k3_source_bytes(&shape), seed);
    }
    for (uint64_t i = 0; i < k3_expert_total(&tables->layout) * K3_EXPERT_PARTS; i++) {
        uint64_t shape[2];
        k3_expert_part_shape(&tables->spec, (unsigned)(i % K3_EXPERT_PARTS), shape);
        const uint64_t expert = i / K3_EXPERT_PARTS;
        place_source(p, &p->experts[i], (uint32_t)(expert % p->shard_count), shape[0] * shape[1],
                     seed);
    }
}

void k3_pack_parts_init(struct k3_pack_parts *parts, const struct k3_model_spec *spec,
                        uint32_t a_log_len, uint32_t shard_count, uint64_t seed)
{
    struct k3_error err;
    uint32_t a_log[K3_LAYERS_MAX];
    for (uint32_t layer = 0; layer < spec->layers; layer++) {
        a_log[layer] = a_log_len + (layer == 0);
    }
    must(k3_pack_tables_derive(spec, a_log, &parts->tables, &err), &err);
    for (uint32_t i = 0; i < parts->tables.block_count; i++) {
        k3_test_random_fill(&seed, parts->tables.block_digests[i].bytes, K3_DIGEST_BYTES);
    }
    for (uint64_t i = 0; i < k3_expert_total(&parts->tables.layout); i++) {
        k3_test_random_fill(&seed, parts->tables.expert_digests[i].bytes, K3_DIGEST_BYTES);
    }
    fill_files(&parts->files);
    must(k3_provenance_create(&parts->tables, shard_count, &parts->provenance, &err), &err);
    fill_provenance(&parts->provenance, &parts->tables, &seed);
}

void k3_pack_parts_done(struct k3_pack_parts *parts)
{
    k3_provenance_done(&parts->provenance);
    k3_file_bundle_done(&parts->files);
    k3_pack_tables_done(&parts->tables);
}

static void open_partial(const char *folder, enum k3_file_kind kind, struct k3_file *out_file)
{
    struct k3_error err;
    char *path = must_have(k3_partial_path(folder, kind));
    must(k3_file_open_write(path, out_file, &err), &err);
    free(path);
}

static void write_random(const struct k3_file *file, uint64_t offset, uint8_t *bytes, size_t len,
                         uint64_t *seed)
{
    struct k3_error err;
    k3_test_random_fill(seed, bytes, len);
    must(k3_file_write(file, offset, bytes, len, &err), &err);
}

void k3_pack_parts_write(struct k3_pack_parts *parts, const char *folder, uint64_t seed,
                         struct k3_file *out_trunk, struct k3_file *out_experts)
{
    struct k3_pack_tables *t = &parts->tables;
    uint8_t *bytes = must_have(malloc(K3_TRUNK_BLOCK_BYTES));
    open_partial(folder, K3_FILE_TRUNK, out_trunk);
    for (uint32_t e = 0; e < t->extent_count; e++) {
        const struct k3_trunk_extent *extent = &t->extents[e];
        for (uint32_t b = 0; b < k3_extent_block_count(extent); b++) {
            const uint64_t at = b * K3_TRUNK_BLOCK_BYTES;
            const size_t len = (size_t)k3_min_u64(K3_TRUNK_BLOCK_BYTES, extent->used_bytes - at);
            write_random(out_trunk, extent->file_offset + at, bytes, len, &seed);
            t->block_digests[extent->block_first + b] = k3_digest_of(bytes, len);
        }
    }
    open_partial(folder, K3_FILE_EXPERTS, out_experts);
    for (uint64_t n = 0; n < k3_expert_total(&t->layout); n++) {
        const size_t len = (size_t)t->layout.used_bytes;
        k3_assert(len <= K3_TRUNK_BLOCK_BYTES);
        write_random(out_experts, k3_expert_offset(&t->layout, n), bytes, len, &seed);
        t->expert_digests[n] = k3_digest_of(bytes, len);
    }
    free(bytes);
}

void k3_toy_pack_make(const char *folder, uint64_t seed)
{
    struct k3_error err;
    const struct k3_model_spec spec = k3_toy_spec();
    struct k3_pack_parts parts;
    k3_pack_parts_init(&parts, &spec, spec.kda_heads, 2, seed);
    struct k3_file trunk = K3_FILE_CLOSED;
    struct k3_file experts = K3_FILE_CLOSED;
    struct k3_digest id;
    k3_pack_parts_write(&parts, folder, seed, &trunk, &experts);
    must(k3_pack_seal(folder, &trunk, &experts, &parts.tables, &parts.files, &parts.provenance, &id,
                      &err),
         &err);
    k3_file_close(&trunk);
    k3_file_close(&experts);
    k3_pack_parts_done(&parts);
}

uint8_t *k3_parts_section(const struct k3_pack_parts *parts, enum k3_section_kind kind,
                          size_t *out_len)
{
    struct k3_error err;
    uint8_t *bytes = NULL;
    if (kind == K3_SECTION_FILES) {
        must(k3_file_bundle_encode(&parts->files, &bytes, out_len, &err), &err);
    } else if (kind > K3_SECTION_FILES) {
        must(k3_provenance_encode(&parts->provenance, &parts->tables, kind, &bytes, out_len, &err),
             &err);
    } else {
        *out_len = k3_table_section_bytes(&parts->tables, kind);
        bytes = must_have(malloc(*out_len));
        k3_table_section_encode(&parts->tables, kind, bytes);
    }
    return bytes;
}

uint8_t *k3_toy_index_make(size_t *out_len)
{
    struct k3_error err;
    const struct k3_model_spec spec = k3_toy_spec();
    struct k3_pack_parts parts;
    k3_pack_parts_init(&parts, &spec, spec.kda_heads, 2, 1);
    struct k3_section_builder builder = {0};
    for (unsigned kind = 1; kind <= K3_SECTION_KINDS; kind++) {
        size_t len = 0;
        uint8_t *raw = k3_parts_section(&parts, (enum k3_section_kind)kind, &len);
        must(k3_section_builder_put(&builder, (enum k3_section_kind)kind, raw, len, &err), &err);
        free(raw);
    }
    char path[] = "/tmp/k3index.XXXXXX";
    const int fd = mkstemp(path);
    k3_assert(fd >= 0);
    close(fd);
    struct k3_file file = K3_FILE_CLOSED;
    must(k3_file_open_write(path, &file, &err), &err);
    const struct k3_digest id = k3_section_builder_pack_id(&builder);
    must(k3_section_builder_write(&builder, &file, K3_FILE_INDEX, 0, &id, &err), &err);
    uint8_t *bytes = NULL;
    must(k3_file_read_all(path, SIZE_MAX, &bytes, out_len, &err), &err);
    k3_file_close(&file);
    unlink(path);
    k3_section_builder_done(&builder);
    k3_pack_parts_done(&parts);
    return bytes;
}

void k3_superblock_redigest(uint8_t bytes[K3_SUPERBLOCK_BYTES])
{
    const size_t at = K3_SUPERBLOCK_BYTES - K3_DIGEST_BYTES;
    const struct k3_digest digest = k3_digest_of(bytes, at);
    memcpy(bytes + at, digest.bytes, K3_DIGEST_BYTES);
}

enum k3_code k3_index_parse(const uint8_t *bytes, size_t len, struct k3_section_set *out_set,
                            struct k3_error *err)
{
    if (len < K3_SUPERBLOCK_BYTES) {
        return k3_fail(err, K3_ERR_DAMAGED, 0, "too short");
    }
    const size_t tail_len = len - K3_SUPERBLOCK_BYTES;
    uint8_t *tail = must_have(malloc(tail_len + 1));
    memcpy(tail, bytes + K3_SUPERBLOCK_BYTES, tail_len);
    const enum k3_code code = k3_section_set_parse(bytes, K3_FILE_INDEX, tail, K3_SUPERBLOCK_BYTES,
                                                   tail_len, out_set, err);
    if (code != K3_OK) {
        free(tail);
    }
    return code;
}

/* docs/format.md 3 and 4: file_bytes, section_table_offset, section_count, table digest. */
enum { AT_PACK_ID = 24, AT_FILE_BYTES = 40, AT_TABLE = 48, AT_COUNT = 56, AT_TABLE_DIGEST = 64 };

static void redigest_sections(uint8_t *bytes, size_t len)
{
    const uint64_t table = k3_le64_get(bytes + AT_TABLE);
    const uint64_t table_len = (uint64_t)k3_le32_get(bytes + AT_COUNT) * K3_SECTION_ENTRY_BYTES;
    if (table < K3_SUPERBLOCK_BYTES || !k3_range_fits(table, table_len, len)) {
        return;
    }
    for (uint64_t at = table; at < table + table_len; at += K3_SECTION_ENTRY_BYTES) {
        const uint64_t offset = k3_le64_get(bytes + at + 8);
        const uint64_t stored = k3_le64_get(bytes + at + 16);
        if (k3_range_fits(offset, stored, len)) {
            const struct k3_digest digest = k3_digest_of(bytes + offset, (size_t)stored);
            memcpy(bytes + at + 32, digest.bytes, K3_DIGEST_BYTES);
        }
    }
    const struct k3_digest digest = k3_digest_of(bytes + table, (size_t)table_len);
    memcpy(bytes + AT_TABLE_DIGEST, digest.bytes, K3_DIGEST_BYTES);
}

/* docs/format.md 10, over whatever sections parse. */
static void repair_pack_id(uint8_t *bytes, size_t len)
{
    struct k3_section_set set;
    if (k3_index_parse(bytes, len, &set, NULL) != K3_OK) {
        return;
    }
    uint8_t records[7 * 20];
    bool is_whole = true;
    for (unsigned kind = 1; kind <= 7 && is_whole; kind++) {
        uint8_t *raw = NULL;
        size_t raw_len = 0;
        is_whole = k3_section_raw(&set, (enum k3_section_kind)kind, &raw, &raw_len, NULL) == K3_OK;
        if (is_whole) {
            const struct k3_digest digest = k3_digest_of(raw, raw_len);
            k3_le32_put(records + (kind - 1) * 20, kind);
            memcpy(records + (kind - 1) * 20 + 4, digest.bytes, K3_DIGEST_BYTES);
        }
        free(raw);
    }
    k3_section_set_done(&set);
    if (is_whole) {
        const struct k3_digest id = k3_digest_of(records, sizeof records);
        memcpy(bytes + AT_PACK_ID, id.bytes, K3_DIGEST_BYTES);
        k3_superblock_redigest(bytes);
    }
}

void k3_index_redigest(uint8_t *bytes, size_t len)
{
    if (len < K3_SUPERBLOCK_BYTES) {
        return;
    }
    k3_le64_put(bytes + AT_FILE_BYTES, len);
    redigest_sections(bytes, len);
    k3_superblock_redigest(bytes);
    repair_pack_id(bytes, len);
}
