/* SPDX-License-Identifier: Apache-2.0 */
#ifndef K3_PACKER_SOURCE_READER_H
#define K3_PACKER_SOURCE_READER_H

#include "format/base/digest.h"
#include "format/base/progress.h"
#include "format/safetensors/shard_set.h"
#include "packer/buffer.h"
#include "packer/direct_io.h"
#include "packer/page_cache.h"
#include "packer/sha256.h"

/* Reads the shards of a checkpoint: from start to end with the digest of the whole file
 * (begin/end), or here and there (seek). Holes of sparse files are recognised and not read. */
struct k3_source_reader {
    const struct k3_shard_set *set; /* borrowed */
    const struct k3_observer *observer;
    uint64_t total_bytes; /* for progress                                     */
    uint64_t done_bytes;  /* of sequential passes                             */

    struct k3_file file; /* of shard `shard`, or closed                      */
    uint32_t shard;
    bool is_sequential;
    uint64_t at;                    /* sequential: where the next read must be          */
    uint64_t data_from;             /* no data in [.., data_from) from the last answer  */
    uint64_t data_known_at;         /* that answer was for this offset                  */
    struct k3_digest_stream *whole; /* owned */
    struct k3_sha256 *sha256;       /* borrowed, may be NULL: of sequential passes too  */
    struct k3_drop_behind behind;
    struct k3_read_ahead ahead;
    struct k3_direct direct; /* sequential: to `file`                            */
    struct k3_buffer window; /* sequential: bytes of the file from window_at on  */
    uint64_t window_at, window_bytes;
};

K3_MUST_CHECK enum k3_code k3_source_reader_init(struct k3_source_reader *reader,
                                                 const struct k3_shard_set *set,
                                                 const struct k3_observer *observer,
                                                 struct k3_error *err);
void k3_source_reader_done(struct k3_source_reader *reader);

/* A sequential pass over a shard, from its first byte. */
K3_MUST_CHECK enum k3_code k3_source_begin(struct k3_source_reader *reader, uint32_t shard,
                                           struct k3_error *err);
/* Ends it; every byte must have been read (asserted). Checks that the shard is still the file it
 * was. Errors: DAMAGED (it changed), IO. */
K3_MUST_CHECK enum k3_code k3_source_end(struct k3_source_reader *reader,
                                         struct k3_digest *out_digest, struct k3_error *err);

/* Random access: opens the shard if it is not the open one. */
K3_MUST_CHECK enum k3_code k3_source_seek(struct k3_source_reader *reader, uint32_t shard,
                                          struct k3_error *err);

/* Does the file system say that this range of the open shard is a hole, which reads as zeros? */
bool k3_source_is_hole(struct k3_source_reader *reader, uint64_t offset, uint64_t len);

/* Reads [offset, offset + len) of the open shard. *out_is_zero: all of it is zero, and then
 * out_bytes may have been left alone (a hole is not read). `digest` is updated either way; it may
 * be NULL. Reports progress in a sequential pass.
 * Errors: IO; INTERRUPTED, as the observer wishes. */
K3_MUST_CHECK enum k3_code k3_source_read(struct k3_source_reader *reader, uint64_t offset,
                                          uint8_t *out_bytes, uint64_t len,
                                          struct k3_digest_stream *digest, bool *out_is_zero,
                                          struct k3_error *err);

#endif
