/* SPDX-License-Identifier: Apache-2.0 */
#include "format/safetensors/source_dtype.h"

#include <string.h>

#include "format/base/assert.h"

static const struct {
    const char *name;
    unsigned bits;
} dtypes[K3_SOURCE_DTYPES] = {
    [K3_SOURCE_BF16] = {"BF16", 16},      [K3_SOURCE_F32] = {"F32", 32},
    [K3_SOURCE_U8] = {"U8", 8},           [K3_SOURCE_BOOL] = {"BOOL", 8},
    [K3_SOURCE_I8] = {"I8", 8},           [K3_SOURCE_I16] = {"I16", 16},
    [K3_SOURCE_I32] = {"I32", 32},        [K3_SOURCE_I64] = {"I64", 64},
    [K3_SOURCE_U16] = {"U16", 16},        [K3_SOURCE_U32] = {"U32", 32},
    [K3_SOURCE_U64] = {"U64", 64},        [K3_SOURCE_F16] = {"F16", 16},
    [K3_SOURCE_F64] = {"F64", 64},        [K3_SOURCE_C64] = {"C64", 64},
    [K3_SOURCE_F4] = {"F4", 4},           [K3_SOURCE_F6_E2M3] = {"F6_E2M3", 6},
    [K3_SOURCE_F6_E3M2] = {"F6_E3M2", 6}, [K3_SOURCE_F8_E4M3] = {"F8_E4M3", 8},
    [K3_SOURCE_F8_E5M2] = {"F8_E5M2", 8}, [K3_SOURCE_F8_E8M0] = {"F8_E8M0", 8},
};

const char *k3_source_dtype_name(enum k3_source_dtype dtype)
{
    k3_assert((unsigned)dtype < K3_SOURCE_DTYPES);
    return dtypes[dtype].name;
}

unsigned k3_source_dtype_bits(enum k3_source_dtype dtype)
{
    k3_assert((unsigned)dtype < K3_SOURCE_DTYPES);
    return dtypes[dtype].bits;
}

bool k3_source_dtype_find(const char *name, enum k3_source_dtype *out_dtype)
{
    for (unsigned i = 0; i < K3_SOURCE_DTYPES; i++) {
        if (strcmp(name, dtypes[i].name) == 0) {
            *out_dtype = (enum k3_source_dtype)i;
            return true;
        }
    }
    return false;
}
