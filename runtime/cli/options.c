/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/cli/options.h"

#include <stdlib.h>
#include <string.h>

#include "format/tool/args.h"
#include "runtime/kernels/kernels.h"
#include "runtime/thread/pool.h"

enum {
    OPT_PROMPT = 256,
    OPT_PROMPT_FILE,
    OPT_IDS,
    OPT_STOP,
    OPT_TEMPERATURE,
    OPT_TOP_K,
    OPT_TOP_P,
    OPT_MIN_P,
    OPT_SEED,
    OPT_THREADS,
    OPT_CHUNK,
    OPT_CONTEXT,
    OPT_RAM,
    OPT_PRESET,
    OPT_PLAN,
    OPT_IO,
    OPT_PIN,
    OPT_CHECK,
    OPT_ISA,
    OPT_LOGITS,
    OPT_ALL_LOGITS,
    OPT_IDS_OUT,
    OPT_STATS,
    OPT_MLA_EPS,
    OPT_VERSION
};

static const struct option long_options[] = {
    {"prompt", required_argument, NULL, OPT_PROMPT},
    {"prompt-file", required_argument, NULL, OPT_PROMPT_FILE},
    {"ids", required_argument, NULL, OPT_IDS},
    {"max-tokens", required_argument, NULL, 'n'},
    {"stop", required_argument, NULL, OPT_STOP},
    {"temperature", required_argument, NULL, OPT_TEMPERATURE},
    {"top-k", required_argument, NULL, OPT_TOP_K},
    {"top-p", required_argument, NULL, OPT_TOP_P},
    {"min-p", required_argument, NULL, OPT_MIN_P},
    {"seed", required_argument, NULL, OPT_SEED},
    {"threads", required_argument, NULL, OPT_THREADS},
    {"prefill-chunk", required_argument, NULL, OPT_CHUNK},
    {"context", required_argument, NULL, OPT_CONTEXT},
    {"ram", required_argument, NULL, OPT_RAM},
    {"preset", required_argument, NULL, OPT_PRESET},
    {"plan", no_argument, NULL, OPT_PLAN},
    {"io", required_argument, NULL, OPT_IO},
    {"pin", required_argument, NULL, OPT_PIN},
    {"check", required_argument, NULL, OPT_CHECK},
    {"isa", required_argument, NULL, OPT_ISA},
    {"logits", required_argument, NULL, OPT_LOGITS},
    {"all-logits", no_argument, NULL, OPT_ALL_LOGITS},
    {"ids-out", required_argument, NULL, OPT_IDS_OUT},
    {"stats", required_argument, NULL, OPT_STATS},
    {"mla-eps", required_argument, NULL, OPT_MLA_EPS},
    {"quiet", no_argument, NULL, 'q'},
    {"help", no_argument, NULL, 'h'},
    {"version", no_argument, NULL, OPT_VERSION},
    {NULL, 0, NULL, 0},
};

#define CHUNK_MAX          4096U
#define MAX_TOKENS_DEFAULT 128U
#define POSITIONS_MAX      (UINT64_C(1) << 40)

/* "1,2,3": decimal ids, no spaces, at least one. */
static enum k3_code parse_ids(const char *text, struct k3_token_ids *ids, struct k3_error *err)
{
    ids->count = 0;
    for (const char *p = text;; p++) {
        char *end = NULL;
        const unsigned long long id = *p >= '0' && *p <= '9' ? strtoull(p, &end, 10) : 0;
        if (!end || (*end != ',' && *end != 0) || id > UINT32_MAX) {
            return k3_fail(err, K3_ERR_USAGE, K3_ERROR_NO_OFFSET,
                           "--ids: '%s' is not a comma-separated list of token ids", text);
        }
        const enum k3_code code = k3_token_ids_append(ids, (uint32_t)id, err);
        if (code != K3_OK || *end == 0) {
            return code;
        }
        p = end;
    }
}

/* The value of optarg among the words of a list; `words` also says them to people. */
struct word {
    const char *name;
    int value;
};

static enum k3_code parse_word(const char *option, const struct word *words, size_t count,
                               const char *all, int *out_value, struct k3_error *err)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(optarg, words[i].name) == 0) {
            *out_value = words[i].value;
            return K3_OK;
        }
    }
    return k3_fail(err, K3_ERR_USAGE, K3_ERROR_NO_OFFSET, "%s: '%s' is none of %s", option, optarg,
                   all);
}

static enum k3_code parse_check(struct k3_infer_options *o, struct k3_error *err)
{
    static const struct word words[] = {
        {"off", K3_CHECK_OFF}, {"first", K3_CHECK_FIRST}, {"always", K3_CHECK_ALWAYS}};
    int value = (int)o->check;
    const enum k3_code code = parse_word("--check", words, 3, "off, first, always", &value, err);
    o->check = (enum k3_check_policy)value;
    return code;
}

