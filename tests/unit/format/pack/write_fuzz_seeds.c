/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the seed corpora of fuzz_index and fuzz_pack_sections: the index of the toy model, and its
 * sections one by one, raw. Run: pack_write_fuzz_seeds tests/fuzz/corpus */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/base/bytes.h"
#include "tests/unit/format/pack/pack_fixture.h"

static int write_file(const char *folder, const char *name, const uint8_t *bytes, size_t len)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "wb");
    if (!file) {
        perror(path);
        return 1;
    }
    const size_t put = fwrite(bytes, 1, len, file);
    return (put != len) | (fclose(file) != 0);
}

/* "kind byte, raw bytes" */
static int write_section(const char *folder, const struct k3_pack_parts *parts, unsigned kind)
{
    size_t len = 0;
    uint8_t *raw = k3_parts_section(parts, (enum k3_section_kind)kind, &len);
    uint8_t *seed = malloc(len + 1);
    if (!seed) {
        abort();
    }
    seed[0] = (uint8_t)kind;
    memcpy(seed + 1, raw, len);
    const int failed =
        write_file(folder, k3_section_name((enum k3_section_kind)kind), seed, len + 1);
    free(seed);
    free(raw);
    return failed;
}

/* Kind byte 0: sections 1..6, each with its length in front. */
static int write_all_tables(const char *folder, const struct k3_pack_parts *parts)
{
    uint8_t *seed = malloc(1 << 20);
    if (!seed) {
        abort();
    }
    size_t at = 1;
    seed[0] = 0;
    for (unsigned kind = 1; kind <= 6; kind++) {
        size_t len = 0;
        uint8_t *raw = k3_parts_section(parts, (enum k3_section_kind)kind, &len);
        k3_le32_put(seed + at, (uint32_t)len);
        memcpy(seed + at + 4, raw, len);
        at += 4 + len;
        free(raw);
    }
    const int failed = write_file(folder, "all_tables", seed, at);
    free(seed);
    return failed;
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: pack_write_fuzz_seeds CORPUS_DIR\n");
        return EXIT_FAILURE;
    }
    struct k3_error err = {0};
    char folder[512];
    snprintf(folder, sizeof folder, "%s/index", argv[1]);
    if (k3_folder_make(folder, &err) != K3_OK) {
        fprintf(stderr, "%s\n", err.message);
        return EXIT_FAILURE;
    }
    size_t len = 0;
    uint8_t *index = k3_toy_index_make(&len);
    int failed = write_file(folder, "toy", index, len);
    free(index);

    snprintf(folder, sizeof folder, "%s/pack_sections", argv[1]);
    if (k3_folder_make(folder, &err) != K3_OK) {
        fprintf(stderr, "%s\n", err.message);
        return EXIT_FAILURE;
    }
    const struct k3_model_spec spec = k3_toy_spec();
    struct k3_pack_parts parts;
    k3_pack_parts_init(&parts, &spec, spec.kda_heads, 2, 1);
    for (unsigned kind = 1; kind <= K3_SECTION_KINDS; kind++) {
        failed |= write_section(folder, &parts, kind);
    }
    failed |= write_all_tables(folder, &parts);
    k3_pack_parts_done(&parts);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
