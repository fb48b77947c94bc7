/* SPDX-License-Identifier: Apache-2.0 */
#ifndef K3_FORMAT_PACK_SECTIONS_H
#define K3_FORMAT_PACK_SECTIONS_H

#include "format/base/file.h"
#include "format/pack/superblock.h"

/* The sections of one file of a pack: docs/format.md 4 and 5. Stored bytes are checked against
 * their digests when they are read; raw bytes are made on demand. */

struct k3_section {
    enum k3_section_kind kind;
    uint32_t flags;
    uint64_t offset, stored_bytes, raw_bytes;
    struct k3_digest stored_digest;
};

struct k3_section_set {
    struct k3_superblock superblock;
    uint32_t count;
    struct k3_section sections[K3_SECTIONS_MAX];
    uint64_t tail_offset; /* file offset of tail[0] */
    uint8_t *tail;        /* owned: from the first section to the end of the file */
};

/* Parses the superblock's bytes and the file's bytes from `tail_offset` on (tail_len of them, up to
 * the end of the file). `tail` is adopted on success only: heap memory, freed by _done. */
K3_MUST_CHECK enum k3_code k3_section_set_parse(const uint8_t superblock[K3_SUPERBLOCK_BYTES],
                                                enum k3_file_kind kind, uint8_t *tail,
                                                uint64_t tail_offset, uint64_t tail_len,
                                                struct k3_section_set *out_set,
                                                struct k3_error *err);

/* The same from an open file. */
K3_MUST_CHECK enum k3_code k3_section_set_read(const struct k3_file *file, enum k3_file_kind kind,
                                               struct k3_section_set *out_set,
                                               struct k3_error *err);
void k3_section_set_done(struct k3_section_set *set);

const struct k3_section *k3_section_find(const struct k3_section_set *set,
                                         enum k3_section_kind kind);
static inline const uint8_t *k3_section_stored(const struct k3_section_set *set,
                                               const struct k3_section *section)
{
    return set->tail + (section->offset - set->tail_offset);
}

/* Raw bytes in fresh memory, the caller's to free (never NULL on success). */
K3_MUST_CHECK enum k3_code k3_section_raw(const struct k3_section_set *set,
                                          enum k3_section_kind kind, uint8_t **out_bytes,
                                          size_t *out_len, struct k3_error *err);

const char *k3_section_name(enum k3_section_kind kind);
/* Does this kind stand in this file? Is it stored compressed? */
bool k3_section_belongs(enum k3_section_kind kind, enum k3_file_kind file);
bool k3_section_is_compressed(enum k3_section_kind kind);
/* The most raw bytes that a section of this kind may have: docs/format.md 2. */
uint64_t k3_section_raw_max(enum k3_section_kind kind);

/* Sections to be written, in kind order. Stored bytes are owned by the builder. */
struct k3_section_builder {
    uint8_t *stored[K3_SECTION_KINDS + 1];
    size_t stored_len[K3_SECTION_KINDS + 1];
    size_t raw_len[K3_SECTION_KINDS + 1];
    struct k3_digest raw_digest[K3_SECTION_KINDS + 1];
};

/* Takes a copy of the raw bytes, compressed where the kind says so. More bytes than a reader would
 * accept are MALFORMED. */
K3_MUST_CHECK enum k3_code k3_section_builder_put(struct k3_section_builder *builder,
                                                  enum k3_section_kind kind, const uint8_t *raw,
                                                  size_t raw_len, struct k3_error *err);
void k3_section_builder_done(struct k3_section_builder *builder);

/* docs/format.md 10, from kinds 1..7, all of which must have been put. */
struct k3_digest k3_section_builder_pack_id(const struct k3_section_builder *builder);

/* Writes the sections that belong into `kind`, their table and, last, the superblock. The file is
 * cut to its final size. data_end as in the superblock. Does not sync. */
K3_MUST_CHECK enum k3_code k3_section_builder_write(const struct k3_section_builder *builder,
                                                    const struct k3_file *file,
                                                    enum k3_file_kind kind, uint64_t data_end,
                                                    const struct k3_digest *pack_id,
                                                    struct k3_error *err);

#endif
