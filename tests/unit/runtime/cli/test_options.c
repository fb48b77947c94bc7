/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/cli/options.h"

#include <stdio.h>
#include <string.h>

#include "tests/support/suite_main.h"

#define ARGS_MAX 24

static struct k3_error err;

/* Splits at spaces; '_' stands for an empty argument. */
static enum k3_code parse(const char *line, struct k3_infer_options *out)
{
    static char copy[512];
    static char *argv[ARGS_MAX];
    int argc = 0;
    snprintf(copy, sizeof copy, "%s", line);
    for (char *word = strtok(copy, " "); word && argc < ARGS_MAX - 1; word = strtok(NULL, " ")) {
        argv[argc++] = strcmp(word, "_") == 0 ? word + 1 : word;
    }
    argv[argc] = NULL;
    return k3_infer_options_parse(argc, argv, out, &err);
}

START_TEST(defaults)
{
    struct k3_infer_options o;
    ck_assert_ok(parse("k3infer pack --ids 1,2,3", &o));
    ck_assert_str_eq(o.pack_folder, "pack");
    ck_assert_uint_eq(o.ids.count, 3);
    ck_assert_uint_eq(o.ids.ids[2], 3);
    ck_assert_uint_eq(o.max_tokens, 128);
    ck_assert_double_eq(o.sampling.temperature, 0);
    ck_assert_double_eq(o.sampling.top_p, 1);
    ck_assert_uint_eq(o.chunk, 0); /* planned */
    ck_assert_int_eq(o.ram.kind, K3_RAM_AUTO);
    ck_assert_int_eq(o.io, K3_IO_AUTO);
    ck_assert_int_eq(o.pin, K3_PIN_SOFT);
    ck_assert_double_eq(o.mla_eps, 1e-6);
    ck_assert_int_eq(o.check, K3_CHECK_FIRST);
    k3_infer_options_done(&o);
}
END_TEST

static const char *const refused[] = {
    "k3infer",
    "k3infer pack",
    "k3infer --prompt x",
    "k3infer pack other --prompt x",
    "k3infer pack --prompt x --ids 1",
    "k3infer pack --prompt x --prompt-file y",
    "k3infer pack --prompt _",
    "k3infer pack --ids _",
    "k3infer pack --ids 1,",
    "k3infer pack --ids ,1",
    "k3infer pack --ids 1,,2",
    "k3infer pack --ids -1",
    "k3infer pack --ids 1x",
    "k3infer pack --ids 4294967296",
    "k3infer pack --ids 99999999999999999999999",
    "k3infer pack --ids 1 -n -1",
    "k3infer pack --ids 1 -n many",
    "k3infer pack --ids 1 --temperature -1",
    "k3infer pack --ids 1 --temperature nan",
    "k3infer pack --ids 1 --seed 3",
    "k3infer pack --ids 1 --top-k 3 --temperature 0",
    "k3infer pack --ids 1 --top-p 0",
    "k3infer pack --ids 1 --top-p 1.1",
    "k3infer pack --ids 1 --min-p 2",
    "k3infer pack --ids 1 --threads 0",
    "k3infer pack --ids 1 --threads 100000",
    "k3infer pack --ids 1 --prefill-chunk 0",
    "k3infer pack --ids 1 --context 0",
    "k3infer pack --ids 1 --check sometimes",
    "k3infer pack --ids 1 --ram 0",
    "k3infer pack --ids 1 --ram -1",
    "k3infer pack --ids 1 --ram 8gigs",
    "k3infer pack --ids 1 --preset phone",
    "k3infer pack --ids 1 --io uring",
    "k3infer pack --ids 1 --pin firm",
    "k3infer --plan",
    "k3infer pack --ids 1 --isa mmx",
    "k3infer pack --ids 1 --stop _",
    "k3infer pack --ids 1 --all-logits",
    "k3infer pack --ids 1 --mla-eps 0",
    "k3infer pack --ids 1 --no-such-option",
    "k3infer pack --ids",
};

START_TEST(nonsense_is_a_usage_error)
{
    struct k3_infer_options o;
    const enum k3_code code = parse(refused[_i], &o);
    ck_assert_msg(code == K3_ERR_USAGE, "'%s' was not refused", refused[_i]);
}
END_TEST

START_TEST(everything_at_once)
{
    struct k3_infer_options o;
    ck_assert_ok(parse("k3infer -q pack -n 5 --prompt hi --temperature 0.7 --top-k 40 --top-p 0.9 "
                       "--min-p 0.1 --seed 18446744073709551615 --stop a --stop b",
                       &o));
    ck_assert_uint_eq(o.max_tokens, 5);
    ck_assert_uint_eq(o.sampling.top_k, 40);
    ck_assert_uint_eq(o.sampling.seed, UINT64_MAX);
    ck_assert_uint_eq(o.stop_count, 2);
    ck_assert_str_eq(o.stops[1], "b");
    ck_assert_int_eq(o.level, K3_LEVEL_QUIET);
    k3_infer_options_done(&o);
}
END_TEST

/* 80 columns, and every long option is explained. */
START_TEST(help_is_complete_and_narrow)
{
    size_t column = 0;
    for (const char *p = k3_infer_help; *p; p++) {
        column = *p == '\n' ? 0 : column + 1;
        ck_assert_uint_le(column, 80);
    }
    static const char *const words[] = {
        "--prompt ", "--prompt-file", "--ids ",   "--max-tokens", "--stop",     "--temperature",
        "--top-k",   "--top-p",       "--min-p",  "--seed",       "--threads",  "--prefill-chunk",
        "--context", "--ram ",        "--preset", "--plan",       "--io ",      "--pin ",
        "--check",   "--isa",         "--logits", "--all-logits", "--ids-out",  "--stats",
        "--mla-eps", "--quiet",       "--help",   "--version",    "Exit status"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        ck_assert_msg(strstr(k3_infer_help, words[i]) != NULL, "%s is not in --help", words[i]);
    }
}
END_TEST

Suite *k3_suite(void)
{
    Suite *suite = suite_create("k3infer options");
    TCase *contract = tcase_create("contract");
    tcase_add_test(contract, defaults);
    tcase_add_loop_test(contract, nonsense_is_a_usage_error, 0,
                        (int)(sizeof refused / sizeof refused[0]));
    tcase_add_test(contract, everything_at_once);
    tcase_add_test(contract, help_is_complete_and_narrow);
    suite_add_tcase(suite, contract);
    return suite;
}
