/* SPDX-License-Identifier: Apache-2.0 */
#ifndef K3_FORMAT_TOOL_ARGS_H
#define K3_FORMAT_TOOL_ARGS_H

#include <getopt.h>
#include <stdint.h>

#include "format/base/error.h"

/* getopt_long with our own messages, and strict values. Options and operands may be mixed; "--"
 * ends the options. */
struct k3_args {
    int argc;
    char **argv;
    const char *short_options;         /* as getopt takes them, without a leading ':' or '-' */
    const struct option *long_options; /* ends with zeros                                    */
};

#define K3_ARGS_END (-1)
#define K3_ARGS_BAD (-2)

/* Before the first k3_args_next of a program (tests parse more than once). */
void k3_args_begin(void);

/* The next option's `val`, its value being in `optarg`; K3_ARGS_END when only operands are left:
 * argv[optind..argc). K3_ARGS_BAD: an option that is not known, ambiguous or lacks its value; `err`
 * says which (USAGE). */
int k3_args_next(const struct k3_args *args, struct k3_error *err);

/* Values. `option` is the name for messages: "--threads". Only decimal digits are numbers: no sign,
 * no space, no "1e3" where an integer is meant. Errors: USAGE, naming option, value and bounds. */
K3_MUST_CHECK enum k3_code k3_arg_u64(const char *option, const char *text, uint64_t min,
                                      uint64_t max, uint64_t *out_value, struct k3_error *err);

/* A finite decimal number: "0.7", "-1", "1e-5". Not hexadecimal, not "nan". */
K3_MUST_CHECK enum k3_code k3_arg_f64(const char *option, const char *text, double min, double max,
                                      double *out_value, struct k3_error *err);

/* "A-B" (both included, A <= B) or "A" alone. */
K3_MUST_CHECK enum k3_code k3_arg_range(const char *option, const char *text, uint64_t min,
                                        uint64_t max, uint64_t *out_first, uint64_t *out_last,
                                        struct k3_error *err);

/* k3_size_parse with the option named and bounds. */
K3_MUST_CHECK enum k3_code k3_arg_size(const char *option, const char *text, uint64_t min_bytes,
                                       uint64_t max_bytes, uint64_t *out_bytes,
                                       struct k3_error *err);

#endif
