/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "packer/commands.h"
#include "packer/list.h"

enum k3_code k3_command_list(const struct k3_command *command)
{
    struct k3_listing listing;
    const struct k3_problems none = {0};
    struct k3_error err = {0};
    enum k3_code code = k3_listing_open(command->options->pack, &listing, &err);
    if (code == K3_OK) {
        const bool with_tensors = command->options->level >= K3_LEVEL_VERBOSE;
        code = command->options->json ? k3_list_json(&listing, stdout, &err)
                                      : k3_list_text(&listing, with_tensors, stdout, &err);
        k3_listing_close(&listing);
    }
    return code == K3_OK ? code : k3_command_fail(command, code, &none, &err);
}
