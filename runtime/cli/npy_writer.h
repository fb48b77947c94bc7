/* SPDX-License-Identifier: Apache-2.0 */
#ifndef K3_RUNTIME_CLI_NPY_WRITER_H
#define K3_RUNTIME_CLI_NPY_WRITER_H

#include "format/base/file.h"

/* An .npy file (NumPy format 1.0) of float32 rows whose number is not known beforehand: the header
 * has room for any count and is written anew at the end. */
struct k3_npy_writer {
    struct k3_file file;
    uint64_t rows, row_floats;
};

/* Replaces the file. Errors: CANT_CREATE, IO, NO_MEMORY. */
K3_MUST_CHECK enum k3_code k3_npy_open(const char *path, uint64_t row_floats,
                                       struct k3_npy_writer *out_writer, struct k3_error *err);
K3_MUST_CHECK enum k3_code k3_npy_append(struct k3_npy_writer *writer, const float *row,
                                         struct k3_error *err);
/* Writes the final header and closes, also after an error: what was appended stays readable. */
K3_MUST_CHECK enum k3_code k3_npy_close(struct k3_npy_writer *writer, struct k3_error *err);

#endif
