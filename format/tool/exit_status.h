/* SPDX-License-Identifier: Apache-2.0 */
#ifndef K3_FORMAT_TOOL_EXIT_STATUS_H
#define K3_FORMAT_TOOL_EXIT_STATUS_H

#include "format/base/error.h"

/* What a process tells its caller, in the numbers of <sysexits.h>. The man pages and the tests hold
 * the same table. */
enum k3_exit {
    K3_EXIT_OK = 0,
    K3_EXIT_USAGE = 64,       /* the command line is wrong                        */
    K3_EXIT_DATA = 65,        /* input or pack malformed or damaged               */
    K3_EXIT_NO_INPUT = 66,    /* a file or folder is not there                    */
    K3_EXIT_UNSUPPORTED = 69, /* the input needs a feature that this build lacks  */
    K3_EXIT_INTERNAL = 70,    /* our bug                                          */
    K3_EXIT_SYSTEM = 71,      /* memory or another resource of the system is gone */
    K3_EXIT_CANT_CREATE = 73, /* an output cannot be created                      */
    K3_EXIT_IO = 74,          /* reading or writing failed, disk full included    */
    K3_EXIT_AGAIN = 75,       /* interrupted or busy; the same command resumes    */
    K3_EXIT_BUDGET = 78       /* the memory budget is below the floor             */
};

/* K3_OK is 0; a code that is none is K3_EXIT_INTERNAL. */
int k3_exit_status(enum k3_code code);

#endif
