/* SPDX-License-Identifier: Apache-2.0 */
#ifndef K3_PACKER_DAMAGE_H
#define K3_PACKER_DAMAGE_H

#include "format/base/digest.h"
#include "format/pack/superblock.h"
#include "packer/census.h"

/* All that is wrong with a pack, each piece named down to the tensor and to the bytes of the source
 * shard from which it can be made again. */
enum k3_damage_kind {
    K3_DAMAGE_FILE,          /* missing, cut, extended, unreadable                        */
    K3_DAMAGE_SUPERBLOCK,    /*                                                           */
    K3_DAMAGE_SECTION_TABLE, /*                                                           */
    K3_DAMAGE_SECTION,       /* `section` says which                                      */
    K3_DAMAGE_PADDING,       /* bytes that must be zero                                   */
    K3_DAMAGE_TRUNK,         /* of a tensor, or of a block where the tensor is not known  */
    K3_DAMAGE_EXPERT,        /* of a part of an expert, or of all of it                   */
    K3_DAMAGE_DIFFERENCE     /* pack and checkpoint (or config file) differ               */
};

struct k3_damage {
    enum k3_damage_kind kind;
    enum k3_file_kind file;
    enum k3_section_kind section; /* 0: none                                  */
    uint32_t layer;               /* K3_TOP_LEVEL also where there is none    */
    bool has_expert;
    uint32_t expert;
    char tensor[K3_TENSOR_NAME_MAX]; /* source name, "" where none            */
    uint64_t offset, bytes;          /* stored range in `file`                */
    char *shard;                     /* owned; NULL: not known                */
    uint64_t source_offset, source_bytes;
    char *message; /* owned: what is wrong                                   */
};

/* Zeroed is empty. At most K3_DAMAGE_ITEMS_MAX are held; `total` counts on. Adding never fails:
 * when memory runs out `is_short` is set, which k3_damage_result passes on. */
#define K3_DAMAGE_ITEMS_MAX 100000U
struct k3_damage_list {
    struct k3_damage *items; /* owned */
    size_t count, room;
    uint64_t total;
    bool is_short;
    void (*on_add)(void *user, const struct k3_damage *damage); /* may be NULL */
    void *user;
};

/* Adds a copy of `item` (shard borrowed, message made from the format). */
void k3_damage_add(struct k3_damage_list *list, const struct k3_damage *item, const char *format,
                   ...) K3_PRINTF(3, 4);
void k3_damage_done(struct k3_damage_list *list);

/* K3_OK, or DAMAGED with a summary, or NO_MEMORY. */
K3_MUST_CHECK enum k3_code k3_damage_result(const struct k3_damage_list *list, const char *subject,
                                            struct k3_error *err);

/* "superblock", "section", ... */
const char *k3_damage_kind_name(enum k3_damage_kind kind);

#endif
