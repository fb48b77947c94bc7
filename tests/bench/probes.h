/* SPDX-License-Identifier: Apache-2.0 */
#ifndef K3_TESTS_BENCH_PROBES_H
#define K3_TESTS_BENCH_PROBES_H

#include <stddef.h>
#include <stdint.h>

/* What the machine can do, to compare kernels with: reading memory and multiplying. */

/* Reads `bytes` (a multiple of 4096) once and returns something that depends on them. Patterns
 * differ in the number of streams, and in whether all of a line or one word of it is loaded: the
 * best one is the read limit. */
#define PROBE_PATTERNS 6
uint64_t probe_read(const uint8_t *memory, size_t bytes, int pattern);
const char *probe_pattern_name(int pattern);

/* Independent fused multiply-adds of a tier's vectors ("avx512", "avx2", ...) in registers; returns
 * how many floating-point operations were done (two per element), 0 for an unknown tier. */
double probe_fma(const char *tier, size_t rounds, float *out_sum);

double probe_now_seconds(void);

/* One line: processor, compiler. */
void probe_print_machine(void);

#endif
