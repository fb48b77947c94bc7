/* SPDX-License-Identifier: Apache-2.0 */
#ifndef K3_FORMAT_BASE_MAPPING_H
#define K3_FORMAT_BASE_MAPPING_H

#include <stdint.h>

#include "format/base/error.h"
#include "format/base/file.h"

/* A read-only shared mapping of a whole file: the only mmap of files in the tree.
 * `bytes` is valid until k3_mapping_unmap; views into it die with it. The file may be closed. */
struct k3_mapping {
    const uint8_t *bytes;
    uint64_t len;
};

/* Refuses an empty file (MALFORMED). Never populates: pages come when they are touched. */
K3_MUST_CHECK enum k3_code k3_mapping_map(const struct k3_file *file,
                                          struct k3_mapping *out_mapping, struct k3_error *err);

void k3_mapping_unmap(struct k3_mapping *mapping);

#endif