static enum k3_code parse_io(struct k3_infer_options *o, struct k3_error *err)
{
    static const struct word words[] = {
        {"auto", K3_IO_AUTO}, {"mmap", K3_IO_MMAP}, {"read", K3_IO_READ}, {"direct", K3_IO_DIRECT}};
    int value = (int)o->io;
    const enum k3_code code = parse_word("--io", words, 4, "auto, mmap, read, direct", &value, err);
    o->io = (enum k3_io_kind)value;
    return code;
}

static enum k3_code parse_pin(struct k3_infer_options *o, struct k3_error *err)
{
    static const struct word words[] = {{"soft", K3_PIN_SOFT}, {"hard", K3_PIN_HARD}};
    int value = (int)o->pin;
    const enum k3_code code = parse_word("--pin", words, 2, "soft, hard", &value, err);
    o->pin = (enum k3_pin_kind)value;
    return code;
}

static enum k3_code parse_ram(struct k3_infer_options *o, struct k3_error *err)
{
    if (strcmp(optarg, "auto") == 0) {
        o->ram = (struct k3_ram_request){.kind = K3_RAM_AUTO};
        return K3_OK;
    }
    uint64_t bytes = 0;
    const enum k3_code code = k3_arg_size("--ram", optarg, 1, UINT64_MAX, &bytes, err);
    if (code == K3_OK) {
        o->ram = (struct k3_ram_request){.kind = K3_RAM_SIZE, .bytes = bytes};
    }
    return code;
}

static enum k3_code parse_preset(struct k3_infer_options *o, struct k3_error *err)
{
    if (!k3_ram_preset(optarg, &o->ram)) {
        return k3_fail(err, K3_ERR_USAGE, K3_ERROR_NO_OFFSET,
                       "--preset: '%s' is none of laptop, desktop, workstation, server, max",
                       optarg);
    }
    return K3_OK;
}

static enum k3_code parse_stop(const char *text, struct k3_infer_options *o, struct k3_error *err)
{
    if (*text == 0) {
        return k3_fail(err, K3_ERR_USAGE, K3_ERROR_NO_OFFSET, "--stop: the text is empty");
    }
    if (o->stop_count == K3_STOPS_MAX) {
        return k3_fail(err, K3_ERR_USAGE, K3_ERROR_NO_OFFSET, "--stop: more than %d", K3_STOPS_MAX);
    }
    o->stops[o->stop_count++] = text;
    return K3_OK;
}

static enum k3_code parse_u32(const char *name, uint64_t min, uint64_t max, uint32_t *out,
                              struct k3_error *err)
{
    uint64_t value = 0;
    const enum k3_code code = k3_arg_u64(name, optarg, min, max, &value, err);
    if (code == K3_OK) {
        *out = (uint32_t)value;
    }
    return code;
}

static enum k3_code parse_isa(struct k3_infer_options *o, struct k3_error *err)
{
    if (!k3_kernels_by_name(optarg)) {
        return k3_fail(err, K3_ERR_USAGE, K3_ERROR_NO_OFFSET,
                       "--isa: this build or machine has no '%s'; the best here is %s", optarg,
                       k3_kernels_best()->name);
    }
    o->isa = optarg;
    return K3_OK;
}

static enum k3_code take_sampling(int option, struct k3_sampling *s, struct k3_error *err)
{
    switch (option) {
    case OPT_TEMPERATURE:
        return k3_arg_f64("--temperature", optarg, 0, 1000, &s->temperature, err);
    case OPT_TOP_K:
        return parse_u32("--top-k", 0, UINT32_MAX, &s->top_k, err);
    case OPT_TOP_P:
        return k3_arg_f64("--top-p", optarg, 1e-9, 1, &s->top_p, err);
    case OPT_MIN_P:
        return k3_arg_f64("--min-p", optarg, 0, 1, &s->min_p, err);
    default:
        return k3_arg_u64("--seed", optarg, 0, UINT64_MAX, &s->seed, err);
    }
}

