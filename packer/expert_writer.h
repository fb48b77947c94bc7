/* SPDX-License-Identifier: Apache-2.0 */
#ifndef K3_PACKER_EXPERT_WRITER_H
#define K3_PACKER_EXPERT_WRITER_H

#include "format/pack/provenance.h"
#include "packer/buffer.h"
#include "packer/direct_io.h"
#include "packer/expert_codec.h"
#include "packer/source_reader.h"

/* The six source tensors of an expert to its extent in k3.experts.partial: reading, which one
 * thread does in the order of the shards, and the rest, which any thread may do. */
struct k3_expert_job {
    uint64_t expert;
    struct k3_buffer source, stored; /* kept from one expert to the next */
    bool is_hole[K3_EXPERT_PARTS];   /* the file system says so, and nothing was read */
    bool is_zero;                    /* all of it                                     */
    struct k3_digest sources[K3_EXPERT_PARTS], digest; /* of the parts, of the extent */
    enum k3_code code;
    struct k3_error err;
};

void k3_expert_job_done(struct k3_expert_job *job);

struct k3_expert_writer {
    const struct k3_pack_tables *tables; /* borrowed */
    const struct k3_provenance *provenance;
    const struct k3_file *file;
    struct k3_direct direct; /* to `file`; ordinary writes until k3_expert_writer_go_direct */
    struct k3_source_reader *reader;
    struct k3_expert_shape shape;
    struct k3_expert_job own; /* of k3_expert_write */
    /* Of zeros (sparse rehearsals): an extent, each part. */
    struct k3_digest zero_digest, zero_parts[K3_EXPERT_PARTS];
    struct k3_write_behind behind;
};

K3_MUST_CHECK enum k3_code
k3_expert_writer_init(struct k3_expert_writer *writer, const struct k3_pack_tables *tables,
                      const struct k3_provenance *provenance, const struct k3_file *file,
                      struct k3_source_reader *reader, struct k3_error *err);
/* From here on experts go to the device directly; the file must be open. */
void k3_expert_writer_go_direct(struct k3_expert_writer *writer);
void k3_expert_writer_done(struct k3_expert_writer *writer);

/* Reads the parts in the order in which they lie in the shards (seeking to each shard; in a
 * sequential pass all must lie in the open one). Errors: IO, INTERRUPTED, NO_MEMORY. */
K3_MUST_CHECK enum k3_code k3_expert_read(struct k3_expert_writer *writer, uint64_t expert,
                                          struct k3_expert_job *job, struct k3_error *err);

/* Checks, tiles, digests and writes what was read; the result is in job->code, err, sources and
 * digest. An extent of zeros is not written: the place must read as zeros before. May run in
 * several threads at once, each with its own job. Errors: DAMAGED (a scale code that a pack never
 * holds: tensor, row, group, shard and file offset are named), IO, NO_MEMORY. */
void k3_expert_finish(const struct k3_expert_writer *writer, struct k3_expert_job *job);

/* What was written can go to the disk and leave the page cache: once per finished job, in order. */
void k3_expert_written(struct k3_expert_writer *writer, const struct k3_expert_job *job);

/* All of it at once. */
K3_MUST_CHECK enum k3_code k3_expert_write(struct k3_expert_writer *writer, uint64_t expert,
                                           struct k3_digest out_sources[K3_EXPERT_PARTS],
                                           struct k3_digest *out_stored, struct k3_error *err);

#endif
