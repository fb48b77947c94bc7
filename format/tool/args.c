/* SPDX-License-Identifier: Apache-2.0 */
#include "format/tool/args.h"

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/base/ckd.h"
#include "format/tool/size_text.h"

void k3_args_begin(void)
{
    optind = 0; /* glibc: start over, forgetting a half-read cluster of short options */
    opterr = 0; /* we print our own messages */
}

/* Values of long options lie outside the characters, so optopt tells the two apart. */
static void describe_bad(const struct k3_args *args, bool lacks_value, int at, struct k3_error *err)
{
    const char *word = at > 0 && at < args->argc ? args->argv[at] : "?";
    const bool is_long = strncmp(word, "--", 2) == 0;
    if (is_long && !lacks_value && optopt != 0) {
        (void)k3_fail(err, K3_ERR_USAGE, K3_ERROR_NO_OFFSET, "option '%.60s' takes no value", word);
    } else if (is_long) {
        (void)k3_fail(err, K3_ERR_USAGE, K3_ERROR_NO_OFFSET,
                      lacks_value ? "option '%.60s' needs a value"
                                  : "unknown or ambiguous option '%.60s'",
                      word);
    } else {
        (void)k3_fail(err, K3_ERR_USAGE, K3_ERROR_NO_OFFSET,
                      lacks_value ? "option '-%c' needs a value" : "unknown option '-%c'",
                      optopt > 0x20 && optopt < 0x7f ? optopt : '?');
    }
}

int k3_args_next(const struct k3_args *args, struct k3_error *err)
{
    char short_options[128];
    snprintf(short_options, sizeof short_options, ":%s", args->short_options);
    const int c = getopt_long(args->argc, args->argv, short_options, args->long_options, NULL);
    if (c == '?' || c == ':') {
        describe_bad(args, c == ':', optind - 1, err);
        return K3_ARGS_BAD;
    }
    return c < 0 ? K3_ARGS_END : c;
}

/* All of text is decimal digits, and they fit. */
static bool parse_u64(const char *text, size_t len, uint64_t *out_value)
{
    uint64_t value = 0;
    for (size_t i = 0; i < len; i++) {
        if (text[i] < '0' || text[i] > '9' || ckd_mul(&value, value, 10U) ||
            ckd_add(&value, value, (uint64_t)(text[i] - '0'))) {
            return false;
        }
    }
    *out_value = value;
    return len > 0;
}

enum k3_code k3_arg_u64(const char *option, const char *text, uint64_t min, uint64_t max,
                        uint64_t *out_value, struct k3_error *err)
{
    uint64_t value = 0;
    if (!parse_u64(text, strlen(text), &value) || value < min || value > max) {
        return k3_fail(err, K3_ERR_USAGE, K3_ERROR_NO_OFFSET,
                       "%s: '%.40s' is not a whole number from %" PRIu64 " to %" PRIu64, option,
                       text, min, max);
    }
    *out_value = value;
    return K3_OK;
}

enum k3_code k3_arg_f64(const char *option, const char *text, double min, double max,
                        double *out_value, struct k3_error *err)
{
    /* strtod also takes leading space, "nan", "inf" and hexadecimal: only these characters pass. */
    const size_t len = strlen(text);
    char *end = NULL;
    const bool is_plain = len > 0 && strspn(text, "0123456789+-.eE") == len;
    const double value = is_plain ? strtod(text, &end) : 0;
    if (!is_plain || *end != '\0' || !isfinite(value) || value < min || value > max) {
        return k3_fail(err, K3_ERR_USAGE, K3_ERROR_NO_OFFSET,
                       "%s: '%.40s' is not a number from %g to %g", option, text, min, max);
    }
    *out_value = value;
    return K3_OK;
}

enum k3_code k3_arg_range(const char *option, const char *text, uint64_t min, uint64_t max,
                          uint64_t *out_first, uint64_t *out_last, struct k3_error *err)
{
    const char *dash = strchr(text, '-');
    const char *second = dash ? dash + 1 : text;
    uint64_t first = 0, last = 0;
    if (!parse_u64(text, dash ? (size_t)(dash - text) : strlen(text), &first) ||
        !parse_u64(second, strlen(second), &last) || first > last || first < min || last > max) {
        return k3_fail(err, K3_ERR_USAGE, K3_ERROR_NO_OFFSET,
                       "%s: '%.40s' is not a range A-B with %" PRIu64 " <= A <= B <= %" PRIu64,
                       option, text, min, max);
    }
    *out_first = first;
    *out_last = last;
    return K3_OK;
}

enum k3_code k3_arg_size(const char *option, const char *text, uint64_t min_bytes,
                         uint64_t max_bytes, uint64_t *out_bytes, struct k3_error *err)
{
    uint64_t bytes = 0;
    const enum k3_code code = k3_size_parse(text, &bytes, err);
    if (code != K3_OK) {
        return k3_error_context(err, code, "%s", option);
    }
    if (bytes < min_bytes || bytes > max_bytes) {
        char least[K3_SIZE_TEXT_BYTES], most[K3_SIZE_TEXT_BYTES];
        k3_size_format(min_bytes, least);
        k3_size_format(max_bytes, most);
        return k3_fail(err, K3_ERR_USAGE, K3_ERROR_NO_OFFSET, "%s: '%.40s' is not from %s to %s",
                       option, text, least, most);
    }
    *out_bytes = bytes;
    return K3_OK;
}
