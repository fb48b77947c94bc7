/* SPDX-License-Identifier: Apache-2.0 */
/* Raw sections of an index. The first byte selects the kind (the others are those of the toy model)
 * or, if 0, says that sections 1..6 follow, each with its length in front. What is accepted must
 * re-encode to itself. */
#include <stdlib.h>
#include <string.h>

#include "format/base/assert.h"
#include "format/base/bytes.h"
#include "tests/fuzz/fuzz.h"
#include "tests/unit/format/pack/pack_fixture.h"

static struct k3_pack_parts toy;
static struct k3_section_bytes sections[K3_SECTION_KINDS + 1];

static void prepare(void)
{
    if (sections[1].bytes) {
        return;
    }
    const struct k3_model_spec spec = k3_toy_spec();
    k3_pack_parts_init(&toy, &spec, spec.kda_heads, 2, 1);
    for (unsigned kind = 1; kind <= K3_SECTION_KINDS; kind++) {
        sections[kind].bytes =
            k3_parts_section(&toy, (enum k3_section_kind)kind, &sections[kind].len);
    }
}

static void must_equal(uint8_t *again, size_t len, const struct k3_section_bytes *given)
{
    k3_assert(len == given->len && memcmp(again, given->bytes, len) == 0);
    free(again);
}

static void check_tables(const struct k3_section_bytes *given)
{
    struct k3_pack_tables tables;
    if (k3_pack_tables_decode(given, &tables, NULL) != K3_OK) {
        return;
    }
    for (unsigned kind = 1; kind <= K3_SECTION_EXPERT_DIGESTS; kind++) {
        const size_t len = k3_table_section_bytes(&tables, (enum k3_section_kind)kind);
        uint8_t *again = malloc(len);
        k3_assert(again);
        k3_table_section_encode(&tables, (enum k3_section_kind)kind, again);
        must_equal(again, len, &given[kind]);
    }
    k3_pack_tables_done(&tables);
}

/* A model that is accepted has tables, or is refused as too large; nothing else. */
static void check_spec(const struct k3_section_bytes *given)
{
    struct k3_model_spec spec;
    if (k3_model_spec_decode(given->bytes, given->len, &spec, NULL) != K3_OK) {
        return;
    }
    const size_t len = k3_model_spec_encoded_bytes(&spec);
    uint8_t *again = malloc(len);
    k3_assert(again);
    k3_model_spec_encode(&spec, again);
    must_equal(again, len, given);
    uint32_t a_log[K3_LAYERS_MAX];
    for (uint32_t layer = 0; layer < spec.layers; layer++) {
        a_log[layer] = spec.kda_heads;
    }
    struct k3_pack_tables tables;
    if (k3_pack_tables_derive(&spec, a_log, &tables, NULL) == K3_OK) {
        k3_assert(k3_trunk_data_end(&tables) <= INT64_MAX);
        k3_assert(k3_experts_data_end(&tables) <= INT64_MAX);
        k3_pack_tables_done(&tables);
    }
}

static void check_bundle(const struct k3_section_bytes *given)
{
    struct k3_file_bundle bundle;
    uint8_t *again = NULL;
    size_t len = 0;
    if (k3_file_bundle_decode(given->bytes, given->len, &bundle, NULL) == K3_OK) {
        k3_assert(k3_file_bundle_encode(&bundle, &again, &len, NULL) == K3_OK);
        must_equal(again, len, given);
        k3_file_bundle_done(&bundle);
    }
}

static void check_provenance(const struct k3_section_bytes given[3])
{
    struct k3_provenance provenance;
    if (k3_provenance_decode(given, &toy.tables, &provenance, NULL) != K3_OK) {
        return;
    }
    for (unsigned i = 0; i < 3; i++) {
        uint8_t *again = NULL;
        size_t len = 0;
        k3_assert(k3_provenance_encode(&provenance, &toy.tables,
                                       (enum k3_section_kind)(K3_SECTION_SHARDS + i), &again, &len,
                                       NULL) == K3_OK);
        must_equal(again, len, &given[i]);
    }
    k3_provenance_done(&provenance);
}

static void check_all_tables(const uint8_t *bytes, size_t len)
{
    struct k3_section_bytes given[K3_SECTION_EXPERT_DIGESTS + 1] = {{0}};
    for (unsigned kind = 1; kind <= K3_SECTION_EXPERT_DIGESTS; kind++) {
        if (len < 4 || k3_le32_get(bytes) > len - 4) {
            return;
        }
        given[kind] = (struct k3_section_bytes){.bytes = bytes + 4, .len = k3_le32_get(bytes)};
        bytes += 4 + given[kind].len;
        len -= 4 + given[kind].len;
    }
    check_tables(given);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    prepare();
    if (len == 0 || bytes[0] > K3_SECTION_KINDS) {
        return 0;
    }
    const unsigned kind = bytes[0];
    if (kind == 0) {
        check_all_tables(bytes + 1, len - 1);
        return 0;
    }
    struct k3_section_bytes given[K3_SECTION_KINDS + 1];
    memcpy(given, sections, sizeof given);
    given[kind] = (struct k3_section_bytes){.bytes = bytes + 1, .len = len - 1};
    if (kind == K3_SECTION_MODEL_SPEC) {
        check_spec(&given[kind]);
    }
    if (kind <= K3_SECTION_EXPERT_DIGESTS) {
        check_tables(given);
    } else if (kind == K3_SECTION_FILES) {
        check_bundle(&given[kind]);
    } else {
        check_provenance(given + K3_SECTION_SHARDS);
    }
    return 0;
}
