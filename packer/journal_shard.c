/* SPDX-License-Identifier: Apache-2.0 */
#include "packer/journal_shard.h"

#include <stdlib.h>

#include "format/base/bytes.h"

/* Visits the digests of a record in their order: the writer and the reader differ only in the
 * direction of the copy. Returns how many there are. */
typedef void (*digest_visit)(void *user, struct k3_digest *digest);

static size_t visit_digests(const struct k3_census *census, const struct k3_schedule *schedule,
                            uint32_t shard, digest_visit visit, void *user)
{
    const struct k3_pack_tables *t = &census->tables;
    const struct k3_shard *s = &census->set.shards[shard];
    size_t count = 1;
    visit(user, &census->provenance.shards[shard].digest);
    for (size_t i = 0; i < s->header.entry_count; i++) {
        const uint32_t source = census->owner[s->first_tensor + i];
        if (source != K3_NO_SOURCE) {
            visit(user, &k3_source_at(t, &census->provenance, source)->digest);
            count++;
        }
    }
    const struct k3_schedule_list *list = &schedule->extents;
    for (uint32_t i = list->first[shard]; i < list->first[shard + 1]; i++) {
        const struct k3_trunk_extent *extent = &t->extents[list->items[i]];
        for (uint32_t b = 0; b < k3_extent_block_count(extent); b++, count++) {
            visit(user, &t->block_digests[extent->block_first + b]);
        }
    }
    list = &schedule->experts;
    for (uint32_t i = list->first[shard]; i < list->first[shard + 1]; i++, count++) {
        visit(user, &t->expert_digests[list->items[i]]);
    }
    return count;
}

static void visit_nothing(void *user, struct k3_digest *digest)
{
    (void)user;
    (void)digest;
}

static void visit_put(void *user, struct k3_digest *digest)
{
    uint8_t **p = user;
    memcpy(*p, digest->bytes, K3_DIGEST_BYTES);
    *p += K3_DIGEST_BYTES;
}

static void visit_get(void *user, struct k3_digest *digest)
{
    const uint8_t **p = user;
    memcpy(digest->bytes, *p, K3_DIGEST_BYTES);
    *p += K3_DIGEST_BYTES;
}

static size_t payload_bytes(const struct k3_census *census, size_t digests)
{
    return 4 + digests * K3_DIGEST_BYTES + (census->has_sha256 ? K3_SHA256_BYTES : 0);
}

enum k3_code k3_journal_shard_encode(const struct k3_census *census,
                                     const struct k3_schedule *schedule, uint32_t shard,
                                     uint8_t **out_bytes, size_t *out_len, struct k3_error *err)
{
    const size_t count = visit_digests(census, schedule, shard, visit_nothing, NULL);
    const size_t len = payload_bytes(census, count);
    uint8_t *bytes = malloc(len);
    if (!bytes) {
        return k3_fail_no_memory(err, "journal record");
    }
    k3_le32_put(bytes, shard);
    uint8_t *p = bytes + 4;
    (void)visit_digests(census, schedule, shard, visit_put, &p);
    if (census->has_sha256) {
        memcpy(p, census->provenance.shards[shard].sha256, K3_SHA256_BYTES);
    }
    *out_bytes = bytes;
    *out_len = len;
    return K3_OK;
}

bool k3_journal_shard_decode(struct k3_census *census, const struct k3_schedule *schedule,
                             uint32_t shard, const uint8_t *bytes, size_t len)
{
    const size_t count = visit_digests(census, schedule, shard, visit_nothing, NULL);
    if (len != payload_bytes(census, count) || k3_le32_get(bytes) != shard) {
        return false;
    }
    const uint8_t *p = bytes + 4;
    (void)visit_digests(census, schedule, shard, visit_get, &p);
    struct k3_shard_record *record = &census->provenance.shards[shard];
    record->has_sha256 = census->has_sha256;
    if (census->has_sha256) {
        memcpy(record->sha256, p, K3_SHA256_BYTES);
    }
    return true;
}
