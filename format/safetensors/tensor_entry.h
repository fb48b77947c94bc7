/* SPDX-License-Identifier: Apache-2.0 */
#ifndef K3_FORMAT_SAFETENSORS_TENSOR_ENTRY_H
#define K3_FORMAT_SAFETENSORS_TENSOR_ENTRY_H

#include <jansson.h>
#include <stdint.h>

#include "format/base/error.h"
#include "format/safetensors/source_dtype.h"

/* One tensor as a shard's header describes it. */
#define K3_TENSOR_DIMS_MAX 8

struct k3_tensor_entry {
    const char *name;                   /* owned by the header; UTF-8, no control characters    */
    uint64_t begin;                     /* first byte, from the start of the data section       */
    uint64_t end;                       /* one past the last; end - begin is the exact size     */
    uint64_t name_at;                   /* file offset of the quoted name, for messages         */
    uint64_t shape[K3_TENSOR_DIMS_MAX]; /* [0] varies slowest                 */
    uint8_t dims;                       /* 0 is a scalar: one item                              */
    uint8_t dtype;                      /* enum k3_source_dtype                                 */
};

/* Fills all but name and name_at, which must be set, from {"dtype","shape","data_offsets"}. Refuses
 * other keys; numbers that are negative or not integers; a size that overflows, is no whole number
 * of bytes, or differs from the offsets. Errors: MALFORMED at name_at. */
K3_MUST_CHECK enum k3_code k3_tensor_entry_read(const json_t *value, struct k3_tensor_entry *entry,
                                                struct k3_error *err);

#endif
