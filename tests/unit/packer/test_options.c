/* SPDX-License-Identifier: Apache-2.0 */
#include "packer/options.h"
#include "tests/support/suite_main.h"

#include <string.h>

#define WORDS_MAX 8

static enum k3_code parse(const char *const *words, struct k3_pack_options *o, struct k3_error *err)
{
    static char copies[WORDS_MAX + 1][64];
    char *argv[WORDS_MAX + 2] = {0};
    int argc = 1;
    strcpy(copies[0], "k3pack");
    argv[0] = copies[0];
    for (; words[argc - 1]; argc++) {
        strcpy(copies[argc], words[argc - 1]);
        argv[argc] = copies[argc];
    }
    return k3_pack_options_parse(argc, argv, o, err);
}

static const struct {
    const char *words[WORDS_MAX];
    enum k3_pack_verb verb;
    const char *checkpoint, *pack, *folder;
} good[] = {
    {{"a", "b"}, K3_VERB_PACK, "a", "b", NULL},
    {{"--restart", "a", "b"}, K3_VERB_PACK, "a", "b", NULL},
    {{"a", "-q", "b"}, K3_VERB_PACK, "a", "b", NULL},
    {{"--", "--a", "-b"}, K3_VERB_PACK, "--a", "-b", NULL},
    {{"--plan", "a"}, K3_VERB_PLAN, "a", NULL, NULL},
    {{"--verify", "p"}, K3_VERB_VERIFY, NULL, "p", NULL},
    {{"p", "--verify", "--quick"}, K3_VERB_VERIFY, NULL, "p", NULL},
    {{"--verify", "p", "--against", "a"}, K3_VERB_VERIFY, "a", "p", NULL},
    {{"--against=a", "--verify", "p"}, K3_VERB_VERIFY, "a", "p", NULL},
    {{"--export", "p", "d"}, K3_VERB_EXPORT, NULL, "p", "d"},
    {{"--list", "p", "--json"}, K3_VERB_LIST, NULL, "p", NULL},
    {{"--help", "--bogus"}, K3_VERB_HELP, NULL, NULL, NULL},
    {{"-h"}, K3_VERB_HELP, NULL, NULL, NULL},
    {{"--version"}, K3_VERB_VERSION, NULL, NULL, NULL},
};

static void same(const char *found, const char *wanted)
{
    ck_assert_int_eq(found == NULL, wanted == NULL);
    if (wanted) {
        ck_assert_str_eq(found, wanted);
    }
}

START_TEST(test_good)
{
    struct k3_pack_options o;
    struct k3_error err;
    ck_assert_ok(parse(good[_i].words, &o, &err));
    ck_assert_int_eq(o.verb, good[_i].verb);
    same(o.checkpoint, good[_i].checkpoint);
    same(o.pack, good[_i].pack);
    same(o.folder, good[_i].folder);
}
END_TEST

static const char *const bad[][WORDS_MAX] = {
    {NULL},
    {"a"},
    {"a", "b", "c"},
    {"--plan"},
    {"--plan", "a", "b"},
    {"--verify"},
    {"--verify", "a", "b"},
    {"--export", "a"},
    {"--list"},
    {"--verify", "--plan", "a"},
    {"--bogus", "a", "b"},
    {"-z", "a", "b"},
    {"--quick", "a", "b"},
    {"--restart", "--list", "a"},
    {"--against", "a", "--list", "b"},
    {"--verify", "--quick", "--against", "a", "b"},
    {"--verify", "p", "--against"},
    {"", "b"},
    {"a", ""},
};

START_TEST(test_bad)
{
    struct k3_pack_options o = {.verb = K3_VERB_HELP};
    struct k3_error err = {0};
    ck_assert_code(parse(bad[_i], &o, &err), K3_ERR_USAGE);
    ck_assert_int_eq(o.verb, K3_VERB_HELP);
    ck_assert_uint_gt(strlen(err.message), 0);
}
END_TEST

START_TEST(test_levels)
{
    static const struct {
        const char *words[WORDS_MAX];
        enum k3_level level;
    } rows[] = {{{"a", "b"}, K3_LEVEL_NORMAL},
                {{"-q", "a", "b"}, K3_LEVEL_QUIET},
                {{"-v", "a", "b"}, K3_LEVEL_VERBOSE},
                {{"-vv", "a", "b"}, K3_LEVEL_DEBUG},
                {{"-v", "--verbose", "a", "b"}, K3_LEVEL_DEBUG}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct k3_pack_options o;
        struct k3_error err;
        ck_assert_ok(parse(rows[i].words, &o, &err));
        ck_assert_int_eq(o.level, rows[i].level);
    }
}
END_TEST

Suite *k3_suite(void)
{
    Suite *suite = suite_create("options");
    TCase *words = tcase_create("words");
    tcase_add_loop_test(words, test_good, 0, (int)(sizeof good / sizeof good[0]));
    tcase_add_loop_test(words, test_bad, 0, (int)(sizeof bad / sizeof bad[0]));
    tcase_add_test(words, test_levels);
    suite_add_tcase(suite, words);
    return suite;
}
