/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>

#include "format/base/clock.h"
#include "packer/commands.h"
#include "packer/repair.h"

static void put_list(struct k3_json_out *out, const char *key, const struct k3_damage_list *list)
{
    k3_json_array_begin(out, key);
    for (size_t i = 0; i < list->count; i++) {
        k3_damage_put_json(out, NULL, &list->items[i]);
    }
    k3_json_array_end(out);
}

static void put_report(struct k3_json_out *out, const char *key, const struct k3_repair_report *r,
                       double seconds)
{
    k3_json_object_begin(out, key);
    k3_json_string(out, "schema", "k3pack.repair/1");
    k3_json_bool(out, "is_whole", k3_repair_is_whole(r));
    k3_json_u64(out, "checked_bytes", r->checked_bytes);
    k3_json_u64(out, "damaged_blocks", r->bad_blocks);
    k3_json_u64(out, "repaired_blocks", r->mended_blocks);
    k3_json_u64(out, "damaged_experts", r->bad_experts);
    k3_json_u64(out, "repaired_experts", r->mended_experts);
    k3_json_u64(out, "written_bytes", r->written_bytes);
    k3_json_bool(out, "wrote_trunk_tables", r->trunk_tail);
    k3_json_bool(out, "wrote_expert_tables", r->experts_tail);
    k3_json_bool(out, "wrote_index", r->index);
    k3_json_bool(out, "read_all_shards", r->provenance);
    k3_json_f64(out, "seconds", seconds);
    put_list(out, "lacking", &r->lacking);
    put_list(out, "left", &r->left);
    k3_json_object_end(out);
}

static void print_lacking(const struct k3_damage *d)
{
    if (d->shard) {
        printf("lacking: '%s' bytes %" PRIu64 "..%" PRIu64 " (%s): %s\n", d->shard,
               d->source_offset, d->source_offset + d->source_bytes, d->tensor, d->message);
    } else {
        printf("lacking: %s bytes %" PRIu64 "..%" PRIu64 ": %s\n", k3_file_kind_name(d->file),
               d->offset, d->offset + d->bytes, d->message);
    }
}

static void print_text(const struct k3_repair_report *r)
{
    for (size_t i = 0; i < r->lacking.count; i++) {
        print_lacking(&r->lacking.items[i]);
    }
    for (size_t i = 0; i < r->left.count; i++) {
        printf("still damaged: %s: %s\n", k3_file_kind_name(r->left.items[i].file),
               r->left.items[i].message);
    }
    printf("repaired %" PRIu64 " of %" PRIu64 " damaged trunk blocks, %" PRIu64 " of %" PRIu64
           " damaged experts (%" PRIu64 " bytes written)%s%s%s\n",
           r->mended_blocks, r->bad_blocks, r->mended_experts, r->bad_experts, r->written_bytes,
           r->trunk_tail ? ", tables of k3.trunk" : "",
           r->experts_tail ? ", tables of k3.experts" : "", r->index ? ", k3.index" : "");
}

static enum k3_code print(const struct k3_command *command, const struct k3_repair_report *r,
                          double seconds, struct k3_error *err)
{
    struct k3_json_out out = {.stream = stdout};
    if (command->options->json_lines) {
        k3_events_done_begin(command->events, &out);
        put_report(&out, "report", r, seconds);
        return k3_events_done_end(&out, err);
    }
    if (command->options->json) {
        put_report(&out, NULL, r, seconds);
        return k3_json_out_finish(&out, err);
    }
    print_text(r);
    return fflush(stdout) == 0 && !ferror(stdout)
               ? K3_OK
               : k3_fail(err, K3_ERR_IO, K3_ERROR_NO_OFFSET, "cannot write the output");
}

enum k3_code k3_command_repair(const struct k3_command *command)
{
    const struct k3_pack_options *o = command->options;
    struct k3_problems problems = {0};
    struct k3_repair_report report = {0};
    struct k3_error err = {0};
    const uint64_t began = k3_clock_ns();
    k3_events_start(command->events, "repair", o->pack, o->checkpoint);
    enum k3_code code = k3_repair(o->pack, o->checkpoint, o->quick, &o->scope, o->jobs,
                                  command->observer, &problems, &report, &err);
    if (code == K3_OK) {
        code = print(command, &report, (double)(k3_clock_ns() - began) / 1e9, &err);
    }
    if (code != K3_OK) {
        (void)k3_command_fail(command, code, &problems, &err);
    } else if (!k3_repair_is_whole(&report)) {
        code = K3_ERR_DAMAGED;
        k3_message_error(command->messages,
                         "'%s' is still damaged: bring what is lacking into '%s' and run the same "
                         "command again",
                         o->pack, o->checkpoint);
    }
    if (code == K3_ERR_INTERRUPTED) {
        k3_message_error(command->messages, "run the same command again");
    }
    k3_repair_report_done(&report);
    k3_problems_done(&problems);
    return code;
}
