/* SPDX-License-Identifier: Apache-2.0 */
#include "packer/sparse_write.h"
#include "tests/support/suite_main.h"
#include "tests/support/temp_folder.h"
#include "tests/unit/format/pack/pack_fixture.h"

#include <stdlib.h>
#include <string.h>

#define FILE_BYTES ((size_t)1 << 20)

static struct k3_file file;
static char *path;

static void setup(void)
{
    struct k3_error err;
    path = k3_path_join(k3_temp_folder_make(), "file");
    ck_assert_ok(k3_file_open_write(path, &file, &err));
    ck_assert_ok(k3_file_truncate(&file, FILE_BYTES, &err));
}

static void teardown(void)
{
    k3_file_close(&file);
    *strrchr(path, '/') = '\0';
    k3_temp_folder_remove(path);
    free(path);
}

/* Random runs of data and zeros at random offsets: what was to be written is what is read. */
START_TEST(test_same_bytes)
{
    struct k3_error err;
    uint64_t seed = (uint64_t)_i * 77 + 1;
    uint8_t *bytes = calloc(1, FILE_BYTES), *back = malloc(FILE_BYTES);
    ck_assert(bytes && back);
    const size_t offset = _i == 0 ? 0 : k3_test_random(&seed) % 20000;
    const size_t len = _i == 1 ? 0 : k3_test_random(&seed) % (FILE_BYTES - offset);
    for (size_t at = 0; at < len;) {
        size_t run = 1 + k3_test_random(&seed) % 30000;
        run = run < len - at ? run : len - at;
        if (k3_test_random(&seed) % 2) {
            k3_test_random_fill(&seed, bytes + offset + at, run);
        }
        at += run;
    }
    ck_assert_ok(k3_write_sparse(&file, offset, bytes + offset, len, &err));
    ck_assert_ok(k3_file_read(&file, 0, back, FILE_BYTES, &err));
    ck_assert_int_eq(memcmp(bytes, back, FILE_BYTES), 0);
    free(bytes);
    free(back);
}
END_TEST

START_TEST(test_holes_stay)
{
    struct k3_error err;
    uint8_t *bytes = calloc(1, FILE_BYTES);
    ck_assert_ptr_nonnull(bytes);
    bytes[300000] = bytes[700000] = 1;
    ck_assert_ok(k3_write_sparse(&file, 0, bytes, FILE_BYTES, &err));
    uint64_t allocated = 0;
    ck_assert_ok(k3_file_allocated(&file, &allocated, &err));
    ck_assert_uint_le(allocated, 65536);
    free(bytes);
}
END_TEST

Suite *k3_suite(void)
{
    Suite *suite = suite_create("sparse_write");
    TCase *writing = tcase_create("writing");
    tcase_add_checked_fixture(writing, setup, teardown);
    tcase_add_loop_test(writing, test_same_bytes, 0, 40);
    tcase_add_test(writing, test_holes_stay);
    suite_add_tcase(suite, writing);
    return suite;
}
