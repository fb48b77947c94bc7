/* SPDX-License-Identifier: Apache-2.0 */
#ifndef K3_PACKER_JOURNAL_RECORD_H
#define K3_PACKER_JOURNAL_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "format/base/digest.h"
#include "format/base/error.h"

/* The journal's bytes: records one after the other, each
 *
 *   u32 magic "K3J1" | u32 kind | u64 payload bytes | digest of the two and payload  | payload
 *
 * A record counts when its digest is right. The first one that does not, and all behind it, are as
 * if they had never been written: that is what a crash leaves. Pure. */
enum k3_journal_kind {
    K3_JOURNAL_IDENTITY = 1, /* what is being packed: journal_identity.h     */
    K3_JOURNAL_SHARD = 2     /* a shard is done: journal_shard.h             */
};

#define K3_JOURNAL_HEAD_BYTES 32U

struct k3_journal_record {
    enum k3_journal_kind kind;
    const uint8_t *payload; /* borrowed */
    size_t payload_len;
};

/* The record at bytes[*at], *at moved behind it. False at the end of what counts. */
bool k3_journal_record_next(const uint8_t *bytes, size_t len, size_t *at,
                            struct k3_journal_record *out_record);

/* The head of a record with this payload. */
void k3_journal_head_encode(enum k3_journal_kind kind, const uint8_t *payload, size_t payload_len,
                            uint8_t out_head[K3_JOURNAL_HEAD_BYTES]);

#endif
