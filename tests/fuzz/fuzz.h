/* SPDX-License-Identifier: Apache-2.0 */
#ifndef K3_TESTS_FUZZ_FUZZ_H
#define K3_TESTS_FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>

/* libFuzzer's entry point: bytes in memory, no files. Returns 0. */
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

#endif
