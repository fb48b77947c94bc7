/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "format/base/ckd.h"
#include "packer/direct_io.h"
#include "packer/page_cache.h"
#include "packer/team.h"
#include "packer/trunk_writer.h"
#include "packer/verify.h"
#include "packer/verify_name.h"

/* A block or an expert: read and digested by a team, judged in order. */
struct unit {
    bool is_expert;
    uint32_t extent, block;
    uint64_t expert;
    uint64_t offset, bytes; /* stored range */
    struct k3_buffer buffer;
    enum k3_code code; /* of reading */
    struct k3_error why;
    struct k3_digest found;
};

/* The pass over the data. */
struct pass {
    struct k3_verify *v;
    const struct k3_verify_scope *scope;
    bool with_trunk, with_experts;
    struct k3_namer namer;
    struct k3_direct direct[2]; /* trunk, experts */
    struct k3_drop_behind behind[2];
    uint64_t total_bytes;
    struct k3_team *team;
    struct unit *ring; /* owned, `places` of them */
    unsigned places;
    /* What is handed in next. */
    uint32_t extent, block;
    uint64_t expert;
};

static void read_unit(void *context, unsigned place)
{
    struct pass *pass = context;
    struct unit *u = &pass->ring[place];
    u->code = k3_buffer_reserve(&u->buffer, u->bytes, &u->why);
    if (u->code == K3_OK) {
        u->code = k3_direct_read(&pass->direct[u->is_expert], u->offset, u->buffer.bytes, u->bytes,
                                 &u->why);
    }
    if (u->code == K3_OK) {
        u->found = k3_digest_of(u->buffer.bytes, (size_t)u->bytes);
    }
}

/* The next block in scope to *unit; false when there is none. */
static bool next_block(struct pass *pass, struct unit *unit)
{
    const struct k3_pack_tables *tables = &pass->v->tables;
    while (pass->with_trunk && pass->extent < tables->extent_count) {
        const struct k3_trunk_extent *extent = &tables->extents[pass->extent];
        if (pass->block == k3_extent_block_count(extent)) {
            pass->extent++;
            pass->block = 0;
            continue;
        }
        const uint32_t block = pass->block++;
        if (k3_scope_has_block(pass->scope, extent, block)) {
            unit->is_expert = false;
            unit->extent = pass->extent;
            unit->block = block;
            unit->offset = extent->file_offset + block * K3_TRUNK_BLOCK_BYTES;
            unit->bytes = k3_trunk_block_bytes(extent, block);
            return true;
        }
    }
    return false;
}

static bool next_expert(struct pass *pass, struct unit *unit)
{
    const struct k3_expert_layout *layout = &pass->v->tables.layout;
    while (pass->with_experts && pass->expert < k3_expert_total(layout)) {
        const uint64_t expert = pass->expert++;
        if (k3_scope_has_expert(pass->scope, layout, expert)) {
            unit->is_expert = true;
            unit->expert = expert;
            unit->offset = k3_expert_offset(layout, expert);
            unit->bytes = layout->used_bytes;
            return true;
        }
    }
    return false;
}

static bool next_unit(struct pass *pass, struct unit *unit)
{
    return next_block(pass, unit) || next_expert(pass, unit);
}

/* Digest and state of a unit. */
static const struct k3_digest *expected_digest(const struct pass *pass, const struct unit *u)
{
    const struct k3_pack_tables *t = &pass->v->tables;
    return u->is_expert ? &t->expert_digests[u->expert]
                        : &t->block_digests[t->extents[u->extent].block_first + u->block];
}

static enum k3_code name_damage(struct pass *pass, const struct unit *u, struct k3_error *err)
{
    const bool is_read = u->code == K3_OK;
    const char *reason = is_read ? "stored bytes do not match their digest" : u->why.message;
    return u->is_expert ? k3_name_expert(&pass->namer, u->expert, is_read ? u->buffer.bytes : NULL,
                                         reason, err)
                        : k3_name_block(&pass->namer, &pass->v->tables.extents[u->extent], u->block,
                                        reason, err);
}

