/* SPDX-License-Identifier: Apache-2.0 */
#ifndef K3_FORMAT_SAFETENSORS_SOURCE_DTYPE_H
#define K3_FORMAT_SAFETENSORS_SOURCE_DTYPE_H

#include <stdbool.h>

/* Dtypes that safetensors knows. The model uses BF16, F32 and U8; the others have a name and a
 * size so that a stranger is reported as what it is.
 * Source   github.com/huggingface/safetensors, enum Dtype. */
enum k3_source_dtype {
    K3_SOURCE_BF16,
    K3_SOURCE_F32,
    K3_SOURCE_U8,
    K3_SOURCE_BOOL,
    K3_SOURCE_I8,
    K3_SOURCE_I16,
    K3_SOURCE_I32,
    K3_SOURCE_I64,
    K3_SOURCE_U16,
    K3_SOURCE_U32,
    K3_SOURCE_U64,
    K3_SOURCE_F16,
    K3_SOURCE_F64,
    K3_SOURCE_C64,
    K3_SOURCE_F4,
    K3_SOURCE_F6_E2M3,
    K3_SOURCE_F6_E3M2,
    K3_SOURCE_F8_E4M3,
    K3_SOURCE_F8_E5M2,
    K3_SOURCE_F8_E8M0,
    K3_SOURCE_DTYPES /* how many */
};

/* "BF16", "F32", ...: the format's own name. */
const char *k3_source_dtype_name(enum k3_source_dtype dtype);

/* Bits of one item: 4 or 6 for the packed ones, else a multiple of 8. */
unsigned k3_source_dtype_bits(enum k3_source_dtype dtype);

/* False when `name` is none of them; the case counts. */
bool k3_source_dtype_find(const char *name, enum k3_source_dtype *out_dtype);

#endif
