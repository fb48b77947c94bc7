/* SPDX-License-Identifier: Apache-2.0 */
#ifndef K3_PACKER_VERIFY_FILE_H
#define K3_PACKER_VERIFY_FILE_H

#include "format/pack/sections.h"
#include "packer/damage.h"

/* One file of a pack, examined piece by piece: unlike the reader, which refuses at the first fact,
 * this goes on with whatever is still good. */
struct k3_file_check {
    enum k3_file_kind kind;
    bool is_there;
    struct k3_file file;       /* open when is_there                                       */
    bool has_superblock;       /* `set.superblock` is good (its file size apart)           */
    struct k3_section_set set; /* entries and tail bytes, where the section table is good  */
    bool is_good[K3_SECTION_KINDS + 1]; /* by kind: there, and equal to its digest           */
    bool is_sound;                      /* nothing at all was wrong                      */
    bool is_salvaged; /* sections were found although superblock or section table are damaged */
    bool is_foreign;  /* carries the id of another pack: the caller sets it */
};

/* Everything wrong becomes damage. Errors are those that end the examination: UNSUPPORTED (a newer
 * format), NO_MEMORY. *out_check is the caller's: k3_file_check_done. */
K3_MUST_CHECK enum k3_code k3_file_check_make(const char *folder, enum k3_file_kind kind,
                                              struct k3_file_check *out_check,
                                              struct k3_damage_list *damage, struct k3_error *err);
void k3_file_check_done(struct k3_file_check *check);

#endif
