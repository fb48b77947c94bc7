/* SPDX-License-Identifier: Apache-2.0 */
#ifndef K3_PACKER_MANIFEST_H
#define K3_PACKER_MANIFEST_H

#include "format/base/problems.h"
#include "packer/census.h"

/* SHA-256 digests that somebody else vouches for (--sha256 FILE): the output of sha256sum, or a
 * listing of the hub as JSON: an array of {"path", "size", "sha256"}, where the hub's own form with
 * "lfs": {"oid"} is understood too. Of paths only the last component counts. */
#define K3_MANIFEST_BYTES_MAX (64U << 20)

struct k3_manifest_entry {
    char *name; /* owned */
    bool has_size;
    uint64_t size;
    uint8_t sha256[K3_SHA256_BYTES];
};

struct k3_manifest {
    struct k3_manifest_entry *entries; /* owned; by name, each once */
    size_t count;
};

/* The bytes of such a file; `name` for messages. *out_manifest is the caller's: k3_manifest_done.
 * Errors: MALFORMED with the line, NO_MEMORY. */
K3_MUST_CHECK enum k3_code k3_manifest_parse(const uint8_t *bytes, size_t len, const char *name,
                                             struct k3_manifest *out_manifest,
                                             struct k3_error *err);
/* Errors: also NO_INPUT, IO. */
K3_MUST_CHECK enum k3_code k3_manifest_read(const char *path, struct k3_manifest *out_manifest,
                                            struct k3_error *err);
void k3_manifest_done(struct k3_manifest *manifest);

/* NULL when it is not listed. */
const struct k3_manifest_entry *k3_manifest_find(const struct k3_manifest *manifest,
                                                 const char *name);

/* What can be said before shards are read: shards that are not listed, listed shards that are not
 * there, sizes, and the small files' digests. Becomes lines in `problems`. Errors: NO_MEMORY. */
K3_MUST_CHECK enum k3_code k3_manifest_check(const struct k3_manifest *manifest,
                                             const struct k3_census *census,
                                             struct k3_problems *problems, struct k3_error *err);

#endif
