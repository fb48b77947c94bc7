/* SPDX-License-Identifier: Apache-2.0 */
#include "format/safetensors/tensor_entry.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>

#include "format/base/ckd.h"

static enum k3_code fail_entry(struct k3_error *err, const struct k3_tensor_entry *entry,
                               const char *what)
{
    return k3_fail(err, K3_ERR_MALFORMED, entry->name_at,
                   "tensor '%s' (header byte %" PRIu64 "): %s", entry->name, entry->name_at, what);
}

/* A whole number from 0. Offsets beyond 63 bits never get here: jansson refuses them. */
static bool get_u64(const json_t *value, uint64_t *out)
{
    if (!json_is_integer(value) || json_integer_value(value) < 0) {
        return false;
    }
    *out = (uint64_t)json_integer_value(value);
    return true;
}

static enum k3_code read_dtype(const json_t *value, struct k3_tensor_entry *entry,
                               struct k3_error *err)
{
    enum k3_source_dtype dtype;
    if (!json_is_string(value)) {
        return fail_entry(err, entry, "dtype is missing or not a string");
    }
    if (!k3_source_dtype_find(json_string_value(value), &dtype)) {
        return k3_fail(err, K3_ERR_MALFORMED, entry->name_at,
                       "tensor '%s' (header byte %" PRIu64 "): unknown dtype '%.32s'", entry->name,
                       entry->name_at, json_string_value(value));
    }
    entry->dtype = (uint8_t)dtype;
    return K3_OK;
}

static enum k3_code read_shape(const json_t *value, struct k3_tensor_entry *entry,
                               struct k3_error *err)
{
    if (!json_is_array(value)) {
        return fail_entry(err, entry, "shape is missing or not a list");
    }
    const size_t dims = json_array_size(value);
    if (dims > K3_TENSOR_DIMS_MAX) {
        return fail_entry(err, entry, "more than 8 dimensions");
    }
    for (size_t i = 0; i < dims; i++) {
        if (!get_u64(json_array_get(value, i), &entry->shape[i])) {
            return fail_entry(err, entry, "a dimension is not a whole number from 0");
        }
    }
    entry->dims = (uint8_t)dims;
    return K3_OK;
}

static enum k3_code read_offsets(const json_t *value, struct k3_tensor_entry *entry,
                                 struct k3_error *err)
{
    if (!json_is_array(value) || json_array_size(value) != 2 ||
        !get_u64(json_array_get(value, 0), &entry->begin) ||
        !get_u64(json_array_get(value, 1), &entry->end)) {
        return fail_entry(err, entry, "data_offsets are not two whole numbers from 0");
    }
    if (entry->begin > entry->end) {
        return fail_entry(err, entry, "data_offsets end before they begin");
    }
    return K3_OK;
}

/* product(shape) * item size, in bytes; false when it overflows or is no whole number of bytes. */
static bool shape_bytes(const struct k3_tensor_entry *entry, uint64_t *out_bytes)
{
    uint64_t bits = k3_source_dtype_bits((enum k3_source_dtype)entry->dtype);
    for (size_t i = 0; i < entry->dims; i++) {
        if (ckd_mul(&bits, bits, entry->shape[i])) {
            return false;
        }
    }
    *out_bytes = bits / 8;
    return bits % 8 == 0;
}

enum k3_code k3_tensor_entry_read(const json_t *value, struct k3_tensor_entry *entry,
                                  struct k3_error *err)
{
    /* Exactly three keys: a fourth might say how to read the bytes. */
    if (!json_is_object(value) || json_object_size(value) != 3) {
        return fail_entry(err, entry, "needs exactly dtype, shape and data_offsets");
    }
    enum k3_code code = read_dtype(json_object_get(value, "dtype"), entry, err);
    if (code == K3_OK) {
        code = read_shape(json_object_get(value, "shape"), entry, err);
    }
    if (code == K3_OK) {
        code = read_offsets(json_object_get(value, "data_offsets"), entry, err);
    }
    if (code != K3_OK) {
        return code;
    }
    uint64_t bytes;
    if (!shape_bytes(entry, &bytes)) {
        return fail_entry(err, entry, "shape and dtype give no possible size");
    }
    if (bytes != entry->end - entry->begin) {
        return k3_fail(err, K3_ERR_MALFORMED, entry->name_at,
                       "tensor '%s' (header byte %" PRIu64 "): shape and dtype need %" PRIu64
                       " bytes, data_offsets give %" PRIu64,
                       entry->name, entry->name_at, bytes, entry->end - entry->begin);
    }
    return K3_OK;
}
