/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/cli/npy_writer.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "format/base/bytes.h"

/* Magic, version, length, dictionary, spaces, newline: a multiple of 64, as the format asks. */
enum { HEADER_BYTES = 128, PREFIX_BYTES = 10 };

static enum k3_code write_header(const struct k3_npy_writer *writer, struct k3_error *err)
{
    char header[HEADER_BYTES + 1];
    memcpy(header, "\x93NUMPY\x01\x00", 8);
    k3_le16_put((uint8_t *)header + 8, HEADER_BYTES - PREFIX_BYTES);
    const int used =
        snprintf(header + PREFIX_BYTES, sizeof header - PREFIX_BYTES,
                 "{'descr': '<f4', 'fortran_order': False, 'shape': (%" PRIu64 ", %" PRIu64 "), }",
                 writer->rows, writer->row_floats);
    memset(header + PREFIX_BYTES + used, ' ', (size_t)(HEADER_BYTES - PREFIX_BYTES - used));
    header[HEADER_BYTES - 1] = '\n';
    return k3_file_write(&writer->file, 0, header, HEADER_BYTES, err);
}

enum k3_code k3_npy_open(const char *path, uint64_t row_floats, struct k3_npy_writer *out_writer,
                         struct k3_error *err)
{
    struct k3_npy_writer writer = {.row_floats = row_floats};
    enum k3_code code = k3_file_open_write(path, &writer.file, err);
    if (code != K3_OK) {
        return code;
    }
    code = k3_file_truncate(&writer.file, 0, err);
    if (code == K3_OK) {
        code = write_header(&writer, err);
    }
    if (code != K3_OK) {
        k3_file_close(&writer.file);
        return code;
    }
    *out_writer = writer;
    return K3_OK;
}

enum k3_code k3_npy_append(struct k3_npy_writer *writer, const float *row, struct k3_error *err)
{
    const uint64_t row_bytes = writer->row_floats * sizeof(float);
    const enum k3_code code = k3_file_write(&writer->file, HEADER_BYTES + writer->rows * row_bytes,
                                            row, (size_t)row_bytes, err);
    if (code == K3_OK) {
        writer->rows++;
    }
    return code;
}

enum k3_code k3_npy_close(struct k3_npy_writer *writer, struct k3_error *err)
{
    const enum k3_code code = write_header(writer, err);
    k3_file_close(&writer->file);
    return code;
}
