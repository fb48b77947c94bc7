/* SPDX-License-Identifier: Apache-2.0 */
#ifndef K3_TESTS_SUPPORT_TEMP_FOLDER_H
#define K3_TESTS_SUPPORT_TEMP_FOLDER_H

#include <stddef.h>

/* A fresh folder under $TMPDIR (or /tmp); the returned path is static, valid until the next call.
 */
const char *k3_temp_folder_make(void);

/* Removes a folder and everything in it. */
void k3_temp_folder_remove(const char *folder);

/* Writes a whole file; fails the test when it cannot. */
void k3_temp_file_write(const char *folder, const char *name, const void *bytes, size_t len);

#endif
