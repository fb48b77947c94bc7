/* SPDX-License-Identifier: Apache-2.0 */
#ifndef K3_FORMAT_PACK_PACK_SEAL_H
#define K3_FORMAT_PACK_PACK_SEAL_H

#include "format/base/file.h"
#include "format/pack/file_bundle.h"
#include "format/pack/provenance.h"

/* Turns written extents into a pack: tables at the end of trunk and experts, superblocks, fsync,
 * then the names, the index last. The partial files keep their names until everything in them is
 * durable. An interruption at any moment leaves either no pack or the whole pack, and sealing again
 * is harmless. An older pack in `folder` loses its index before its files are replaced. Needs every
 * digest in tables and provenance filled in.
 *   trunk, experts   open for writing, at "<name>.partial" in `folder`; or at "<name>", where an
 *                    earlier seal was interrupted after renaming them
 * Errors: MALFORMED (a section larger than the format allows, a required file missing), IO,
 * CANT_CREATE, NO_MEMORY. */
K3_MUST_CHECK enum k3_code k3_pack_seal(const char *folder, const struct k3_file *trunk,
                                        const struct k3_file *experts,
                                        const struct k3_pack_tables *tables,
                                        const struct k3_file_bundle *files,
                                        const struct k3_provenance *provenance,
                                        struct k3_digest *out_pack_id, struct k3_error *err);

/* "folder/k3.trunk.partial" in fresh memory, NULL when there is none left. */
char *k3_partial_path(const char *folder, enum k3_file_kind kind);

#endif
