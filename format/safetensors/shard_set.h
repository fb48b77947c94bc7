/* SPDX-License-Identifier: Apache-2.0 */
#ifndef K3_FORMAT_SAFETENSORS_SHARD_SET_H
#define K3_FORMAT_SAFETENSORS_SHARD_SET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "format/base/error.h"
#include "format/base/file.h"
#include "format/base/problems.h"
#include "format/safetensors/checkpoint_folder.h"
#include "format/safetensors/name_table.h"
#include "format/safetensors/shard_header.h"

/* A checkpoint folder: its *.safetensors files (hidden ones left out), in the order of their names
 * as bytes, and one table of all their tensors. No file stays open. At the released scale (96
 * shards, 497,220 tensors) a set holds about 110 MB; opening takes 170 MB, the index included. */
#define K3_SHARD_INDEX_NAME "model.safetensors.index.json"
#define K3_SHARD_INDEX_MAX  (256U << 20) /* bytes; the released one has 60 MB */

struct k3_shard {
    char *name;                    /* in the folder; owned                                        */
    char *path;                    /* folder/name; owned                                          */
    uint64_t file_bytes;           /* header.data_start + header.data_bytes, exactly              */
    int64_t modified_ns;           /* of the file, since 1970: with name and size, its identity   */
    bool is_read;                  /* false: a problem was reported, header is empty              */
    size_t first_tensor;           /* index of entries[0] among all tensors of the set            */
    struct k3_shard_header header; /* entries in file order                             */
};

struct k3_shard_set {
    char *folder; /* owned */
    struct k3_shard *shards;
    size_t shard_count;
    size_t unread_count;   /* shards with !is_read; 0 after k3_shard_set_open           */
    size_t tensor_count;   /* over all shards                                           */
    uint64_t tensor_bytes; /* over all shards                                           */
    bool has_index;        /* model.safetensors.index.json was there                    */
    struct k3_name_table table;
};

/* Where a tensor is. Borrows from the set. */
struct k3_tensor_place {
    size_t shard_index;
    const struct k3_shard *shard;
    const struct k3_tensor_entry *entry; /* name, dtype, shape                          */
    uint64_t file_offset;                /* of its first byte, from the file's start    */
    uint64_t bytes;
};

/* Reads every header and says everything that is wrong, as lines in `problems`:
 *
 *   - a shard that cannot be read (k3_shard_header_read's reasons), is empty, a folder, a dangling
 *     link, or whose download left a .incomplete, .part, .aria2, ... beside it;
 *   - a tensor in two shards, both named;
 *   - with an index: files it names that are absent; tensors that are not where it says; tensors
 *     and shards it does not name; a total_size that is not the sum;
 *   - without one: numbers missing from model-00001-of-000096.safetensors and its like.
 *
 * Returns K3_OK when the folder could be examined, problems or not: *out_set then holds what could
 * be read, so that a census can go on and report its own findings in the same list; such a set is
 * for reporting only. *out_set is the caller's: k3_shard_set_done.
 * Errors: NO_INPUT (no such folder), NO_MEMORY, IO (the folder itself). */
K3_MUST_CHECK enum k3_code k3_shard_set_scan(const char *folder, struct k3_shard_set *out_set,
                                             struct k3_problems *problems, struct k3_error *err);

/* The same, and fails with k3_problems_result when the scan adds any problem: a set that was opened
 * is sound. */
K3_MUST_CHECK enum k3_code k3_shard_set_open(const char *folder, struct k3_shard_set *out_set,
                                             struct k3_problems *problems, struct k3_error *err);

void k3_shard_set_done(struct k3_shard_set *set);

/* False when no shard has the tensor. */
bool k3_shard_set_find(const struct k3_shard_set *set, const char *name,
                       struct k3_tensor_place *out_place);

/* The place of entry `entry_index` of shard `shard_index`, both in range (asserted). */
struct k3_tensor_place k3_shard_set_place(const struct k3_shard_set *set, size_t shard_index,
                                          size_t entry_index);

/* Opens a shard for reading and checks that it still has the size it had. *out_file is the
 * caller's. Errors: NO_INPUT, IO, MALFORMED (have/need). */
K3_MUST_CHECK enum k3_code k3_shard_open(const struct k3_shard *shard, struct k3_file *out_file,
                                         struct k3_error *err);

#endif
