/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>

#include "format/tool/json_out.h"
#include "packer/commands.h"
#include "packer/export.h"

static enum k3_code print_json(const struct k3_export_report *r, struct k3_error *err)
{
    struct k3_json_out out = {.stream = stdout};
    k3_json_object_begin(&out, NULL);
    k3_json_string(&out, "schema", "k3pack.export/1");
    k3_json_u64(&out, "shards", r->shards);
    k3_json_u64(&out, "tensors", r->tensors);
    k3_json_u64(&out, "bytes", r->bytes);
    k3_json_object_end(&out);
    return k3_json_out_finish(&out, err);
}

enum k3_code k3_command_export(const struct k3_command *command)
{
    const struct k3_pack_options *o = command->options;
    const struct k3_problems none = {0};
    struct k3_export_report report = {0};
    struct k3_error err = {0};
    enum k3_code code = k3_export(o->pack, o->folder, command->observer, &report, &err);
    if (code == K3_OK && o->json) {
        code = print_json(&report, &err);
    } else if (code == K3_OK) {
        k3_message_info(command->messages, K3_LEVEL_NORMAL,
                        "exported %" PRIu64 " tensors to %" PRIu64 " shards, %" PRIu64 " bytes",
                        report.tensors, report.shards, report.bytes);
    }
    return code == K3_OK ? code : k3_command_fail(command, code, &none, &err);
}
