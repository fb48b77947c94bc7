/* SPDX-License-Identifier: Apache-2.0 */
#ifndef K3_FORMAT_PACK_PACK_READER_H
#define K3_FORMAT_PACK_PACK_READER_H

#include "format/pack/file_bundle.h"
#include "format/pack/provenance.h"
#include "format/pack/sections.h"

/* The one door for readers of a pack: opens the three files, checks the index in full and the other
 * two superblocks against it. Whoever holds an open pack may rely on every table in it. */
struct k3_pack {
    char *folder; /* owned */
    struct k3_file index, trunk, experts;
    struct k3_superblock superblock; /* the index's */
    struct k3_pack_tables tables;
    struct k3_file_bundle files;
    struct k3_section_set sections; /* of the index: stored bytes, for comparing and provenance */
};

/* Errors: NO_INPUT (no pack there; says when one was begun and not finished), MALFORMED, DAMAGED,
 * UNSUPPORTED, IO, NO_MEMORY. */
K3_MUST_CHECK enum k3_code k3_pack_open(const char *folder, struct k3_pack *out_pack,
                                        struct k3_error *err);
/* Accepts a zeroed pack, and one that is closed already. */
void k3_pack_close(struct k3_pack *pack);

/* The index alone, from its bytes: what k3_pack_open does with k3.index. `set` is parsed before. */
K3_MUST_CHECK enum k3_code k3_index_decode(const struct k3_section_set *set,
                                           struct k3_pack_tables *out_tables,
                                           struct k3_file_bundle *out_files, struct k3_error *err);

/* Provenance is decoded only when it is asked for. *out is the caller's: k3_provenance_done. */
K3_MUST_CHECK enum k3_code k3_index_provenance(const struct k3_section_set *set,
                                               const struct k3_pack_tables *tables,
                                               struct k3_provenance *out_provenance,
                                               struct k3_error *err);

/* Opens one of the files of a pack and checks its superblock against the index's pack id. */
K3_MUST_CHECK enum k3_code k3_pack_open_data(const char *folder, enum k3_file_kind kind,
                                             const struct k3_digest *pack_id,
                                             uint64_t expected_data_end, struct k3_file *out_file,
                                             struct k3_error *err);

#endif
