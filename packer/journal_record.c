/* SPDX-License-Identifier: Apache-2.0 */
#include "packer/journal_record.h"

#include "format/base/bytes.h"

static const uint8_t magic[4] = {'K', '3', 'J', '1'};

/* Head and payload are digested apart, so that no copy is needed. */
static struct k3_digest record_digest(const uint8_t *head, const uint8_t *payload,
                                      size_t payload_len)
{
    uint8_t both[12 + K3_DIGEST_BYTES];
    memcpy(both, head + 4, 12);
    const struct k3_digest inner = k3_digest_of(payload, payload_len);
    memcpy(both + 12, inner.bytes, K3_DIGEST_BYTES);
    return k3_digest_of(both, sizeof both);
}

bool k3_journal_record_next(const uint8_t *bytes, size_t len, size_t *at,
                            struct k3_journal_record *out_record)
{
    if (len - *at < K3_JOURNAL_HEAD_BYTES) {
        return false;
    }
    const uint8_t *head = bytes + *at;
    const uint32_t kind = k3_le32_get(head + 4);
    const uint64_t payload_len = k3_le64_get(head + 8);
    if (memcmp(head, magic, sizeof magic) != 0 ||
        (kind != K3_JOURNAL_IDENTITY && kind != K3_JOURNAL_SHARD) ||
        payload_len > len - *at - K3_JOURNAL_HEAD_BYTES) {
        return false;
    }
    const uint8_t *payload = head + K3_JOURNAL_HEAD_BYTES;
    const struct k3_digest digest = record_digest(head, payload, (size_t)payload_len);
    if (memcmp(digest.bytes, head + 16, K3_DIGEST_BYTES) != 0) {
        return false;
    }
    *out_record = (struct k3_journal_record){
        .kind = (enum k3_journal_kind)kind, .payload = payload, .payload_len = (size_t)payload_len};
    *at += K3_JOURNAL_HEAD_BYTES + (size_t)payload_len;
    return true;
}

void k3_journal_head_encode(enum k3_journal_kind kind, const uint8_t *payload, size_t payload_len,
                            uint8_t out_head[K3_JOURNAL_HEAD_BYTES])
{
    memcpy(out_head, magic, sizeof magic);
    k3_le32_put(out_head + 4, (uint32_t)kind);
    k3_le64_put(out_head + 8, payload_len);
    const struct k3_digest digest = record_digest(out_head, payload, payload_len);
    memcpy(out_head + 16, digest.bytes, K3_DIGEST_BYTES);
}
