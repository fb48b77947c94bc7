/* SPDX-License-Identifier: Apache-2.0 */
#include "packer/options.h"

#include <string.h>

#include "format/tool/args.h"
#include "packer/team.h"

/* Beyond the characters, so that they are no short options. */
enum {
    OPT_PLAN = 256,
    OPT_VERIFY,
    OPT_REPAIR,
    OPT_EXPORT,
    OPT_LIST,
    OPT_VERSION,
    OPT_QUICK,
    OPT_AGAINST,
    OPT_RESTART,
    OPT_JSON,
    OPT_JSON_LINES,
    OPT_JOBS,
    OPT_SHA256,
    OPT_LAYERS,
    OPT_EXPERTS,
    OPT_SAMPLE
};

static const struct option long_options[] = {
    {"plan", no_argument, NULL, OPT_PLAN},
    {"verify", no_argument, NULL, OPT_VERIFY},
    {"repair", no_argument, NULL, OPT_REPAIR},
    {"export", no_argument, NULL, OPT_EXPORT},
    {"list", no_argument, NULL, OPT_LIST},
    {"help", no_argument, NULL, 'h'},
    {"version", no_argument, NULL, OPT_VERSION},
    {"quick", no_argument, NULL, OPT_QUICK},
    {"against", required_argument, NULL, OPT_AGAINST},
    {"restart", no_argument, NULL, OPT_RESTART},
    {"json", no_argument, NULL, OPT_JSON},
    {"json-lines", no_argument, NULL, OPT_JSON_LINES},
    {"sha256", required_argument, NULL, OPT_SHA256},
    {"jobs", required_argument, NULL, OPT_JOBS},
    {"layers", required_argument, NULL, OPT_LAYERS},
    {"experts", required_argument, NULL, OPT_EXPERTS},
    {"sample", required_argument, NULL, OPT_SAMPLE},
    {"quiet", no_argument, NULL, 'q'},
    {"verbose", no_argument, NULL, 'v'},
    {NULL, 0, NULL, 0},
};

/* How each verb is called, for messages, and how many operands it takes. */
static const struct {
    const char *name;
    int operands;
    const char *usage;
} verbs[] = {
    [K3_VERB_PACK] = {"packing", 2, "CHECKPOINT_DIR PACK_DIR"},
    [K3_VERB_PLAN] = {"--plan", 1, "--plan CHECKPOINT_DIR"},
    [K3_VERB_VERIFY] = {"--verify", 1, "--verify PACK_DIR"},
    [K3_VERB_REPAIR] = {"--repair", 2, "--repair PACK_DIR CHECKPOINT_DIR"},
    [K3_VERB_EXPORT] = {"--export", 2, "--export PACK_DIR DIR"},
    [K3_VERB_LIST] = {"--list", 1, "--list PACK_DIR"},
};

static enum k3_code set_verb(struct k3_pack_options *o, enum k3_pack_verb verb,
                             struct k3_error *err)
{
    if (o->verb != K3_VERB_PACK && o->verb != verb) {
        return k3_fail(err, K3_ERR_USAGE, K3_ERROR_NO_OFFSET, "%s and %s do not go together",
                       verbs[o->verb].name, verbs[verb].name);
    }
    o->verb = verb;
    return K3_OK;
}

static enum k3_code take_jobs(struct k3_pack_options *o, struct k3_error *err)
{
    uint64_t jobs = 0;
    const enum k3_code code = k3_arg_u64("--jobs", optarg, 1, K3_TEAM_THREADS_MAX, &jobs, err);
    o->jobs = (unsigned)jobs;
    return code;
}

static enum k3_code take_layers(struct k3_pack_options *o, struct k3_error *err)
{
    uint64_t first = 0, last = 0;
    const enum k3_code code =
        k3_arg_range("--layers", optarg, 0, K3_LAYERS_MAX - 1, &first, &last, err);
    o->scope.has_layers = true;
    o->scope.first_layer = (uint32_t)first;
    o->scope.last_layer = (uint32_t)last;
    return code;
}

static enum k3_code take_option(struct k3_pack_options *o, int option, struct k3_error *err)
{
    switch (option) {
    case OPT_PLAN:
        return set_verb(o, K3_VERB_PLAN, err);
    case OPT_VERIFY:
        return set_verb(o, K3_VERB_VERIFY, err);
    case OPT_REPAIR:
        return set_verb(o, K3_VERB_REPAIR, err);
    case OPT_EXPORT:
        return set_verb(o, K3_VERB_EXPORT, err);
    case OPT_LIST:
        return set_verb(o, K3_VERB_LIST, err);
    case OPT_QUICK:
        o->quick = true;
        break;
    case OPT_AGAINST:
        o->checkpoint = optarg;
        break;
    case OPT_RESTART:
        o->restart = true;
        break;
    case OPT_JSON:
        o->json = true;
        break;
    case OPT_JSON_LINES:
        o->json_lines = true;
        break;
    case OPT_SHA256:
        o->manifest = optarg;
        break;
    case OPT_JOBS:
        return take_jobs(o, err);
    case OPT_LAYERS:
        return take_layers(o, err);
    case OPT_EXPERTS:
        return k3_scope_parse_experts(optarg, &o->scope, err);
    case OPT_SAMPLE:
        return k3_scope_parse_sample(optarg, &o->scope, err);
    case 'q':
        o->level = K3_LEVEL_QUIET;
        break;
    case 'v':
        o->level = o->level >= K3_LEVEL_VERBOSE ? K3_LEVEL_DEBUG : K3_LEVEL_VERBOSE;
        break;
    default:
        break;
    }
    return K3_OK;
}

