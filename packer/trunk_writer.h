/* SPDX-License-Identifier: Apache-2.0 */
#ifndef K3_PACKER_TRUNK_WRITER_H
#define K3_PACKER_TRUNK_WRITER_H

#include "format/pack/provenance.h"
#include "packer/buffer.h"
#include "packer/source_reader.h"

/* Source tensors of the trunk to their stored forms, in place in k3.trunk.partial. Memory is a few
 * pieces of 8 MiB (or one tile, or one head of kv_b_proj, where those are larger). */
struct k3_trunk_writer {
    struct k3_pack_tables *tables; /* borrowed; block digests are filled in */
    const struct k3_provenance *provenance;
    const struct k3_file *file;
    struct k3_source_reader *reader;
    struct k3_digest_stream *digest; /* owned */
    struct k3_buffer source, stored;
};

K3_MUST_CHECK enum k3_code
k3_trunk_writer_init(struct k3_trunk_writer *writer, struct k3_pack_tables *tables,
                     const struct k3_provenance *provenance, const struct k3_file *file,
                     struct k3_source_reader *reader, struct k3_error *err);
void k3_trunk_writer_done(struct k3_trunk_writer *writer);

/* Reads one source tensor and writes what is stored of it. The reader must stand at its shard.
 * Stored bytes that would be zero are not written: the place must read as zeros before.
 * Errors: DAMAGED (a weight that is not finite: tensor, place, shard and file offset are named),
 * IO, INTERRUPTED, NO_MEMORY. */
K3_MUST_CHECK enum k3_code k3_trunk_write(struct k3_trunk_writer *writer, uint32_t source,
                                          struct k3_digest *out_digest, struct k3_error *err);

/* Reads a block of a finished extent back (0..k3_extent_block_count - 1) and digests it. */
K3_MUST_CHECK enum k3_code k3_trunk_digest_block(const struct k3_trunk_extent *extent,
                                                 uint32_t block, const struct k3_file *file,
                                                 struct k3_buffer *scratch,
                                                 struct k3_digest *out_digest,
                                                 struct k3_error *err);

/* Bytes of that block: 8 MiB, or what is left. */
uint64_t k3_trunk_block_bytes(const struct k3_trunk_extent *extent, uint32_t block);

#endif
