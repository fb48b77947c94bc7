/* SPDX-License-Identifier: Apache-2.0 */
#ifndef K3_PACKER_EXPORT_H
#define K3_PACKER_EXPORT_H

#include "format/base/progress.h"
#include "format/pack/pack_reader.h"

/* The way out: the text model's tensors back as safetensors, bit for bit, in shards of the recorded
 * names. Inside a shard tensors are ordered as in the release (F32, BF16, U8; by name), headers are
 * padded with spaces to a multiple of 8. Config and tokenizer files and the tensor index too. Every
 * tensor is compared with the digest of what was packed. Each file appears under its name when it
 * is complete and durable, the tensor index last. */
struct k3_export_report {
    uint64_t shards, tensors, bytes; /* files written, tensors in them, their sizes */
};

/* `folder` must be absent or empty. Errors: CANT_CREATE, DAMAGED (a tensor is not what was packed),
 * IO, INTERRUPTED, NO_MEMORY, and those of k3_pack_open. */
K3_MUST_CHECK enum k3_code k3_export(const char *pack_folder, const char *folder,
                                     const struct k3_observer *observer,
                                     struct k3_export_report *out_report, struct k3_error *err);

#endif
