/* SPDX-License-Identifier: Apache-2.0 */
#ifndef K3_PACKER_LIST_H
#define K3_PACKER_LIST_H

#include <stdio.h>

#include "format/pack/pack_reader.h"

/* Everything a pack says about itself. Provenance is read with it. */
struct k3_listing {
    struct k3_pack pack;
    struct k3_provenance provenance;
    struct k3_section_set data_sections[2];      /* of trunk and experts */
    uint8_t superblocks[3][K3_SUPERBLOCK_BYTES]; /* index, trunk, experts */
};

K3_MUST_CHECK enum k3_code k3_listing_open(const char *folder, struct k3_listing *out_listing,
                                           struct k3_error *err);
void k3_listing_close(struct k3_listing *listing);

/* Every field of every structure, under the names of docs/format.md; the same object that
 * scripts/read_pack.py dump prints (but for "schema"). Errors: IO. */
K3_MUST_CHECK enum k3_code k3_list_json(const struct k3_listing *listing, FILE *stream,
                                        struct k3_error *err);

/* For people: files, model, extents, shards; every tensor too where with_tensors. Errors: IO. */
K3_MUST_CHECK enum k3_code k3_list_text(const struct k3_listing *listing, bool with_tensors,
                                        FILE *stream, struct k3_error *err);

#endif
