/* SPDX-License-Identifier: Apache-2.0 */
#include "format/tool/exit_status.h"

int k3_exit_status(enum k3_code code)
{
    switch (code) {
    case K3_OK:
        return K3_EXIT_OK;
    case K3_ERR_USAGE:
        return K3_EXIT_USAGE;
    case K3_ERR_NO_INPUT:
        return K3_EXIT_NO_INPUT;
    case K3_ERR_MALFORMED:
    case K3_ERR_DAMAGED:
        return K3_EXIT_DATA;
    case K3_ERR_UNSUPPORTED:
        return K3_EXIT_UNSUPPORTED;
    case K3_ERR_BUDGET:
        return K3_EXIT_BUDGET;
    case K3_ERR_NO_MEMORY:
        return K3_EXIT_SYSTEM;
    case K3_ERR_IO:
        return K3_EXIT_IO;
    case K3_ERR_CANT_CREATE:
        return K3_EXIT_CANT_CREATE;
    case K3_ERR_BUSY:
    case K3_ERR_INTERRUPTED:
        return K3_EXIT_AGAIN;
    }
    return K3_EXIT_INTERNAL;
}
