/* SPDX-License-Identifier: Apache-2.0 */
#include "format/pack/provenance.h"

#include <stdlib.h>
#include <string.h>

#include "format/base/bytes.h"
#include "tests/support/suite_main.h"
#include "tests/unit/format/pack/pack_fixture.h"

static struct k3_error err;
static struct k3_pack_parts parts;
static uint8_t *raw[3]; /* SHARDS, TRUNK_SOURCES, EXPERT_SOURCES */
static struct k3_section_bytes sections[3];

static void setup(void)
{
    const struct k3_model_spec spec = k3_toy_spec();
    k3_pack_parts_init(&parts, &spec, spec.kda_heads, 3, 11);
    for (unsigned i = 0; i < 3; i++) {
        raw[i] = k3_parts_section(&parts, (enum k3_section_kind)(K3_SECTION_SHARDS + i),
                                  &sections[i].len);
        sections[i].bytes = raw[i];
    }
}

static void teardown(void)
{
    for (unsigned i = 0; i < 3; i++) {
        free(raw[i]);
    }
    k3_pack_parts_done(&parts);
}

static enum k3_code decode(struct k3_provenance *out)
{
    return k3_provenance_decode(sections, &parts.tables, out, &err);
}

/* Does what was decoded give the same bytes again? */
static void check_again(const struct k3_provenance *p, const char *why, size_t at)
{
    for (unsigned i = 0; i < 3; i++) {
        uint8_t *again = NULL;
        size_t len = 0;
        ck_assert_ok(k3_provenance_encode(
            p, &parts.tables, (enum k3_section_kind)(K3_SECTION_SHARDS + i), &again, &len, &err));
        ck_assert_msg(len == sections[i].len && memcmp(again, sections[i].bytes, len) == 0,
                      "%s, byte %zu: section %u is another one", why, at, i);
        free(again);
    }
}

START_TEST(round_trip)
{
    struct k3_provenance p;
    ck_assert_ok(decode(&p));
    check_again(&p, "undamaged", 0);
    ck_assert_uint_eq(p.shard_count, 3);
    for (uint32_t i = 0; i < 3; i++) {
        ck_assert_str_eq(p.shards[i].name, parts.provenance.shards[i].name);
        ck_assert(p.shards[i].has_sha256 == (i == 1));
    }
    const size_t trunk = parts.tables.source_count;
    const size_t experts = (size_t)k3_expert_total(&parts.tables.layout) * 6;
    ck_assert_uint_eq(experts, 60);
    for (size_t i = 0; i < trunk + experts; i++) {
        const struct k3_source_record *a = i < trunk ? &p.trunk[i] : &p.experts[i - trunk];
        const struct k3_source_record *b =
            i < trunk ? &parts.provenance.trunk[i] : &parts.provenance.experts[i - trunk];
        ck_assert_uint_eq(a->shard, b->shard);
        ck_assert_uint_eq(a->offset, b->offset);
        ck_assert_uint_eq(a->bytes, b->bytes);
        ck_assert_mem_eq(a->digest.bytes, b->digest.bytes, 16);
    }
    k3_provenance_done(&p);
    k3_provenance_done(&p);
}
END_TEST

/* Every source has a first tensor, in order, and a second only where kv_b_proj is split. */
START_TEST(first_tensors)
{
    const struct k3_pack_tables *t = &parts.tables;
    uint32_t source = 0;
    for (uint32_t i = 0; i < t->tensor_count; i++) {
        if (t->tensors[i].role == K3_ROLE_MLA_KV_B_VALUE) {
            continue;
        }
        ck_assert_ptr_eq(k3_source_first_tensor(t, source), &t->tensors[i]);
        source++;
    }
    ck_assert_uint_eq(source, t->source_count);
}
END_TEST

/* docs/format.md 9.2 to 9.4: first records, byte for byte. */
START_TEST(record_bytes)
{
    const struct k3_provenance *p = &parts.provenance;
    const char *shard_name = "model-00001-of-000003.safetensors";
    uint8_t shard[256] = {0};
    k3_le32_put(shard, 3);
    k3_le32_put(shard + 4, (uint32_t)strlen(shard_name));
    k3_le64_put(shard + 12, p->shards[0].file_bytes);
    memcpy(shard + 20, p->shards[0].digest.bytes, 16);
    memcpy(shard + 68, shard_name, strlen(shard_name));
    ck_assert_mem_eq(raw[0], shard, 68 + strlen(shard_name));

    const char *name = "language_model.model.layers.0.self_attention_res_norm.weight";
    uint8_t source[256] = {0};
    k3_le32_put(source, parts.tables.source_count);
    k3_le32_put(source + 4, (uint32_t)strlen(name));
    k3_le16_put(source + 8, 1);
    k3_le16_put(source + 10, 1);
    k3_le64_put(source + 12, 48);
    k3_le32_put(source + 20, p->trunk[0].shard);
    k3_le64_put(source + 24, p->trunk[0].offset);
    k3_le64_put(source + 32, 96);
    memcpy(source + 40, p->trunk[0].digest.bytes, 16);
    memcpy(source + 56, name, strlen(name));
    ck_assert_mem_eq(raw[1], source, 56 + strlen(name));

    uint8_t part[40] = {0};
    k3_le32_put(part, p->experts[7].shard);
    k3_le64_put(part + 8, p->experts[7].offset);
    k3_le64_put(part + 16, 96 * 2); /* w1 scale: 96 rows of 64 / 32 */
    memcpy(part + 24, p->experts[7].digest.bytes, 16);
    ck_assert_mem_eq(raw[2] + 7 * 40, part, 40);
    ck_assert_uint_eq(sections[2].len, 60 * 40);
}
END_TEST

