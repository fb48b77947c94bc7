/* SPDX-License-Identifier: Apache-2.0 */
#ifndef K3_PACKER_REPAIR_INDEX_H
#define K3_PACKER_REPAIR_INDEX_H

#include "packer/verify.h"

/* The metadata of a pack made again: tables from whichever file still has a good copy, bytes as
 * they are stored there; provenance from the index, or else from the shards. */

/* Reads all shards once and fills in verify->provenance; the carried files too where no copy is
 * left. Needs a whole checkpoint, of the same model (`problems` says what is wrong with it).
 * Errors: those of the census, MALFORMED (another model), INTERRUPTED, IO, NO_MEMORY. */
K3_MUST_CHECK enum k3_code k3_repair_provenance(struct k3_verify *verify, const char *checkpoint,
                                                struct k3_problems *problems, struct k3_error *err);

/* All sections, ready to be written; those of provenance are left out where it is lost. The id that
 * they make must be the pack's.
 * *out_builder is the caller's: k3_section_builder_done. Errors: DAMAGED, NO_MEMORY. */
K3_MUST_CHECK enum k3_code k3_repair_sections(struct k3_verify *verify,
                                              struct k3_section_builder *out_builder,
                                              struct k3_error *err);

/* Writes tables, section table and superblock of a data file anew; durable. Errors: IO. */
K3_MUST_CHECK enum k3_code k3_repair_tail(const struct k3_verify *verify,
                                          const struct k3_section_builder *builder,
                                          const struct k3_file *file, enum k3_file_kind kind,
                                          struct k3_error *err);

/* Writes k3.index anew under a temporary name, then renames it. Errors: IO, CANT_CREATE. */
K3_MUST_CHECK enum k3_code k3_repair_index(const struct k3_verify *verify,
                                           const struct k3_section_builder *builder,
                                           struct k3_error *err);

#endif
