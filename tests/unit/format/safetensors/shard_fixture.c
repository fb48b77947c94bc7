/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/format/safetensors/shard_fixture.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/base/bytes.h"
#include "tests/support/temp_folder.h"

uint8_t *k3_shard_bytes(const char *json, size_t data_bytes, size_t *out_len)
{
    const size_t json_len = strlen(json);
    uint8_t *bytes = malloc(8 + json_len + data_bytes);
    ck_assert_ptr_nonnull(bytes);
    k3_le64_put(bytes, json_len);
    memcpy(bytes + 8, json, json_len);
    for (size_t i = 0; i < data_bytes; i++) {
        bytes[8 + json_len + i] = (uint8_t)i;
    }
    *out_len = 8 + json_len + data_bytes;
    return bytes;
}

void k3_shard_write(const char *folder, const char *name, const char *json, size_t data_bytes)
{
    size_t len = 0;
    uint8_t *bytes = k3_shard_bytes(json, data_bytes, &len);
    k3_temp_file_write(folder, name, bytes, len);
    free(bytes);
}

void k3_text_write(const char *folder, const char *name, const char *text)
{
    k3_temp_file_write(folder, name, text, strlen(text));
}

const char *k3_u8_member(const char *name, size_t begin, size_t bytes)
{
    static char members[4][512];
    static unsigned next;
    char *member = members[next++ % 4];
    snprintf(member, sizeof members[0],
             "\"%s\":{\"dtype\":\"U8\",\"shape\":[%zu],\"data_offsets\":[%zu,%zu]}", name, bytes,
             begin, begin + bytes);
    return member;
}

bool k3_problems_mention(const struct k3_problems *problems, const char *a, const char *b)
{
    for (size_t i = 0; i < problems->line_count; i++) {
        if (strstr(problems->lines[i], a) && (!b || strstr(problems->lines[i], b))) {
            return true;
        }
    }
    return false;
}

const char *k3_problems_text(const struct k3_problems *problems)
{
    static char text[8192];
    size_t used = 0;
    text[0] = 0;
    for (size_t i = 0; i < problems->line_count && used < sizeof text - 1; i++) {
        const int len = snprintf(text + used, sizeof text - used, "\n  %s", problems->lines[i]);
        used += (size_t)len;
    }
    return text;
}