START_TEST(flipped_bytes)
{
    static const uint8_t flips[] = {0x01, 0x80, 0xff};
    size_t refused = 0;
    for (size_t at = 0; at < sections[_i].len; at++) {
        for (size_t f = 0; f < sizeof flips; f++) {
            raw[_i][at] ^= flips[f];
            struct k3_provenance p;
            const enum k3_code code = decode(&p);
            if (code == K3_OK) {
                check_again(&p, "flipped", at);
                k3_provenance_done(&p);
            } else {
                ck_assert_code(code, K3_ERR_MALFORMED);
                refused++;
            }
            raw[_i][at] ^= flips[f];
        }
    }
    ck_assert_uint_gt(refused, 0);
}
END_TEST

START_TEST(lengths)
{
    const struct k3_section_bytes good = sections[_i];
    for (size_t len = 0; len <= good.len + 1; len++) {
        uint8_t *bytes = calloc(1, len ? len : 1);
        memcpy(bytes, good.bytes, len < good.len ? len : good.len);
        sections[_i] = (struct k3_section_bytes){.bytes = bytes, .len = len};
        struct k3_provenance p;
        const enum k3_code code = decode(&p);
        ck_assert_msg(code == (len == good.len ? K3_OK : K3_ERR_MALFORMED), "%zu bytes", len);
        if (code == K3_OK) {
            k3_provenance_done(&p);
        }
        free(bytes);
    }
    sections[_i] = good;
}
END_TEST

/* What a writer could say that no reader may believe. */
static void no_shards(struct k3_provenance *p)
{
    p->shard_count = 0;
}
static void same_name_twice(struct k3_provenance *p)
{
    strcpy(p->shards[1].name, p->shards[0].name);
}
static void names_descend(struct k3_provenance *p)
{
    p->shards[2].name[0] = 'a';
}
static void sha256_without_flag(struct k3_provenance *p)
{
    p->shards[1].has_sha256 = false;
}
static void trunk_shard_unknown(struct k3_provenance *p)
{
    p->trunk[5].shard = 3;
}
static void trunk_beyond_shard(struct k3_provenance *p)
{
    p->trunk[5].offset = p->shards[p->trunk[5].shard].file_bytes - p->trunk[5].bytes + 1;
}
static void trunk_offset_wraps(struct k3_provenance *p)
{
    p->trunk[5].offset = UINT64_MAX - 3;
}
static void trunk_bytes_short(struct k3_provenance *p)
{
    p->trunk[5].bytes--;
}
static void expert_shard_unknown(struct k3_provenance *p)
{
    p->experts[59].shard = UINT32_MAX;
}
static void expert_bytes_short(struct k3_provenance *p)
{
    p->experts[0].bytes--;
}
static void expert_offset_wraps(struct k3_provenance *p)
{
    p->experts[0].offset = UINT64_MAX;
}
static void shard_is_empty(struct k3_provenance *p)
{
    p->shards[0].file_bytes = 0;
}

static const struct {
    void (*change)(struct k3_provenance *p);
    const char *why;
} lies[] = {
    {no_shards, "no shards"},
    {same_name_twice, "a name twice"},
    {names_descend, "names that do not ascend"},
    {sha256_without_flag, "a SHA-256 that is not there"},
    {trunk_shard_unknown, "a trunk source in no shard"},
    {trunk_beyond_shard, "a trunk source past its shard's end"},
    {trunk_offset_wraps, "a trunk source whose end wraps"},
    {trunk_bytes_short, "a trunk source of another size"},
    {expert_shard_unknown, "an expert in no shard"},
    {expert_bytes_short, "an expert part of another size"},
    {expert_offset_wraps, "an expert part whose end wraps"},
    {shard_is_empty, "a shard too small for its tensors"},
};

START_TEST(impossible_records)
{
    const uint32_t shard_count = parts.provenance.shard_count;
    lies[_i].change(&parts.provenance);
    for (unsigned i = 0; i < 3; i++) {
        free(raw[i]);
        raw[i] = k3_parts_section(&parts, (enum k3_section_kind)(K3_SECTION_SHARDS + i),
                                  &sections[i].len);
        sections[i].bytes = raw[i];
    }
    parts.provenance.shard_count = shard_count;
    struct k3_provenance p;
    ck_assert_msg(decode(&p) == K3_ERR_MALFORMED, "%s", lies[_i].why);
}
END_TEST

