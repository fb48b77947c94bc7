/* SPDX-License-Identifier: Apache-2.0 */
/* Every file safetensors_* and config_*, and every folder checkpoint_*, of tests/bad must be
 * refused. Their names say why. */
#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include "format/base/file.h"
#include "format/safetensors/config_json.h"
#include "format/safetensors/shard_set.h"
#include "tests/support/suite_main.h"

#define BAD K3_TESTS_DIR "/bad"

static struct k3_error err;

static void refuse_shard(const char *path)
{
    struct k3_file file = K3_FILE_CLOSED;
    struct k3_shard_header header;
    ck_assert_ok(k3_file_open_read(path, &file, &err));
    ck_assert_msg(k3_shard_header_read(&file, &header, &err) == K3_ERR_MALFORMED, "%s", path);
    k3_file_close(&file);
}

static void refuse_config(const char *path)
{
    uint8_t *bytes = NULL;
    size_t len = 0;
    struct k3_model_spec spec;
    struct k3_problems problems = {0};
    ck_assert_ok(k3_file_read_all(path, K3_CONFIG_MAX, &bytes, &len, &err));
    const enum k3_code code = k3_config_parse(bytes, len, &spec, &problems, &err);
    ck_assert_msg(code == K3_ERR_MALFORMED || code == K3_ERR_UNSUPPORTED, "%s: %s", path,
                  k3_code_name(code));
    k3_problems_done(&problems);
    free(bytes);
}

static void refuse_checkpoint(const char *path)
{
    struct k3_shard_set set;
    struct k3_problems problems = {0};
    const enum k3_code code = k3_shard_set_open(path, &set, &problems, &err);
    ck_assert_msg(code == K3_ERR_MALFORMED || code == K3_ERR_NO_INPUT, "%s: %s", path,
                  k3_code_name(code));
    ck_assert_uint_gt(problems.total, 0);
    k3_problems_done(&problems);
}

static const struct {
    const char *prefix;
    void (*refuse)(const char *path);
    size_t at_least; /* that many such files are committed */
} kinds[] = {
    {"safetensors_", refuse_shard, 10},
    {"config_", refuse_config, 8},
    {"checkpoint_", refuse_checkpoint, 5},
};

START_TEST(all_are_refused)
{
    DIR *dir = opendir(BAD);
    ck_assert_ptr_nonnull(dir);
    size_t count = 0;
    for (const struct dirent *entry = readdir(dir); entry; entry = readdir(dir)) {
        if (strncmp(entry->d_name, kinds[_i].prefix, strlen(kinds[_i].prefix)) == 0) {
            char *path = k3_path_join(BAD, entry->d_name);
            ck_assert_ptr_nonnull(path);
            kinds[_i].refuse(path);
            free(path);
            count++;
        }
    }
    closedir(dir);
    ck_assert_uint_ge(count, kinds[_i].at_least);
}
END_TEST

Suite *k3_suite(void)
{
    Suite *suite = suite_create("bad_files");
    TCase *refused = tcase_create("refused");
    tcase_add_loop_test(refused, all_are_refused, 0, sizeof kinds / sizeof kinds[0]);
    suite_add_tcase(suite, refused);
    return suite;
}
