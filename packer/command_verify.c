/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>

#include "format/tool/json_out.h"
#include "format/tool/progress.h"
#include "format/tool/size_text.h"
#include "packer/against.h"
#include "packer/commands.h"

/* What was found, besides the damage. */
struct outcome {
    const struct k3_verify_scope *scope;
    bool is_quick, is_compared;
    struct k3_against_report against;
    double seconds;
};

/* What was read of it, where that is not everything. */
static void put_scope(struct k3_json_out *out, const struct k3_verify *v,
                      const struct k3_verify_scope *scope)
{
    char text[K3_SCOPE_TEXT_BYTES];
    k3_scope_format(scope, text);
    k3_json_object_begin(out, "scope");
    k3_json_string(out, "text", text);
    if (scope->has_layers) {
        k3_json_u64(out, "first_layer", scope->first_layer);
        k3_json_u64(out, "last_layer", scope->last_layer);
    }
    if (scope->sample_percent > 0) {
        k3_json_f64(out, "sample_percent", scope->sample_percent);
    }
    k3_json_u64(out, "checked_units", v->chosen_units);
    k3_json_u64(out, "all_units", v->all_units);
    k3_json_object_end(out);
}

static void put_report(struct k3_json_out *out, const char *key, const struct k3_verify *v,
                       const struct outcome *o)
{
    k3_json_object_begin(out, key);
    k3_json_string(out, "schema", "k3pack.verify/1");
    k3_json_bool(out, "is_good", v->damage.total == 0);
    if (v->has_pack_id) {
        k3_json_digest(out, "pack_id", &v->pack_id);
    }
    k3_json_bool(out, "is_quick", o->is_quick);
    k3_json_bool(out, "is_partial", o->is_quick || k3_scope_is_partial(o->scope));
    if (k3_scope_is_partial(o->scope)) {
        put_scope(out, v, o->scope);
    }
    k3_json_u64(out, "checked_bytes", v->checked_bytes);
    k3_json_u64(out, "checked_blocks", v->checked_blocks);
    k3_json_u64(out, "checked_experts", v->checked_experts);
    if (o->is_compared) {
        k3_json_u64(out, "equal_tensors", o->against.tensors);
        k3_json_u64(out, "equal_bytes", o->against.bytes);
    }
    k3_json_f64(out, "seconds", o->seconds);
    k3_json_u64(out, "damage_count", v->damage.total);
    k3_json_array_begin(out, "damage");
    for (size_t i = 0; i < v->damage.count; i++) {
        k3_damage_put_json(out, NULL, &v->damage.items[i]);
    }
    k3_json_array_end(out);
    k3_json_object_end(out);
}

static enum k3_code print_json(const struct k3_verify *v, const struct outcome *o,
                               struct k3_error *err)
{
    struct k3_json_out out = {.stream = stdout, .flat_depth = 3};
    put_report(&out, NULL, v, o);
    return k3_json_out_finish(&out, err);
}

static enum k3_code print_event(struct k3_events *events, const struct k3_verify *v,
                                const struct outcome *o, struct k3_error *err)
{
    struct k3_json_out out;
    k3_events_done_begin(events, &out);
    put_report(&out, "report", v, o);
    return k3_events_done_end(&out, err);
}

static void print_damage(const struct k3_damage *d)
{
    printf("%s", k3_file_kind_name(d->file));
    if (d->bytes > 0) {
        printf(" bytes %" PRIu64 "..%" PRIu64, d->offset, d->offset + d->bytes);
    }
    printf(": ");
    if (d->tensor[0]) {
        printf("%s: ", d->tensor);
    } else if (d->has_expert) {
        printf("layer %u expert %u: ", d->layer, d->expert);
    } else if (d->layer != K3_TOP_LEVEL) {
        printf("layer %u: ", d->layer);
    }
    printf("%s", d->message);
    if (d->shard) {
        printf(" (made from '%s' bytes %" PRIu64 "..%" PRIu64 ")", d->shard, d->source_offset,
               d->source_offset + d->source_bytes);
    }
    printf("\n");
}

