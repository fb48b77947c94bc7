/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/residency/expert_cache.h"

#include "tests/support/suite_main.h"
#include "tests/unit/runtime/residency/released_tables.h"

static struct k3_error err;
static struct k3_pack pack;
static struct k3_expert_cache cache;

#define IN_FLIGHT 4
static struct k3_expert_job flight[IN_FLIGHT];
static size_t flying;

static void setup(void)
{
    ck_assert_ok(k3_released_tables(&pack.tables, &err));
    flying = 0;
}
static void teardown(void)
{
    k3_expert_cache_done(&cache);
    k3_pack_tables_done(&pack.tables);
}

static uint64_t random_state = 1;
static size_t any_below(size_t n)
{
    random_state = random_state * 6364136223846793005U + 1442695040888963407U;
    return (size_t)(random_state >> 33) % n;
}

static void input_step(void)
{
    if (flying < IN_FLIGHT && any_below(2) == 0 && k3_expert_job_take(&cache, &flight[flying])) {
        /* Nobody else has this expert or this slot in hand, nor the one that goes. */
        for (size_t i = 0; i < flying; i++) {
            ck_assert_uint_ne(flight[i].slot, flight[flying].slot);
            ck_assert_uint_ne(flight[i].number, flight[flying].number);
            ck_assert(flight[i].evicted == K3_EXPERT_NONE ||
                      flight[i].evicted != flight[flying].number);
        }
        flying++;
    } else if (flying > 0) {
        const size_t i = any_below(flying);
        k3_expert_job_finish(&cache, &flight[i], K3_OK, NULL);
        flight[i] = flight[--flying];
    }
}

/* Takes the announced experts in waves, as the model does. */
static void read_list(uint32_t layer, const uint32_t *experts, uint32_t count, uint32_t wave)
{
    k3_expert_cache_announce(&cache, layer, experts, count);
    for (uint32_t first = 0; first < count; first += wave) {
        const uint32_t end = first + wave < count ? first + wave : count;
        for (uint32_t i = first; i < end; i++) {
            const uint64_t number = k3_expert_number(&pack.tables.layout, layer, experts[i]);
            bool is_ready = false;
            for (int round = 0; !is_ready; round++) {
                ck_assert_int_lt(round, 10000); /* else it hangs */
                ck_assert_ok(k3_expert_cache_take(&cache, number, &is_ready, &err));
                input_step();
            }
        }
        for (uint32_t i = first; i < end; i++) {
            const uint64_t number = k3_expert_number(&pack.tables.layout, layer, experts[i]);
            const uint32_t slot = cache.slot_of[number];
            ck_assert_uint_eq(cache.slots[slot].number, number); /* held until now */
            ck_assert_int_eq(cache.slots[slot].state, K3_SLOT_HERE);
            k3_expert_cache_release(&cache, number);
        }
    }
}

static const struct {
    uint32_t slots, wave, chosen;
} settings[] = {{4, 2, 16}, {4, 4, 16}, {1, 1, 16}, {16, 4, 16}, {40, 4, 16}, {5, 4, 300}};

/* Few experts, so that hits, evictions and wanted-again all happen. */
START_TEST(every_list_comes_through)
{
    ck_assert_ok(
        k3_expert_cache_init(&pack, NULL, settings[_i].slots, K3_CHECK_FIRST, &cache, &err));
    for (int list = 0; list < 400; list++) {
        uint32_t experts[896], count = 0;
        const uint32_t among = settings[_i].chosen * 2;
        for (uint32_t e = 0; e < among && count < settings[_i].chosen; e++) {
            if (any_below(2) == 0) {
                experts[count++] = e;
            }
        }
        read_list(1 + (uint32_t)any_below(2), experts, count, settings[_i].wave);
    }
    ck_assert_uint_gt(cache.misses, 0);
    ck_assert_uint_eq(cache.read_bytes, cache.misses * pack.tables.layout.used_bytes -
                                            flying * pack.tables.layout.used_bytes);
}
END_TEST

/* Of three that are held: within a token the last one used goes, later the first. */
START_TEST(who_goes)
{
    const bool is_later = _i == 1;
    ck_assert_ok(k3_expert_cache_init(&pack, NULL, 3, K3_CHECK_OFF, &cache, &err));
    const uint32_t abc[] = {1, 2, 3}, a[] = {1}, d[] = {4};
    read_list(1, abc, 3, 1);
    read_list(1, a, 1, 1); /* a hit: 2 is the oldest, 1 the newest */
    ck_assert_uint_eq(cache.misses, 3);
    cache.clock += is_later ? 16 * 95 : 0;
    read_list(1, d, 1, 1);
    ck_assert_uint_eq(cache.misses, 4);
    ck_assert_uint_ge(cache.slot_of[k3_expert_number(&pack.tables.layout, 1, is_later ? 2 : 1)], 3);
    ck_assert_uint_lt(cache.slot_of[k3_expert_number(&pack.tables.layout, 1, is_later ? 1 : 2)], 3);
    ck_assert_uint_lt(cache.slot_of[k3_expert_number(&pack.tables.layout, 1, 3)], 3);
}
END_TEST

START_TEST(bad_expert_is_told_where_it_is_used)
{
    ck_assert_ok(k3_expert_cache_init(&pack, NULL, 4, K3_CHECK_FIRST, &cache, &err));
    const uint32_t two[] = {8, 9};
    k3_expert_cache_announce(&cache, 1, two, 2);
    struct k3_expert_job first, second;
    ck_assert(k3_expert_job_take(&cache, &first) && k3_expert_job_take(&cache, &second));
    ck_assert(first.checks);
    ck_assert(!k3_expert_job_take(&cache, &flight[0]));
    const struct k3_error bad = {.code = K3_ERR_IO, .file_offset = 5};
    k3_expert_job_finish(&cache, &second, K3_ERR_IO, &bad);
    k3_expert_job_finish(&cache, &first, K3_OK, NULL);
    bool is_ready = false;
    ck_assert_ok(
        k3_expert_cache_take(&cache, k3_expert_number(&pack.tables.layout, 1, 8), &is_ready, &err));
    ck_assert(is_ready);
    ck_assert_code(
        k3_expert_cache_take(&cache, k3_expert_number(&pack.tables.layout, 1, 9), &is_ready, &err),
        K3_ERR_IO);
    ck_assert_uint_eq(err.file_offset, 5);
}
END_TEST

Suite *k3_suite(void)
{
    Suite *suite = suite_create("expert cache");
    TCase *flow = tcase_create("flow");
    tcase_add_checked_fixture(flow, setup, teardown);
    tcase_add_loop_test(flow, every_list_comes_through, 0,
                        (int)(sizeof settings / sizeof settings[0]));
    tcase_add_loop_test(flow, who_goes, 0, 2);
    tcase_add_test(flow, bad_expert_is_told_where_it_is_used);
    suite_add_tcase(suite, flow);
    return suite;
}
