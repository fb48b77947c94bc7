/* SPDX-License-Identifier: Apache-2.0 */
#ifndef K3_PACKER_OPTIONS_H
#define K3_PACKER_OPTIONS_H

#include <stdbool.h>

#include "format/base/error.h"
#include "format/tool/message.h"
#include "packer/verify_scope.h"

enum k3_pack_verb {
    K3_VERB_PACK,
    K3_VERB_PLAN,
    K3_VERB_VERIFY,
    K3_VERB_REPAIR,
    K3_VERB_EXPORT,
    K3_VERB_LIST,
    K3_VERB_HELP,
    K3_VERB_VERSION
};

/* argv, understood. Strings are borrowed from argv. */
struct k3_pack_options {
    enum k3_pack_verb verb;
    const char *checkpoint; /* pack, plan, repair; verify: --against, or NULL */
    const char *pack;       /* pack, verify, repair, export, list           */
    const char *folder;     /* export: where to                       */
    bool quick;             /* verify                                 */
    const char *manifest;   /* pack: --sha256, or NULL                */
    bool restart;           /* pack                                   */
    bool json, json_lines;
    unsigned jobs;                /* pack, verify: threads; chosen by the machine where not given */
    struct k3_verify_scope scope; /* verify */
    enum k3_level level;
};

/* Errors: USAGE, one line that says what is wrong. */
K3_MUST_CHECK enum k3_code k3_pack_options_parse(int argc, char **argv,
                                                 struct k3_pack_options *out_options,
                                                 struct k3_error *err);

/* The --help text. */
extern const char k3_pack_help[];

#endif
