/* SPDX-License-Identifier: Apache-2.0 */
#define _XOPEN_SOURCE 700 /* nftw */
#include "tests/support/temp_folder.h"

#include <check.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static char path[512];

const char *k3_temp_folder_make(void)
{
    const char *base = getenv("TMPDIR");
    snprintf(path, sizeof path, "%s/k3test.XXXXXX", base ? base : "/tmp");
    ck_assert_ptr_nonnull(mkdtemp(path));
    return path;
}

static int remove_one(const char *name, const struct stat *st, int type, struct FTW *where)
{
    (void)st;
    (void)type;
    (void)where;
    return remove(name);
}

void k3_temp_folder_remove(const char *folder)
{
    nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

void k3_temp_file_write(const char *folder, const char *name, const void *bytes, size_t len)
{
    char file[1024];
    snprintf(file, sizeof file, "%s/%s", folder, name);
    FILE *stream = fopen(file, "wb");
    ck_assert_ptr_nonnull(stream);
    ck_assert_uint_eq(fwrite(bytes, 1, len, stream), len);
    ck_assert_int_eq(fclose(stream), 0);
}
