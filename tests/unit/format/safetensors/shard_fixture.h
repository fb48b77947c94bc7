/* SPDX-License-Identifier: Apache-2.0 */
#ifndef K3_TESTS_UNIT_FORMAT_SAFETENSORS_SHARD_FIXTURE_H
#define K3_TESTS_UNIT_FORMAT_SAFETENSORS_SHARD_FIXTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "format/base/problems.h"

/* The bytes of a shard: length prefix, `json`, data_bytes bytes that count up. The caller frees. */
uint8_t *k3_shard_bytes(const char *json, size_t data_bytes, size_t *out_len);

/* The same, as a file. */
void k3_shard_write(const char *folder, const char *name, const char *json, size_t data_bytes);

/* Writes text as a file. */
void k3_text_write(const char *folder, const char *name, const char *text);

/* One U8 tensor of `bytes` bytes, from `begin`, as a header's member. Static, four at a time. */
const char *k3_u8_member(const char *name, size_t begin, size_t bytes);

/* Is there a line that holds all of these (b may be NULL)? */
bool k3_problems_mention(const struct k3_problems *problems, const char *a, const char *b);

/* All lines, for a failure's message. Static. */
const char *k3_problems_text(const struct k3_problems *problems);

#endif
