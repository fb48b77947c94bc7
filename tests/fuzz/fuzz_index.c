/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes as the file k3.index. Its digests are made right first, so that mutated bytes get past them
 * to what they protect. An index that is accepted must re-encode to its own raw sections. */
#include <stdlib.h>
#include <string.h>

#include "format/base/assert.h"
#include "format/pack/pack_reader.h"
#include "tests/fuzz/fuzz.h"
#include "tests/unit/format/pack/pack_fixture.h"

static void check_section(const struct k3_section_set *set, const struct k3_pack_parts *parts,
                          enum k3_section_kind kind)
{
    uint8_t *raw = NULL;
    size_t raw_len = 0;
    size_t len = 0;
    k3_assert(k3_section_raw(set, kind, &raw, &raw_len, NULL) == K3_OK);
    uint8_t *again = k3_parts_section(parts, kind, &len);
    k3_assert(len == raw_len && memcmp(again, raw, len) == 0);
    free(again);
    free(raw);
}

static void check_index(const struct k3_section_set *set)
{
    struct k3_pack_parts parts = {0};
    if (k3_index_decode(set, &parts.tables, &parts.files, NULL) != K3_OK) {
        return;
    }
    for (unsigned kind = 1; kind <= K3_SECTION_FILES; kind++) {
        check_section(set, &parts, (enum k3_section_kind)kind);
    }
    if (k3_index_provenance(set, &parts.tables, &parts.provenance, NULL) == K3_OK) {
        for (unsigned kind = K3_SECTION_SHARDS; kind <= K3_SECTION_KINDS; kind++) {
            check_section(set, &parts, (enum k3_section_kind)kind);
        }
    }
    k3_pack_parts_done(&parts);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    uint8_t *copy = malloc(len ? len : 1);
    k3_assert(copy);
    memcpy(copy, bytes, len);
    k3_index_redigest(copy, len);
    struct k3_section_set set;
    if (k3_index_parse(copy, len, &set, NULL) == K3_OK) {
        check_index(&set);
        k3_section_set_done(&set);
    }
    free(copy);
    return 0;
}