static enum k3_code print_text(const struct k3_verify *v, const struct outcome *o,
                               struct k3_error *err)
{
    for (size_t i = 0; i < v->damage.count; i++) {
        print_damage(&v->damage.items[i]);
    }
    if (v->damage.total > v->damage.count) {
        printf("and %" PRIu64 " more\n", v->damage.total - v->damage.count);
    }
    if (v->damage.total == 0) {
        char hex[K3_DIGEST_HEX_BYTES], bytes[K3_SIZE_TEXT_BYTES], rate[K3_SIZE_TEXT_BYTES];
        k3_digest_hex(&v->pack_id, hex);
        k3_size_format(v->checked_bytes, bytes);
        k3_size_format((uint64_t)((double)v->checked_bytes / (o->seconds > 0 ? o->seconds : 1)),
                       rate);
        if (k3_scope_is_partial(o->scope)) {
            char text[K3_SCOPE_TEXT_BYTES];
            k3_scope_format(o->scope, text);
            printf("no damage in what was read, which is not everything: %s (%" PRIu64
                   " of %" PRIu64 " blocks and experts, %s); pack %s\n",
                   text, v->chosen_units, v->all_units, bytes, hex);
        } else if (o->is_quick) {
            printf("good as far as a quick check goes (no weights were read): pack %s\n", hex);
        } else {
            printf("good: pack %s, %s read (%s/s)\n", hex, bytes, rate);
        }
        if (o->is_compared) {
            printf("equal to the checkpoint: %" PRIu64 " tensors, %" PRIu64 " bytes\n",
                   o->against.tensors, o->against.bytes);
        }
    }
    return fflush(stdout) == 0 && !ferror(stdout)
               ? K3_OK
               : k3_fail(err, K3_ERR_IO, K3_ERROR_NO_OFFSET, "cannot write the output");
}

static void on_damage(void *user, const struct k3_damage *damage)
{
    k3_events_damage(user, damage);
}

/* Events for what was found so far, and from now on. */
static void announce_damage(const struct k3_command *command, struct k3_damage_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        k3_events_damage(command->events, &list->items[i]);
    }
    list->on_add = on_damage;
    list->user = command->events;
}

static enum k3_code verify(const struct k3_command *command, struct k3_verify *v,
                           struct outcome *outcome, struct k3_problems *problems,
                           struct k3_error *err)
{
    const struct k3_pack_options *o = command->options;
    const uint64_t began = k3_clock_ns();
    struct k3_verify_scope scope = o->scope;
    scope.sample_seed = began;
    enum k3_code code = k3_verify_structure(o->pack, command->observer, v, err);
    if (code == K3_OK) {
        announce_damage(command, &v->damage);
    }
    if (code == K3_OK && !o->quick) {
        code = k3_verify_data(v, &scope, o->jobs, err);
    }
    outcome->seconds = (double)(k3_clock_ns() - began) / 1e9;
    if (code == K3_OK && o->checkpoint) {
        code = k3_verify_against(v, o->checkpoint, problems, &outcome->against, err);
        outcome->is_compared = code == K3_OK;
    }
    return code;
}

/* What to do about it. */
static void advise(const struct k3_command *command, const struct k3_verify *v, enum k3_code code)
{
    const struct k3_pack_options *o = command->options;
    bool is_damaged = false;
    for (size_t i = 0; i < v->damage.count && !is_damaged; i++) {
        is_damaged = v->damage.items[i].kind != K3_DAMAGE_DIFFERENCE;
    }
    if (code == K3_ERR_DAMAGED && is_damaged) {
        k3_message_info(
            command->messages, K3_LEVEL_NORMAL,
            "what is damaged can be made again from the shards: k3pack --repair '%s' %s", o->pack,
            o->checkpoint ? o->checkpoint : "CHECKPOINT_DIR");
    } else if (code == K3_ERR_DAMAGED && o->checkpoint) {
        k3_message_info(command->messages, K3_LEVEL_NORMAL,
                        "the pack itself is whole: it was made from other bytes than those of '%s'",
                        o->checkpoint);
    }
}

enum k3_code k3_command_verify(const struct k3_command *command)
{
    struct k3_verify v = {0};
    struct k3_problems problems = {0};
    struct k3_error err = {0};
    const struct k3_pack_options *o = command->options;
    struct outcome outcome = {.scope = &o->scope, .is_quick = o->quick};
    k3_events_start(command->events, "verify", o->pack, o->checkpoint);
    enum k3_code code = verify(command, &v, &outcome, &problems, &err);
    if (code != K3_OK && v.damage.total > 0) {
        /* What was found is told in any case; the reason why no more was comes first. */
        (void)k3_command_fail(command, code, &problems, &err);
    }
    if (code == K3_OK || v.damage.total > 0) {
        k3_message_wipe_line(command->messages);
        const enum k3_code printed = o->json_lines
                                         ? print_event(command->events, &v, &outcome, &err)
                                     : o->json ? print_json(&v, &outcome, &err)
                                               : print_text(&v, &outcome, &err);
        code = printed == K3_OK ? k3_damage_result(&v.damage, o->pack, &err) : printed;
        if (code != K3_OK) {
            k3_message_error(command->messages, "%s", err.message);
        }
        advise(command, &v, code);
    } else {
        (void)k3_command_fail(command, code, &problems, &err);
    }
    if (v.folder) {
        k3_verify_done(&v);
    }
    k3_problems_done(&problems);
    return code;
}
