/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/residency/budget.h"

#include <stdio.h>
#include <string.h>

#include "tests/support/suite_main.h"
#include "tests/unit/runtime/residency/released_tables.h"

#define MIB (UINT64_C(1) << 20)
#define GIB (UINT64_C(1) << 30)
#define GB  UINT64_C(1000000000)

static struct k3_error err;
static struct k3_pack_tables tables;

static void setup(void)
{
    ck_assert_ok(k3_released_tables(&tables, &err));
}
static void teardown(void)
{
    k3_pack_tables_done(&tables);
}

/* About what a session of the released model takes at a context of 1024. */
static bool sizes(const void *context, size_t chunk, struct k3_session_sizes *out)
{
    (void)context;
    *out = (struct k3_session_sizes){.state_bytes = 464 * MIB,
                                     .latent_bytes = 57 * MIB,
                                     .scratch_bytes = 10 * MIB + chunk * 3 * MIB,
                                     .logit_bytes = 4 * MIB};
    return true;
}
static bool no_sizes(const void *context, size_t chunk, struct k3_session_sizes *out)
{
    (void)context;
    (void)chunk;
    (void)out;
    return false;
}

static struct k3_budget_request request(uint64_t total)
{
    return (struct k3_budget_request){.tables = &tables,
                                      .total_bytes = total,
                                      .base_bytes = 90 * MIB,
                                      .chunk_max = 1000,
                                      .session_sizes = sizes};
}

static uint64_t spent(const struct k3_budget *b)
{
    return b->base_bytes + b->page_table_bytes + b->session.state_bytes + b->session.latent_bytes +
           b->session.scratch_bytes + b->session.logit_bytes + b->window_bytes + b->pinned_bytes +
           b->slot_count * b->slot_bytes + b->unused_bytes;
}

/* Totals, and what must come out: design table of docs/memory.md. */
static const struct {
    uint64_t total;
    uint32_t slots_min, slots_max;
    double pinned_min_gb, pinned_max_gb; /* of trunk                */
    double read_min_gb, read_max_gb;     /* per token               */
} plans[] = {
    {1 * GIB, 4, 16, 0.0, 0.4, 136, 138},
    {850 * MIB, 5, 8, 0.0, 0.1, 136, 138},
    {2 * GIB, 16, 16, 0.5, 1.3, 134, 137},
    {8 * GB, 16, 16, 6.0, 7.1, 129, 132},
    {16 * GB, 16, 16, 13.5, 15.0, 121, 124},
    {32 * GB, 16, 16, 29.0, 31.0, 105, 109},
    {64 * GB, 16, 16, 59.0, 63.0, 73, 79},
    {96 * GB, 16, 16, 91.0, 95.0, 41, 47},
    {128 * GB, 700, 1000, 111.0, 111.3, 25, 26},
    {224 * GB, 5800, 6400, 111.0, 111.3, 23, 25},
    {2000 * GB, 82432, 82432, 111.0, 111.3, 0, 0.1},
};

START_TEST(released_model)
{
    const struct k3_budget_request r = request(plans[_i].total);
    struct k3_budget b;
    ck_assert_ok(k3_budget_plan(&r, &b, &err));
    ck_assert_msg(spent(&b) == b.total_bytes, "the ledger misses %lld bytes",
                  (long long)(b.total_bytes - spent(&b)));
    ck_assert_uint_ge(b.slot_count, plans[_i].slots_min);
    ck_assert_uint_le(b.slot_count, plans[_i].slots_max);
    ck_assert_double_ge((double)b.pinned_bytes / 1e9, plans[_i].pinned_min_gb);
    ck_assert_double_le((double)b.pinned_bytes / 1e9, plans[_i].pinned_max_gb);
    ck_assert_double_ge(b.ideal_token_bytes / 1e9, plans[_i].read_min_gb);
    ck_assert_double_le(b.ideal_token_bytes / 1e9, plans[_i].read_max_gb);
    ck_assert(b.share_bytes == UINT64_MAX || b.share_bytes % (2 * MIB) == 0);
    ck_assert_uint_ge(b.wave, 1);
    ck_assert_uint_le(b.wave, b.slot_count);
    if (b.trunk_streamed_bytes > 0) {
        ck_assert_uint_ge(b.window_bytes, 64 * MIB);
        ck_assert_uint_le(b.window_bytes, 256 * MIB);
        ck_assert_uint_lt(b.run_bytes, b.window_bytes / 2);
        /* Experts are kept only when all of the trunk is. */
        ck_assert_uint_le(b.slot_count, tables.spec.experts_per_token);
        ck_assert_uint_lt(b.unused_bytes, 94 * 2 * MIB);
    }
}
END_TEST