static bool checks(enum k3_pack_verb verb)
{
    return verb == K3_VERB_VERIFY || verb == K3_VERB_REPAIR;
}

static bool works_in_parallel(enum k3_pack_verb verb)
{
    return verb == K3_VERB_PACK || checks(verb);
}

/* Options that belong to another verb would be ignored silently: refuse them. */
static enum k3_code check_belongs(const struct k3_pack_options *o, struct k3_error *err)
{
    const char *wrong = o->restart && o->verb != K3_VERB_PACK          ? "--restart"
                        : o->quick && !checks(o->verb)                 ? "--quick"
                        : o->checkpoint && o->verb != K3_VERB_VERIFY   ? "--against"
                        : o->manifest && o->verb != K3_VERB_PACK       ? "--sha256"
                        : o->jobs && !works_in_parallel(o->verb)       ? "--jobs"
                        : o->json_lines && !works_in_parallel(o->verb) ? "--json-lines"
                        : k3_scope_is_partial(&o->scope) && !checks(o->verb)
                            ? "--layers, --experts or --sample"
                            : NULL;
    if (wrong) {
        return k3_fail(err, K3_ERR_USAGE, K3_ERROR_NO_OFFSET, "%s does not go with %s", wrong,
                       verbs[o->verb].name);
    }
    if (o->quick && o->checkpoint) {
        return k3_fail(err, K3_ERR_USAGE, K3_ERROR_NO_OFFSET,
                       "--quick reads no weights, so it does not go with --against");
    }
    if (k3_scope_is_partial(&o->scope) && (o->quick || o->checkpoint)) {
        return k3_fail(err, K3_ERR_USAGE, K3_ERROR_NO_OFFSET,
                       "--layers, --experts and --sample do not go with %s",
                       o->quick ? "--quick" : "--against");
    }
    if (o->json && o->json_lines) {
        return k3_fail(err, K3_ERR_USAGE, K3_ERROR_NO_OFFSET,
                       "--json and --json-lines do not go together");
    }
    return K3_OK;
}

static enum k3_code take_operands(struct k3_pack_options *o, char **operands, int count,
                                  struct k3_error *err)
{
    if (count != verbs[o->verb].operands) {
        return k3_fail(err, K3_ERR_USAGE, K3_ERROR_NO_OFFSET, "too %s operands; needed: k3pack %s",
                       count < verbs[o->verb].operands ? "few" : "many", verbs[o->verb].usage);
    }
    for (int i = 0; i < count; i++) {
        if (operands[i][0] == '\0') {
            return k3_fail(err, K3_ERR_USAGE, K3_ERROR_NO_OFFSET, "an operand is empty");
        }
    }
    if (o->verb == K3_VERB_PACK || o->verb == K3_VERB_PLAN) {
        o->checkpoint = operands[0];
        o->pack = count > 1 ? operands[1] : NULL;
    } else if (o->verb == K3_VERB_REPAIR) {
        o->pack = operands[0];
        o->checkpoint = operands[1];
    } else {
        o->pack = operands[0];
        o->folder = count > 1 ? operands[1] : NULL;
    }
    return K3_OK;
}

enum k3_code k3_pack_options_parse(int argc, char **argv, struct k3_pack_options *out_options,
                                   struct k3_error *err)
{
    struct k3_pack_options o = {.level = K3_LEVEL_NORMAL};
    const struct k3_args args = {argc, argv, "hqv", long_options};
    enum k3_code code = K3_OK;
    k3_args_begin();
    for (int c = 0; code == K3_OK && (c = k3_args_next(&args, err)) != K3_ARGS_END;) {
        if (c == K3_ARGS_BAD) {
            return K3_ERR_USAGE;
        }
        if (c == 'h' || c == OPT_VERSION) {
            o.verb = c == 'h' ? K3_VERB_HELP : K3_VERB_VERSION;
            *out_options = o;
            return K3_OK;
        }
        code = take_option(&o, c, err);
    }
    if (code == K3_OK) {
        code = check_belongs(&o, err);
    }
    if (code == K3_OK) {
        code = take_operands(&o, argv + optind, argc - optind, err);
    }
    if (code == K3_OK) {
        *out_options = o;
    }
    return code;
}