static const struct {
    const char *name;
    bool is_good;
    const char *why;
} shard_names[] = {
    {"x", true, "one byte"},
    {"zz top.safetensors", true, "a blank"},
    {"z\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", true, "two, three and four bytes"},
    {"\xed\x9f\xbf", true, "last before the surrogates"},
    {"\xf4\x8f\xbf\xbf", true, "last of all"},
    {"", false, "nothing"},
    {"z/etc", false, "a path"},
    {"z\xff", false, "no UTF-8"},
    {"z\x80", false, "a continuation alone"},
    {"z\xc3", false, "a sequence cut"},
    {"z\xe2\x82", false, "a longer sequence cut"},
    {"z\xe2\x82z", false, "a sequence interrupted"},
    {"\xc0\xaf", false, "a slash in two bytes"},
    {"\xe0\x80\xaf", false, "a slash in three bytes"},
    {"\xf0\x8f\xbf\xbf", false, "three bytes' worth in four"},
    {"\xed\xa0\x80", false, "a surrogate"},
    {"\xf4\x90\x80\x80", false, "above the last"},
    {"\xf5\x80\x80\x80", false, "no such lead byte"},
};

/* One shard's name, by the writer and by the reader alone. */
START_TEST(names_of_shards)
{
    const size_t len = strlen(shard_names[_i].name);
    free(parts.provenance.shards[2].name);
    parts.provenance.shards[2].name = strdup(shard_names[_i].name);
    uint8_t *bytes = NULL;
    size_t bytes_len = 0;
    const enum k3_code code = k3_provenance_encode(&parts.provenance, &parts.tables,
                                                   K3_SECTION_SHARDS, &bytes, &bytes_len, &err);
    free(bytes);
    const enum k3_code expected = shard_names[_i].is_good ? K3_OK : K3_ERR_MALFORMED;
    ck_assert_msg(code == expected, "writer: %s", shard_names[_i].why);

    /* The last record keeps its fields and gets another name. */
    const size_t old_len = strlen("model-00003-of-000003.safetensors");
    const size_t kept = sections[0].len - old_len;
    uint8_t *record = malloc(kept + len);
    memcpy(record, raw[0], kept);
    k3_le32_put(record + kept - 64, (uint32_t)len);
    memcpy(record + kept, shard_names[_i].name, len);
    sections[0] = (struct k3_section_bytes){.bytes = record, .len = kept + len};
    struct k3_provenance p;
    const enum k3_code read = decode(&p);
    ck_assert_msg(read == expected, "reader: %s", shard_names[_i].why);
    if (read == K3_OK) {
        check_again(&p, shard_names[_i].why, 0);
        k3_provenance_done(&p);
    }
    free(record);
}
END_TEST

START_TEST(longest_name)
{
    char *name = malloc(1026);
    memset(name, 'z', 1025);
    name[1025] = 0;
    free(parts.provenance.shards[2].name);
    parts.provenance.shards[2].name = name;
    uint8_t *bytes = NULL;
    size_t len = 0;
    ck_assert_code(k3_provenance_encode(&parts.provenance, &parts.tables, K3_SECTION_SHARDS, &bytes,
                                        &len, &err),
                   K3_ERR_MALFORMED);
    name[1024] = 0;
    ck_assert_ok(k3_provenance_encode(&parts.provenance, &parts.tables, K3_SECTION_SHARDS, &bytes,
                                      &len, &err));
    sections[0] = (struct k3_section_bytes){.bytes = bytes, .len = len};
    struct k3_provenance p;
    ck_assert_ok(decode(&p));
    k3_provenance_done(&p);
    free(bytes);
}
END_TEST

/* A count may not promise more than the bytes hold, whatever they hold. */
START_TEST(counts_without_bytes)
{
    struct k3_provenance p;
    k3_le32_put(raw[0], 65536);
    ck_assert_code(decode(&p), K3_ERR_MALFORMED);
    k3_le32_put(raw[0], UINT32_MAX);
    ck_assert_code(decode(&p), K3_ERR_MALFORMED);
}
END_TEST

Suite *k3_suite(void)
{
    Suite *suite = suite_create("provenance");
    TCase *round = tcase_create("round trip");
    tcase_add_checked_fixture(round, setup, teardown);
    tcase_add_test(round, round_trip);
    tcase_add_test(round, first_tensors);
    tcase_add_test(round, record_bytes);
    suite_add_tcase(suite, round);
    TCase *names = tcase_create("names");
    tcase_add_checked_fixture(names, setup, teardown);
    tcase_add_loop_test(names, names_of_shards, 0, sizeof shard_names / sizeof shard_names[0]);
    tcase_add_test(names, longest_name);
    suite_add_tcase(suite, names);
    TCase *damage = tcase_create("damage");
    tcase_add_checked_fixture(damage, setup, teardown);
    tcase_add_loop_test(damage, flipped_bytes, 0, 3);
    tcase_add_loop_test(damage, lengths, 0, 3);
    tcase_add_loop_test(damage, impossible_records, 0, sizeof lies / sizeof lies[0]);
    tcase_add_test(damage, counts_without_bytes);
    suite_add_tcase(suite, damage);
    return suite;
}