static enum k3_code judge(struct pass *pass, const struct unit *u, struct k3_error *err)
{
    struct k3_verify *v = pass->v;
    enum k3_code code = K3_OK;
    if (u->code == K3_ERR_NO_MEMORY) {
        return k3_fail_no_memory(err, "block");
    }
    const bool is_good = u->code == K3_OK && k3_digest_equal(&u->found, expected_digest(pass, u));
    if (u->is_expert) {
        v->checked_experts++;
        v->expert_state[u->expert] = is_good ? K3_UNIT_GOOD : K3_UNIT_BAD;
    } else {
        v->checked_blocks++;
        v->block_state[v->tables.extents[u->extent].block_first + u->block] =
            is_good ? K3_UNIT_GOOD : K3_UNIT_BAD;
    }
    k3_drop_behind(&pass->behind[u->is_expert], pass->direct[u->is_expert].file,
                   u->offset + u->bytes);
    if (!is_good) {
        code = name_damage(pass, u, err);
    }
    v->checked_bytes += u->bytes;
    if (code == K3_OK &&
        !k3_report(v->observer, "verify", u->is_expert ? K3_EXPERTS_NAME : K3_TRUNK_NAME,
                   v->checked_bytes, pass->total_bytes)) {
        code = k3_fail(err, K3_ERR_INTERRUPTED, K3_ERROR_NO_OFFSET, "stopped while verifying");
    }
    return code;
}

/* Everything in scope, read ahead by the team. */
static enum k3_code run_pass(struct pass *pass, struct k3_error *err)
{
    enum k3_code code = K3_OK;
    bool has_more = true;
    while (code == K3_OK && (has_more || !k3_team_is_idle(pass->team))) {
        if (has_more && !k3_team_is_full(pass->team)) {
            has_more = next_unit(pass, &pass->ring[k3_team_place(pass->team)]);
            if (has_more) {
                k3_team_submit(pass->team);
            }
        } else {
            code = judge(pass, &pass->ring[k3_team_collect(pass->team)], err);
        }
    }
    return code;
}

/* False where it is another pack's, or where nothing is left to check against (which is said). */
static bool can_check(struct k3_verify *v, const struct k3_file_check *file, bool has_digests)
{
    if (!file->is_there || file->is_foreign) {
        return false;
    }
    if (!v->has_tables || !has_digests) {
        const struct k3_damage d = {
            .kind = K3_DAMAGE_FILE, .file = file->kind, .layer = K3_TOP_LEVEL};
        k3_damage_add(&v->damage, &d,
                      "its data cannot be checked: no good table of digests is left");
        return false;
    }
    return true;
}

static void count_units(struct pass *pass)
{
    struct unit unit = {0};
    struct k3_verify *v = pass->v;
    while (next_unit(pass, &unit)) {
        pass->total_bytes += unit.bytes;
        v->chosen_units++;
    }
    pass->extent = pass->block = 0;
    pass->expert = 0;
    v->all_units = (pass->with_trunk ? v->tables.block_count : 0) +
                   (pass->with_experts ? k3_expert_total(&v->tables.layout) : 0);
}

static enum k3_code prepare(struct pass *pass, unsigned jobs, struct k3_error *err)
{
    struct k3_verify *v = pass->v;
    pass->places = jobs > 1 ? 2 * jobs : 1;
    pass->ring = calloc(pass->places, sizeof *pass->ring);
    v->block_state = calloc((size_t)v->tables.block_count + 1, 1);
    v->expert_state = calloc((size_t)k3_expert_total(&v->tables.layout) + 1, 1);
    if (!pass->ring || !v->block_state || !v->expert_state) {
        return k3_fail_no_memory(err, "list of blocks");
    }
    for (unsigned i = 0; i < 2; i++) {
        const struct k3_file_check *f = &v->files[i + 1];
        if (f->is_there) {
            k3_direct_open(&f->file, &pass->direct[i]);
        }
    }
    count_units(pass);
    const enum k3_code code = k3_namer_init(&pass->namer, v, err);
    return code == K3_OK ? k3_team_create(jobs, pass->places, read_unit, pass, &pass->team, err)
                         : code;
}

static void pass_done(struct pass *pass)
{
    k3_team_destroy(pass->team);
    for (unsigned i = 0; pass->ring && i < pass->places; i++) {
        k3_buffer_done(&pass->ring[i].buffer);
    }
    free(pass->ring);
    k3_direct_close(&pass->direct[0]);
    k3_direct_close(&pass->direct[1]);
    k3_namer_done(&pass->namer);
}

enum k3_code k3_verify_data(struct k3_verify *verify, const struct k3_verify_scope *scope,
                            unsigned jobs, struct k3_error *err)
{
    struct pass pass = {.v = verify, .scope = scope};
    pass.direct[0].fd = pass.direct[1].fd = -1;
    pass.with_trunk =
        can_check(verify, k3_verify_file(verify, K3_FILE_TRUNK), verify->has_trunk_digests);
    pass.with_experts =
        can_check(verify, k3_verify_file(verify, K3_FILE_EXPERTS), verify->has_expert_digests);
    if (!verify->has_tables) {
        return K3_OK;
    }
    enum k3_code code = k3_scope_check(scope, &verify->tables, err);
    if (code == K3_OK) {
        code = prepare(&pass, jobs, err);
    }
    if (code == K3_OK) {
        code = run_pass(&pass, err);
    }
    pass_done(&pass);
    return code;
}
