/* SPDX-License-Identifier: Apache-2.0 */
#ifndef K3_FORMAT_BASE_JSON_GUARD_H
#define K3_FORMAT_BASE_JSON_GUARD_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

/* json_loadb that survives a failed allocation. jansson (2.14) does not look at each of its own:
 * where a token's buffer cannot grow, the character is dropped and parsing goes on, so that "7168"
 * is read as 716, or, when it was a closing quote, memory is written past its end; elsewhere it
 * leaks. Here a failed allocation leaves the parser at once and frees what it had; `out_why` then
 * has json_error_out_of_memory. Thread-safe. The first call gives jansson our allocator, whose
 * blocks are malloc's, so that values made before or elsewhere stay good. */
json_t *k3_json_guarded_load(const uint8_t *bytes, size_t len, size_t flags, json_error_t *out_why);

#endif