START_TEST(floor_is_refused_by_one_mebibyte)
{
    struct k3_budget_request r = request(0);
    struct k3_budget b;
    ck_assert_code(k3_budget_plan(&r, &b, &err), K3_ERR_BUDGET);
    r.total_bytes = 64 * GB;
    ck_assert_ok(k3_budget_plan(&r, &b, &err));
    const uint64_t floor = b.floor_bytes;
    ck_assert_uint_le(floor, GIB);
    r.total_bytes = floor;
    ck_assert_ok(k3_budget_plan(&r, &b, &err));
    ck_assert_uint_eq(spent(&b), floor);
    ck_assert_uint_eq(b.chunk, 1);
    r.total_bytes = floor - 1;
    ck_assert_code(k3_budget_plan(&r, &b, &err), K3_ERR_BUDGET);
    char works[32];
    snprintf(works, sizeof works, "--ram %lluMiB works", (unsigned long long)(floor / MIB));
    ck_assert_msg(strstr(err.message, works) != NULL, "%s", err.message);
}
END_TEST

/* More memory never reads more, and the ledger adds up at every size. */
START_TEST(more_memory_never_reads_more)
{
    struct k3_budget_request r = request(GIB);
    struct k3_budget b;
    double last = 1e18;
    for (uint64_t total = GIB; total < 300 * GB; total += total / 16) {
        r.total_bytes = total;
        ck_assert_ok(k3_budget_plan(&r, &b, &err));
        ck_assert_uint_eq(spent(&b), total);
        /* A wider window or a longer pass may cost one step of the share. */
        ck_assert_double_le(b.ideal_token_bytes, last + 94 * 2e6 + 2.6e8 + (double)total / 32);
        last = b.ideal_token_bytes;
    }
}
END_TEST

START_TEST(chunk)
{
    struct k3_budget_request r = request(8 * GB);
    struct k3_budget b;
    ck_assert_ok(k3_budget_plan(&r, &b, &err));
    ck_assert_uint_ge(b.chunk, 32);
    r.chunk_max = 5; /* no pass is longer than the prompt */
    ck_assert_ok(k3_budget_plan(&r, &b, &err));
    ck_assert_uint_eq(b.chunk, 5);
    r.chunk = 100; /* as asked; the floor rises with it */
    ck_assert_ok(k3_budget_plan(&r, &b, &err));
    ck_assert_uint_eq(b.chunk, 100);
    r.total_bytes = GIB;
    ck_assert_code(k3_budget_plan(&r, &b, &err), K3_ERR_BUDGET);
    r.session_sizes = no_sizes;
    ck_assert_code(k3_budget_plan(&r, &b, &err), K3_ERR_BUDGET);
}
END_TEST

START_TEST(path_leaves_the_embedding_out)
{
    const struct k3_trunk_path path = k3_trunk_path_of(&tables);
    ck_assert_uint_lt(path.head_first, path.block_count);
    ck_assert_uint_lt(path.block_count, tables.block_count);
    /* lm_head is about 2.35 GB: 280 blocks of 8 MiB. */
    ck_assert_uint_eq(path.block_count - path.head_first, 281);
    const struct k3_trunk_block block = k3_trunk_block_of(&tables, 5, 1);
    ck_assert_uint_eq(block.file_offset, tables.extents[5].file_offset + 8 * MIB);
    ck_assert_uint_eq(k3_block_kept(&block, 8 * MIB), 0);
    ck_assert_uint_eq(k3_block_kept(&block, 10 * MIB), 2 * MIB);
    ck_assert_uint_eq(k3_block_kept(&block, 100 * MIB), 8 * MIB);
}
END_TEST

