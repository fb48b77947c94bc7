/* SPDX-License-Identifier: Apache-2.0 */
#include "format/base/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static void fill(struct k3_error *err, enum k3_code code, int os_errno, uint64_t file_offset,
                 const char *format, va_list args) K3_PRINTF(5, 0);

static void fill(struct k3_error *err, enum k3_code code, int os_errno, uint64_t file_offset,
                 const char *format, va_list args)
{
    err->code = code;
    err->os_errno = os_errno;
    err->file_offset = file_offset;
    vsnprintf(err->message, sizeof err->message, format, args);
}

enum k3_code k3_fail(struct k3_error *err, enum k3_code code, uint64_t file_offset,
                     const char *format, ...)
{
    if (err) {
        va_list args;
        va_start(args, format);
        fill(err, code, 0, file_offset, format, args);
        va_end(args);
    }
    return code;
}

enum k3_code k3_fail_errno(struct k3_error *err, enum k3_code code, int os_errno,
                           uint64_t file_offset, const char *format, ...)
{
    if (os_errno == ENOMEM) {
        code = K3_ERR_NO_MEMORY;
    }
    if (err) {
        va_list args;
        va_start(args, format);
        fill(err, code, os_errno, file_offset, format, args);
        va_end(args);
        char reason[128];
        /* The POSIX strerror_r (the feature macros ask for it): safe from any thread. */
        if (strerror_r(os_errno, reason, sizeof reason) != 0) {
            snprintf(reason, sizeof reason, "error %d", os_errno);
        }
        const size_t used = strlen(err->message);
        snprintf(err->message + used, sizeof err->message - used, ": %s", reason);
    }
    return code;
}

enum k3_code k3_fail_no_memory(struct k3_error *err, const char *what)
{
    return k3_fail_errno(err, K3_ERR_NO_MEMORY, ENOMEM, K3_ERROR_NO_OFFSET, "%s", what);
}

enum k3_code k3_error_context(struct k3_error *err, enum k3_code code, const char *format, ...)
{
    if (err) {
        char inner[sizeof err->message];
        memcpy(inner, err->message, sizeof inner);
        va_list args;
        va_start(args, format);
        vsnprintf(err->message, sizeof err->message, format, args);
        va_end(args);
        const size_t used = strlen(err->message);
        snprintf(err->message + used, sizeof err->message - used, ": %s", inner);
    }
    return code;
}

const char *k3_code_name(enum k3_code code)
{
    switch (code) {
    case K3_OK:
        return "ok";
    case K3_ERR_USAGE:
        return "usage";
    case K3_ERR_NO_INPUT:
        return "no_input";
    case K3_ERR_MALFORMED:
        return "malformed";
    case K3_ERR_DAMAGED:
        return "damaged";
    case K3_ERR_UNSUPPORTED:
        return "unsupported";
    case K3_ERR_BUDGET:
        return "budget";
    case K3_ERR_NO_MEMORY:
        return "no_memory";
    case K3_ERR_IO:
        return "io";
    case K3_ERR_CANT_CREATE:
        return "cant_create";
    case K3_ERR_BUSY:
        return "busy";
    case K3_ERR_INTERRUPTED:
        return "interrupted";
    }
    return "unknown";
}
