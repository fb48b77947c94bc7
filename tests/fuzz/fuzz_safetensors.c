/* SPDX-License-Identifier: Apache-2.0 */
/* A shard's header: 8 bytes of data size, then the JSON. What is accepted must be what the header
 * file promises: sorted, without gap or overlap, covering the data. */
#include "format/base/assert.h"
#include "format/base/bytes.h"
#include "format/safetensors/shard_header.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    if (len < 8) {
        return 0;
    }
    const uint64_t data_bytes = k3_le64_get(bytes);
    struct k3_shard_header header;
    if (k3_shard_header_parse(bytes + 8, len - 8, data_bytes, &header, NULL) != K3_OK) {
        return 0;
    }
    uint64_t end = 0;
    for (size_t i = 0; i < header.entry_count; i++) {
        k3_assert(header.entries[i].begin == end);
        k3_assert(header.entries[i].end >= end);
        k3_assert(header.entries[i].dims <= K3_TENSOR_DIMS_MAX);
        k3_assert(header.entries[i].name_at >= 8 && header.entries[i].name_at < len);
        end = header.entries[i].end;
    }
    k3_assert(end == data_bytes && end == header.data_bytes);
    k3_shard_header_done(&header);
    return 0;
}
