/* SPDX-License-Identifier: Apache-2.0 */
#ifndef K3_FORMAT_SAFETENSORS_CHECKPOINT_FOLDER_H
#define K3_FORMAT_SAFETENSORS_CHECKPOINT_FOLDER_H

#include <stddef.h>

#include "format/base/error.h"
#include "format/base/problems.h"

/* The names in a checkpoint folder that matter, sorted as bytes. Hidden files are not shards (a Mac
 * leaves '._model-….safetensors' behind). */
struct k3_checkpoint_folder {
    char **shard_names; /* *.safetensors; owned */
    size_t shard_count;
    char **leftover_names; /* *.safetensors.….part and the like: unfinished downloads; owned */
    size_t leftover_count;
    size_t hub_leftover_count; /* *.incomplete in .cache/huggingface/download */
};

/* Errors: NO_INPUT (no such folder, or it is none), IO, NO_MEMORY, MALFORMED (above
 * K3_SHARDS_MAX names). */
K3_MUST_CHECK enum k3_code k3_checkpoint_folder_list(const char *path,
                                                     struct k3_checkpoint_folder *out_folder,
                                                     struct k3_error *err);

void k3_checkpoint_folder_done(struct k3_checkpoint_folder *folder);

/* Each unfinished download, as a problem. */
void k3_checkpoint_folder_report_leftovers(const struct k3_checkpoint_folder *folder,
                                           struct k3_problems *problems);

/* Shards named like model-00001-of-000096.safetensors: each number that is missing, and totals that
 * contradict each other (two checkpoints in one folder), as problems. */
void k3_checkpoint_folder_report_gaps(const struct k3_checkpoint_folder *folder,
                                      struct k3_problems *problems);

/* How many lines one kind of problem may take before "and N more". */
#define K3_CHECKPOINT_LINES_MAX 100
#define K3_SHARDS_MAX           65536U

#endif