static enum k3_code take_option(int option, struct k3_infer_options *o, struct k3_error *err)
{
    switch (option) {
    case OPT_PROMPT:
        o->prompt = optarg;
        return K3_OK;
    case OPT_PROMPT_FILE:
        o->prompt_file = optarg;
        return K3_OK;
    case OPT_IDS:
        o->has_ids = true;
        return parse_ids(optarg, &o->ids, err);
    case 'n':
        return k3_arg_u64("--max-tokens", optarg, 0, POSITIONS_MAX, &o->max_tokens, err);
    case OPT_STOP:
        return parse_stop(optarg, o, err);
    case OPT_THREADS:
        return parse_u32("--threads", 1, K3_POOL_THREADS_MAX, &o->threads, err);
    case OPT_CHUNK:
        return k3_arg_u64("--prefill-chunk", optarg, 1, CHUNK_MAX, &o->chunk, err);
    case OPT_CONTEXT:
        return k3_arg_u64("--context", optarg, 1, POSITIONS_MAX, &o->context, err);
    case OPT_CHECK:
        return parse_check(o, err);
    case OPT_RAM:
        return parse_ram(o, err);
    case OPT_PRESET:
        return parse_preset(o, err);
    case OPT_PLAN:
        o->action = K3_INFER_PLAN;
        return K3_OK;
    case OPT_IO:
        return parse_io(o, err);
    case OPT_PIN:
        return parse_pin(o, err);
    case OPT_ISA:
        return parse_isa(o, err);
    case OPT_LOGITS:
        o->logits_file = optarg;
        return K3_OK;
    case OPT_ALL_LOGITS:
        o->wants_all_logits = true;
        return K3_OK;
    case OPT_IDS_OUT:
        o->ids_file = optarg;
        return K3_OK;
    case OPT_STATS:
        o->stats_file = optarg;
        return K3_OK;
    case OPT_MLA_EPS:
        return k3_arg_f64("--mla-eps", optarg, 1e-12, 1, &o->mla_eps, err);
    case 'q':
        o->level = K3_LEVEL_QUIET;
        return K3_OK;
    case 'h':
        o->action = K3_INFER_HELP;
        return K3_OK;
    case OPT_VERSION:
        o->action = K3_INFER_VERSION;
        return K3_OK;
    default:
        o->has_sampling = o->has_sampling || option != OPT_TEMPERATURE;
        return take_sampling(option, &o->sampling, err);
    }
}

static enum k3_code check_together(const struct k3_infer_options *o, int operands,
                                   struct k3_error *err)
{
    const int prompts = (o->prompt != NULL) + (o->prompt_file != NULL) + o->has_ids;
    if (operands != 1) {
        return k3_fail(err, K3_ERR_USAGE, K3_ERROR_NO_OFFSET,
                       operands == 0 ? "no pack given"
                                     : "more than one pack given; a prompt goes after --prompt");
    }
    if (prompts > 1 || (prompts == 0 && o->action != K3_INFER_PLAN)) {
        return k3_fail(err, K3_ERR_USAGE, K3_ERROR_NO_OFFSET,
                       "give exactly one of --prompt, --prompt-file, --ids");
    }
    if (o->prompt && *o->prompt == 0) {
        return k3_fail(err, K3_ERR_USAGE, K3_ERROR_NO_OFFSET, "the prompt is empty");
    }
    if (o->sampling.temperature == 0.0 && o->has_sampling) {
        return k3_fail(err, K3_ERR_USAGE, K3_ERROR_NO_OFFSET,
                       "--top-k, --top-p, --min-p and --seed need a --temperature above 0");
    }
    if (o->wants_all_logits && !o->logits_file) {
        return k3_fail(err, K3_ERR_USAGE, K3_ERROR_NO_OFFSET, "--all-logits needs --logits FILE");
    }
    return K3_OK;
}

enum k3_code k3_infer_options_parse(int argc, char **argv, struct k3_infer_options *out_options,
                                    struct k3_error *err)
{
    struct k3_infer_options o = {
        .max_tokens = MAX_TOKENS_DEFAULT,
        .sampling = {.top_p = 1.0},
        .mla_eps = 1e-6,
        .check = K3_CHECK_FIRST,
        .level = K3_LEVEL_NORMAL,
    };
    const struct k3_args args = {argc, argv, "n:qh", long_options};
    enum k3_code code = K3_OK;
    k3_args_begin();
    while (code == K3_OK && o.action <= K3_INFER_PLAN) {
        const int option = k3_args_next(&args, err);
        if (option == K3_ARGS_END) {
            break;
        }
        code = option == K3_ARGS_BAD ? K3_ERR_USAGE : take_option(option, &o, err);
    }
    if (code == K3_OK && o.action <= K3_INFER_PLAN) {
        code = check_together(&o, argc - optind, err);
        o.pack_folder = code == K3_OK ? argv[optind] : NULL;
    }
    if (code != K3_OK) {
        k3_infer_options_done(&o);
        return code;
    }
    *out_options = o;
    return K3_OK;
}

void k3_infer_options_done(struct k3_infer_options *options)
{
    k3_token_ids_done(&options->ids);
}