static const struct {
    const char *why;
    struct k3_ram_request request;
    struct k3_memory_limits limits;
    enum k3_code code;
    uint64_t bytes;
    bool clipped;
} rams[] = {
    {"auto: machine less 3 %",
     {K3_RAM_AUTO, 0, NULL},
     {100 * GB, UINT64_MAX, "", ""},
     K3_OK,
     97 * GB,
     false},
    {"auto: at least 256 MiB stay free",
     {K3_RAM_AUTO, 0, NULL},
     {4 * GIB, UINT64_MAX, "", ""},
     K3_OK,
     4 * GIB - 256 * MIB,
     false},
    {"auto: the control group is tighter",
     {K3_RAM_AUTO, 0, NULL},
     {100 * GB, 2 * GIB, "f", ""},
     K3_OK,
     2 * GIB - 256 * MIB,
     false},
    {"auto: a machine smaller than its headroom",
     {K3_RAM_AUTO, 0, NULL},
     {MIB, UINT64_MAX, "", ""},
     K3_OK,
     0,
     false},
    {"size: the total, nothing subtracted",
     {K3_RAM_SIZE, 8 * GB, NULL},
     {8 * GB, UINT64_MAX, "", ""},
     K3_OK,
     8 * GB,
     false},
    {"size: above the machine",
     {K3_RAM_SIZE, 8 * GB + 1, NULL},
     {8 * GB, UINT64_MAX, "", ""},
     K3_ERR_BUDGET,
     0,
     false},
    {"size: above the control group",
     {K3_RAM_SIZE, 4 * GB, NULL},
     {8 * GB, 3 * GB, "f", ""},
     K3_ERR_BUDGET,
     0,
     false},
    {"preset: as on a machine of its size",
     {K3_RAM_PRESET, 96 * GB, "workstation"},
     {512 * GB, UINT64_MAX, "", ""},
     K3_OK,
     96 * GB - 96 * GB / 100 * 3,
     false},
    {"preset: clipped",
     {K3_RAM_PRESET, 96 * GB, "workstation"},
     {64 * GB, UINT64_MAX, "", ""},
     K3_OK,
     64 * GB - 64 * GB / 100 * 3,
     true},
};

START_TEST(ram)
{
    uint64_t bytes = 0;
    bool clipped = false;
    const enum k3_code code =
        k3_ram_resolve(&rams[_i].request, &rams[_i].limits, &bytes, &clipped, &err);
    ck_assert_msg(code == rams[_i].code, "%s", rams[_i].why);
    if (code == K3_OK) {
        ck_assert_msg(bytes == rams[_i].bytes && clipped == rams[_i].clipped, "%s: %llu",
                      rams[_i].why, (unsigned long long)bytes);
    }
}
END_TEST

START_TEST(presets)
{
    struct k3_ram_request r;
    ck_assert(k3_ram_preset("laptop", &r) && r.bytes == 8 * GB);
    ck_assert(k3_ram_preset("max", &r) && r.bytes == 224 * GB);
    ck_assert(!k3_ram_preset("Laptop", &r) && !k3_ram_preset("", &r));
}
END_TEST

Suite *k3_suite(void)
{
    Suite *suite = suite_create("budget");
    TCase *plan = tcase_create("plan");
    tcase_add_checked_fixture(plan, setup, teardown);
    tcase_add_loop_test(plan, released_model, 0, (int)(sizeof plans / sizeof plans[0]));
    tcase_add_test(plan, floor_is_refused_by_one_mebibyte);
    tcase_add_test(plan, more_memory_never_reads_more);
    tcase_add_test(plan, chunk);
    tcase_add_test(plan, path_leaves_the_embedding_out);
    suite_add_tcase(suite, plan);
    TCase *asked = tcase_create("what was asked for");
    tcase_add_loop_test(asked, ram, 0, (int)(sizeof rams / sizeof rams[0]));
    tcase_add_test(asked, presets);
    suite_add_tcase(suite, asked);
    return suite;
}
