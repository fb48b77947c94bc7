/* SPDX-License-Identifier: Apache-2.0 */
#ifndef K3_PACKER_HOLE_H
#define K3_PACKER_HOLE_H

#include "format/base/file.h"

/* The first byte at or behind `offset` that the file system holds data for; the file's size where
 * there is none, `offset` itself where the file system cannot say. */
uint64_t k3_file_next_data(const struct k3_file *file, uint64_t offset);

/* The first hole at or behind `offset`, which lies in data; the file's size where there is none. */
uint64_t k3_file_next_hole(const struct k3_file *file, uint64_t offset);

#endif
