/* SPDX-License-Identifier: Apache-2.0 */
#ifndef K3_FORMAT_SAFETENSORS_SHARD_HEADER_H
#define K3_FORMAT_SAFETENSORS_SHARD_HEADER_H

#include <stddef.h>
#include <stdint.h>

#include "format/base/error.h"
#include "format/base/file.h"
#include "format/safetensors/tensor_entry.h"

/* The header of one safetensors file: `u64 little-endian H`, H bytes of JSON, then data.
 *
 * Refused, each with the file offset of the fact: a length beyond the file or the cap; a first byte
 * other than '{'; bytes other than spaces after the object; text that is not JSON; a name twice, or
 * with control characters; an unknown dtype; an entry with a key too many or too few; a dimension
 * or offset that is negative or not an integer; a product that overflows; end - begin other than
 * product * item size; tensors that overlap or leave a gap; data that end before or after the last
 * tensor, to the byte (what the format's own reader refuses too).
 *
 * Mistake  believing the file size: a shard cut in its data reads on as zeros when mapped.
 * Source   github.com/huggingface/safetensors, "Format"; its cap on headers. */
#define K3_SHARD_HEADER_MAX   100000000U /* bytes of JSON                               */
#define K3_SHARD_ENTRY_MAX    8192U      /* bytes of JSON of one name, or of one entry  */
#define K3_SHARD_METADATA_MAX 4194304U   /* bytes of JSON of __metadata__               */
#define K3_SHARD_PREFIX_BYTES 8U

struct k3_shard_header {
    struct k3_tensor_entry *entries; /* in file order: by begin, then end     */
    size_t entry_count;
    char *names;         /* what the entries' names point into    */
    uint64_t data_start; /* file offset of the data: 8 + H        */
    uint64_t data_bytes; /* the last end; the rest of the file    */
};

void k3_shard_header_done(struct k3_shard_header *header);

/* `bytes` is the JSON alone, header_len = H; data_bytes = file size - 8 - H. Offsets in errors are
 * file offsets, the JSON starting at 8. Keeps nothing of `bytes`. *out_header is the caller's:
 * k3_shard_header_done. Errors: MALFORMED, NO_MEMORY. */
K3_MUST_CHECK enum k3_code k3_shard_header_parse(const uint8_t *bytes, size_t header_len,
                                                 uint64_t data_bytes,
                                                 struct k3_shard_header *out_header,
                                                 struct k3_error *err);

/* Reads prefix and JSON of an open file, then the above. Says what else the file is where that is
 * plain: empty, a git-lfs pointer, a web page, another weight format. Errors: also IO. */
K3_MUST_CHECK enum k3_code k3_shard_header_read(const struct k3_file *file,
                                                struct k3_shard_header *out_header,
                                                struct k3_error *err);

#endif
