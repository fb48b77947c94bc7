/* SPDX-License-Identifier: Apache-2.0 */
#include "packer/verify_scope.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "format/tool/args.h"

static enum k3_code parse_choice(const char *text, size_t len, struct k3_expert_choice *out_choice,
                                 struct k3_error *err)
{
    char item[64];
    const char *colon = memchr(text, ':', len);
    if (len >= sizeof item || !colon) {
        return k3_fail(err, K3_ERR_USAGE, K3_ERROR_NO_OFFSET,
                       "--experts: '%.*s' is not LAYER:EXPERT or LAYER:A-B", (int)(len & 63), text);
    }
    memcpy(item, text, len);
    item[len] = '\0';
    item[colon - text] = '\0';
    uint64_t layer = 0, first = 0, last = 0;
    enum k3_code code = k3_arg_u64("--experts", item, 0, K3_LAYERS_MAX - 1, &layer, err);
    if (code == K3_OK) {
        code = k3_arg_range("--experts", item + (colon - text) + 1, 0, K3_EXPERTS_MAX - 1, &first,
                            &last, err);
    }
    if (code == K3_OK) {
        *out_choice = (struct k3_expert_choice){(uint32_t)layer, (uint32_t)first, (uint32_t)last};
    }
    return code;
}

enum k3_code k3_scope_parse_experts(const char *text, struct k3_verify_scope *scope,
                                    struct k3_error *err)
{
    for (const char *p = text;; p++) {
        const size_t len = strcspn(p, ",");
        if (scope->expert_count == K3_SCOPE_EXPERTS_MAX) {
            return k3_fail(err, K3_ERR_USAGE, K3_ERROR_NO_OFFSET,
                           "--experts: more than %u items; name whole layers with --layers",
                           K3_SCOPE_EXPERTS_MAX);
        }
        const enum k3_code code = parse_choice(p, len, &scope->experts[scope->expert_count], err);
        if (code != K3_OK) {
            return code;
        }
        scope->expert_count++;
        p += len;
        if (*p == '\0') {
            return K3_OK;
        }
    }
}

enum k3_code k3_scope_parse_sample(const char *text, struct k3_verify_scope *scope,
                                   struct k3_error *err)
{
    char number[32];
    size_t len = strlen(text);
    len -= len > 0 && text[len - 1] == '%';
    if (len >= sizeof number) {
        return k3_fail(err, K3_ERR_USAGE, K3_ERROR_NO_OFFSET, "--sample: '%.40s' is not a number",
                       text);
    }
    memcpy(number, text, len);
    number[len] = '\0';
    return k3_arg_f64("--sample", number, 1e-6, 100, &scope->sample_percent, err);
}

static enum k3_code check_layer(uint32_t layer, const struct k3_pack_tables *tables,
                                const char *option, struct k3_error *err)
{
    return layer < tables->spec.layers ? K3_OK
                                       : k3_fail(err, K3_ERR_USAGE, K3_ERROR_NO_OFFSET,
                                                 "%s: there is no layer %u, layers are 0..%u",
                                                 option, layer, tables->spec.layers - 1);
}

enum k3_code k3_scope_check(const struct k3_verify_scope *scope,
                            const struct k3_pack_tables *tables, struct k3_error *err)
{
    const struct k3_expert_layout *layout = &tables->layout;
    enum k3_code code =
        scope->has_layers ? check_layer(scope->last_layer, tables, "--layers", err) : K3_OK;
    for (unsigned i = 0; code == K3_OK && i < scope->expert_count; i++) {
        const struct k3_expert_choice *c = &scope->experts[i];
        code = check_layer(c->layer, tables, "--experts", err);
        if (code == K3_OK && (c->layer < layout->first_layer || c->last >= layout->expert_count)) {
            code = k3_fail(err, K3_ERR_USAGE, K3_ERROR_NO_OFFSET,
                           "--experts: there is no expert %u:%u; layers %u..%u have experts 0..%u",
                           c->layer, c->last, layout->first_layer, tables->spec.layers - 1,
                           layout->expert_count - 1);
        }
    }
    return code;
}

/* A fair coin for every unit, the same each time it is asked. */
static bool is_in_sample(const struct k3_verify_scope *scope, uint64_t unit)
{
    if (scope->sample_percent <= 0) {
        return true;
    }
    uint64_t x = scope->sample_seed + unit * UINT64_C(0x9e3779b97f4a7c15); /* splitmix64 */
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    x ^= x >> 31;
    return (double)(x >> 11) * 0x1p-53 * 100 < scope->sample_percent;
}

static bool has_layer(const struct k3_verify_scope *scope, uint32_t layer)
{
    return scope->has_layers ? layer >= scope->first_layer && layer <= scope->last_layer
                             : scope->expert_count == 0;
}

bool k3_scope_has_block(const struct k3_verify_scope *scope, const struct k3_trunk_extent *extent,
                        uint32_t block)
{
    return has_layer(scope, extent->layer) &&
           is_in_sample(scope, (uint64_t)extent->block_first + block);
}

bool k3_scope_has_expert(const struct k3_verify_scope *scope, const struct k3_expert_layout *layout,
                         uint64_t expert)
{
    const uint32_t layer = layout->first_layer + (uint32_t)(expert / layout->expert_count);
    const uint32_t number = (uint32_t)(expert % layout->expert_count);
    bool is_named = has_layer(scope, layer);
    for (unsigned i = 0; !is_named && i < scope->expert_count; i++) {
        const struct k3_expert_choice *c = &scope->experts[i];
        is_named = layer == c->layer && number >= c->first && number <= c->last;
    }
    return is_named && is_in_sample(scope, ~expert);
}

void k3_scope_format(const struct k3_verify_scope *scope, char out_text[K3_SCOPE_TEXT_BYTES])
{
    const size_t room = K3_SCOPE_TEXT_BYTES;
    size_t at = 0;
    out_text[0] = '\0';
    if (scope->has_layers) {
        at +=
            (size_t)snprintf(out_text, room, "layers %u-%u", scope->first_layer, scope->last_layer);
    }
    for (unsigned i = 0; i < scope->expert_count && at < room - 80; i++) {
        const struct k3_expert_choice *c = &scope->experts[i];
        at += (size_t)snprintf(out_text + at, room - at, "%s%u:%u-%u",
                               i > 0    ? ","
                               : at > 0 ? " and experts "
                                        : "experts ",
                               c->layer, c->first, c->last);
        if (at >= room - 80 && i + 1 < scope->expert_count) {
            at += (size_t)snprintf(out_text + at, room - at, ",...");
        }
    }
    if (scope->sample_percent > 0) {
        (void)snprintf(out_text + at, room - at, "%sa random sample of %g %%",
                       at > 0 ? ", of that " : "", scope->sample_percent);
    }
}
