/* SPDX-License-Identifier: Apache-2.0 */
#ifndef K3_FORMAT_BASE_ERROR_H
#define K3_FORMAT_BASE_ERROR_H

#include <stdint.h>

/* One error type for every library in the tree: owned by the caller, no allocation, no globals,
 * safe from any thread. Functions return the code and, on failure, describe the fact in `err`
 * (which may be NULL). Outputs are untouched on failure. */

enum k3_code {
    K3_OK = 0,
    K3_ERR_USAGE,       /* the command line or an option is wrong                     */
    K3_ERR_NO_INPUT,    /* a file or folder that should be read is not there          */
    K3_ERR_MALFORMED,   /* bytes that cannot mean what their format says              */
    K3_ERR_DAMAGED,     /* bytes that contradict their digest, or numbers not finite  */
    K3_ERR_UNSUPPORTED, /* valid, but this build lacks the feature                    */
    K3_ERR_BUDGET,      /* does not fit the memory that was given                     */
    K3_ERR_NO_MEMORY,   /* the system had no memory or other resource left            */
    K3_ERR_IO,          /* reading or writing failed                                  */
    K3_ERR_CANT_CREATE, /* an output cannot be created                                */
    K3_ERR_BUSY,        /* another process works on the same target                   */
    K3_ERR_INTERRUPTED  /* stopped on request; a rerun resumes                        */
};

#define K3_ERROR_NO_OFFSET UINT64_MAX

struct k3_error {
    enum k3_code code;
    int os_errno;         /* 0 unless the system said no                     */
    uint64_t file_offset; /* where in the file, or K3_ERROR_NO_OFFSET        */
    char message[480];    /* for people: what, where, why; no full stop      */
};

#if defined(__GNUC__)
#define K3_MUST_CHECK                 __attribute__((warn_unused_result))
#define K3_PRINTF(format_at, args_at) __attribute__((format(printf, format_at, args_at)))
#else
#define K3_MUST_CHECK
#define K3_PRINTF(format_at, args_at)
#endif

/* Fills `err` (NULL is fine) and returns `code`, so that failing is one statement. */
enum k3_code k3_fail(struct k3_error *err, enum k3_code code, uint64_t file_offset,
                     const char *format, ...) K3_PRINTF(4, 5);

/* The same with the system's reason appended. ENOMEM becomes K3_ERR_NO_MEMORY. */
enum k3_code k3_fail_errno(struct k3_error *err, enum k3_code code, int os_errno,
                           uint64_t file_offset, const char *format, ...) K3_PRINTF(5, 6);

/* Out of memory while making `what`. */
enum k3_code k3_fail_no_memory(struct k3_error *err, const char *what);

/* Puts "context: " in front of the message: callers add what they know. Returns err's code. */
enum k3_code k3_error_context(struct k3_error *err, enum k3_code code, const char *format, ...)
    K3_PRINTF(3, 4);

/* "malformed", "damaged", ...: the word that JSON reports use. */
const char *k3_code_name(enum k3_code code);

#endif
