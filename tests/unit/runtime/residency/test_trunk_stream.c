/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/residency/trunk_stream.h"

#include <stdlib.h>

#include "format/base/ckd.h"
#include "tests/support/suite_main.h"
#include "tests/unit/runtime/residency/released_tables.h"

#define MIB (UINT64_C(1) << 20)

static struct k3_error err;
static struct k3_pack pack;
static struct k3_trunk_stream stream;

/* Jobs that "input threads" have taken and not finished. */
#define IN_FLIGHT 4
static struct k3_trunk_job flight[IN_FLIGHT];
static size_t flying;
static uint64_t window_most;

static void setup(void)
{
    ck_assert_ok(k3_released_tables(&pack.tables, &err));
    flying = 0;
    window_most = 0;
}
static void teardown(void)
{
    k3_trunk_stream_done(&stream);
    k3_pack_tables_done(&pack.tables);
}

static void start(uint64_t share, uint64_t window)
{
    const struct k3_budget budget = {.share_bytes = share, .window_bytes = window};
    ck_assert_ok(k3_trunk_stream_init(&pack, NULL, &budget, K3_CHECK_FIRST, false, &stream, &err));
}

static uint64_t random_state = 1;
static size_t any_below(size_t n)
{
    random_state = random_state * 6364136223846793005U + 1442695040888963407U;
    return (size_t)(random_state >> 33) % n;
}

/* Some input thread does something: takes a job or finishes one, in any order. */
static void input_step(void)
{
    if (flying < IN_FLIGHT && any_below(2) == 0 && k3_trunk_job_take(&stream, &flight[flying])) {
        if (flight[flying].is_drop) {
            ck_assert_uint_eq(stream.blocks[flight[flying].block].holds, 0);
        }
        flying++;
    } else if (flying > 0) {
        const size_t i = any_below(flying);
        k3_trunk_job_finish(&stream, &flight[i], K3_OK, NULL);
        flight[i] = flight[--flying];
    }
    window_most = k3_max_u64(window_most, stream.window_used);
}

static void read_range(uint64_t offset, uint64_t bytes)
{
    bool is_ready = false;
    k3_trunk_stream_hold(&stream, offset, bytes);
    for (int round = 0; !is_ready; round++) {
        ck_assert_int_lt(round, 100000); /* else it hangs */
        input_step();
        ck_assert_ok(k3_trunk_stream_poll(&stream, offset, bytes, &is_ready, &err));
    }
    for (size_t i = any_below(4); i > 0; i--) {
        input_step();
        ck_assert_ok(k3_trunk_stream_poll(&stream, offset, bytes, &is_ready, &err));
        ck_assert(is_ready); /* what is held stays */
    }
    k3_trunk_stream_release(&stream, offset, bytes);
}

/* One pass as the model makes it: every tensor in order, in runs. */
static void read_pass(bool needs_head, uint64_t run)
{
    k3_trunk_stream_pass(&stream, needs_head);
    const uint32_t extents = pack.tables.extent_count - (needs_head ? 0 : 1);
    for (uint32_t e = 0; e < extents; e++) {
        const struct k3_trunk_extent *extent = &pack.tables.extents[e];
        for (uint32_t i = 0; i < extent->tensor_count; i++) {
            const struct k3_trunk_tensor *t = &pack.tables.tensors[extent->tensor_first + i];
            if (t->role == K3_ROLE_EMBEDDING) {
                continue;
            }
            for (uint64_t done = 0; done < t->stored_bytes; done += run) {
                read_range(t->file_offset + done, k3_min_u64(run, t->stored_bytes - done));
            }
        }
    }
}

static const struct {
    uint64_t share, window, run;
} settings[] = {
    {0, 64 * MIB, 16 * MIB},   {6 * MIB, 64 * MIB, 16 * MIB}, {100 * MIB, 128 * MIB, 32 * MIB},
    {UINT64_MAX, 0, 64 * MIB}, {2 * MIB, 10 * MIB, 16 * MIB}, /* a run that is larger than the
                                                                 window still comes through */
};

/* Bytes read are the ideal, whatever the threads' order; the window holds. */
START_TEST(reads_what_is_not_kept)
{
    start(settings[_i].share, settings[_i].window);
    const bool heads[] = {false, true, true, false, true};
    for (size_t pass = 0; pass < 5; pass++) {
        read_pass(heads[pass], settings[_i].run);
    }
    ck_assert_uint_ge(stream.read_bytes, stream.ideal_bytes);
    const uint64_t ahead = k3_max_u64(settings[_i].window, 8 * MIB) + 2 * 8 * MIB;
    ck_assert_uint_le(stream.read_bytes - stream.ideal_bytes, ahead);
    if (settings[_i].run < settings[_i].window) {
        ck_assert_uint_le(window_most, settings[_i].window);
    } else {
        ck_assert_uint_le(window_most, 2 * (settings[_i].run + 2 * 8 * MIB));
    }
    if (settings[_i].share == UINT64_MAX) {
        ck_assert_uint_eq(stream.read_bytes, stream.pinned_bytes);
    }
}
END_TEST

/* Out of order is slow and right. */
START_TEST(jumps)
{
    start(4 * MIB, 64 * MIB);
    k3_trunk_stream_pass(&stream, true);
    for (int i = 0; i < 200; i++) {
        const struct k3_trunk_extent *e =
            &pack.tables.extents[any_below(pack.tables.extent_count - 1)];
        const uint64_t at = any_below((size_t)(e->used_bytes / 4096)) * 4096;
        read_range(e->file_offset + at, k3_min_u64(5 * MIB, e->used_bytes - at));
    }
    ck_assert_uint_le(window_most, 64 * MIB + 2 * 8 * MIB); /* what it waits for comes at once */
}
END_TEST

START_TEST(bad_block_is_told_where_it_is_used)
{
    start(0, 64 * MIB);
    k3_trunk_stream_pass(&stream, true);
    struct k3_trunk_job job;
    ck_assert(k3_trunk_job_take(&stream, &job));
    ck_assert_uint_eq(job.block, 0);
    ck_assert(job.checks);
    k3_trunk_job_finish(&stream, &job, K3_OK, NULL);
    ck_assert(k3_trunk_job_take(&stream, &job));
    ck_assert_uint_eq(job.block, 1);
    struct k3_error bad = {.code = K3_ERR_DAMAGED, .file_offset = 77};
    k3_trunk_job_finish(&stream, &job, K3_ERR_DAMAGED, &bad);
    read_range(stream.blocks[0].file_offset, 4096); /* not touched by it */
    bool is_ready = false;
    k3_trunk_stream_hold(&stream, stream.blocks[1].file_offset, 4096);
    ck_assert_code(
        k3_trunk_stream_poll(&stream, stream.blocks[1].file_offset, 4096, &is_ready, &err),
        K3_ERR_DAMAGED);
    ck_assert_uint_eq(err.file_offset, 77);
}
END_TEST

Suite *k3_suite(void)
{
    Suite *suite = suite_create("trunk stream");
    TCase *flow = tcase_create("flow");
    tcase_add_checked_fixture(flow, setup, teardown);
    tcase_add_loop_test(flow, reads_what_is_not_kept, 0,
                        (int)(sizeof settings / sizeof settings[0]));
    tcase_add_test(flow, jumps);
    tcase_add_test(flow, bad_block_is_told_where_it_is_used);
    suite_add_tcase(suite, flow);
    return suite;
}
