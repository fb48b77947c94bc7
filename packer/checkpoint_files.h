/* SPDX-License-Identifier: Apache-2.0 */
#ifndef K3_PACKER_CHECKPOINT_FILES_H
#define K3_PACKER_CHECKPOINT_FILES_H

#include <stdbool.h>

#include "format/base/problems.h"
#include "format/pack/file_bundle.h"
#include "format/pack/model_spec.h"

/* Reads the small files of a checkpoint that a pack carries, and what config.json says. The
 * tokenizer must be readable and have as many ids as the config's vocabulary. What is wrong is
 * added to `problems`; *out_spec_is_valid says whether the config could be used all the same.
 * *out_files is the caller's also then: k3_file_bundle_done. Errors: NO_MEMORY. */
K3_MUST_CHECK enum k3_code k3_checkpoint_files_read(
    const char *checkpoint, struct k3_file_bundle *out_files, struct k3_model_spec *out_spec,
    bool *out_spec_is_valid, struct k3_problems *problems, struct k3_error *err);

#endif
