/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a fuzz target over every file of the corpus folders named on the command line, and over each
 * file cut at every length up to 256 and with each of its first 256 bytes flipped, so that ordinary
 * test runs exercise the target without a fuzzer. Fails when there is no corpus file at all. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/base/file.h"
#include "tests/fuzz/fuzz.h"

#define REPLAY_MAX  ((size_t)64 << 20)
#define MUTATED_MAX 256

static void run_copy(const uint8_t *bytes, size_t len, size_t flip_at)
{
    /* A copy of exactly this length: a sanitizer sees any byte read past its end. */
    uint8_t *copy = malloc(len ? len : 1);
    if (!copy) {
        abort();
    }
    memcpy(copy, bytes, len);
    if (flip_at < len) {
        copy[flip_at] ^= 0x41;
    }
    LLVMFuzzerTestOneInput(copy, len);
    free(copy);
}

static int replay_file(const char *path)
{
    struct k3_error err = {0};
    uint8_t *bytes = NULL;
    size_t len = 0;
    if (k3_file_read_all(path, REPLAY_MAX, &bytes, &len, &err) != K3_OK) {
        fprintf(stderr, "%s\n", err.message);
        return 1;
    }
    run_copy(bytes, len, len);
    for (size_t i = 0; i < len && i < MUTATED_MAX; i++) {
        run_copy(bytes, i, i);
        run_copy(bytes, len, i);
        run_copy(bytes, len, len - 1 - i);
    }
    free(bytes);
    return 0;
}

static int replay_folder(const char *folder, size_t *count)
{
    DIR *dir = opendir(folder);
    if (!dir) {
        perror(folder);
        return 1;
    }
    int failed = 0;
    for (const struct dirent *entry = readdir(dir); entry; entry = readdir(dir)) {
        if (entry->d_name[0] == '.') {
            continue;
        }
        char *path = k3_path_join(folder, entry->d_name);
        failed |= !path || replay_file(path);
        free(path);
        ++*count;
    }
    closedir(dir);
    return failed;
}

int main(int argc, char **argv)
{
    size_t count = 0;
    int failed = 0;
    for (int i = 1; i < argc; i++) {
        failed |= replay_folder(argv[i], &count);
    }
    printf("%zu corpus files replayed\n", count);
    return failed || count == 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
