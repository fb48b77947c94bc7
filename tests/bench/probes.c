/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/bench/probes.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

double probe_now_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static const struct pattern {
    const char *name;
    size_t streams;
    int is_sparse;
} patterns[PROBE_PATTERNS] = {
    {"1 stream", 1, 0},         {"2 streams", 2, 0},         {"4 streams", 4, 0},
    {"1 stream, sparse", 1, 1}, {"2 streams, sparse", 2, 1}, {"4 streams, sparse", 4, 1},
};

const char *probe_pattern_name(int pattern)
{
    return patterns[pattern].name;
}

/* The lines of one stream's step; uint64 words, so that every machine can. */
static inline uint64_t line_words(const uint8_t *line, int is_sparse)
{
    uint64_t words[8];
    memcpy(words, line, sizeof words);
    return is_sparse ? words[0]
                     : ((words[0] ^ words[1]) ^ (words[2] ^ words[3])) ^
                           ((words[4] ^ words[5]) ^ (words[6] ^ words[7]));
}

uint64_t probe_read(const uint8_t *memory, size_t bytes, int pattern)
{
    const struct pattern *p = &patterns[pattern];
    const size_t stream_bytes = bytes / p->streams;
    uint64_t sum = 0;
    for (size_t at = 0; at < stream_bytes; at += 64) {
        for (size_t s = 0; s < p->streams; s++) {
            sum ^= line_words(memory + s * stream_bytes + at, p->is_sparse);
        }
    }
    return sum;
}

#define CHAINS  12
#define REPEATS 8 /* per round, so that the loop costs nothing */

#define DEFINE_FMA(name, attribute, vector, lanes, set1, fma, store)                               \
    attribute static double name(size_t rounds, float *out_sum)                                    \
    {                                                                                              \
        vector sums[CHAINS];                                                                       \
        const vector a = set1(0.75F);                                                              \
        const vector b = set1(0.3F);                                                               \
        for (int c = 0; c < CHAINS; c++) {                                                         \
            sums[c] = set1((float)c + *out_sum);                                                   \
        }                                                                                          \
        for (size_t i = 0; i < rounds; i++) {                                                      \
            UNROLLED for (int c = 0; c < CHAINS * REPEATS; c++)                                    \
            {                                                                                      \
                sums[c % CHAINS] = fma(sums[c % CHAINS], a, b);                                    \
            }                                                                                      \
        }                                                                                          \
        float last[lanes];                                                                         \
        for (int c = 0; c < CHAINS; c++) {                                                         \
            store(last, sums[c]);                                                                  \
            *out_sum += last[0];                                                                   \
        }                                                                                          \
        return 2.0 * lanes * CHAINS * REPEATS * (double)rounds;                                    \
    }

#if defined(__clang__)
#define UNROLLED _Pragma("clang loop unroll(full)")
#else
#define UNROLLED _Pragma("GCC unroll 96")
#endif

#if defined(__x86_64__)
DEFINE_FMA(fma_avx512, __attribute__((target("avx512f"))), __m512, 16, _mm512_set1_ps,
           _mm512_fmadd_ps, _mm512_storeu_ps)
DEFINE_FMA(fma_avx2, __attribute__((target("avx2,fma"))), __m256, 8, _mm256_set1_ps,
           _mm256_fmadd_ps, _mm256_storeu_ps)
#elif defined(__aarch64__)
#define NEON_FMA(sum, a, b) vfmaq_f32(b, sum, a)
DEFINE_FMA(fma_neon, , float32x4_t, 4, vdupq_n_f32, NEON_FMA, vst1q_f32)
#endif

double probe_fma(const char *tier, size_t rounds, float *out_sum)
{
#if defined(__x86_64__)
    if (strcmp(tier, "avx512") == 0) {
        return fma_avx512(rounds, out_sum);
    }
    if (strcmp(tier, "avx2") == 0) {
        return fma_avx2(rounds, out_sum);
    }
#elif defined(__aarch64__)
    if (strcmp(tier, "neon") == 0) {
        return fma_neon(rounds, out_sum);
    }
#endif
    (void)tier;
    (void)rounds;
    (void)out_sum;
    return 0.0;
}

void probe_print_machine(void)
{
    char line[256] = "unknown processor";
    FILE *info = fopen("/proc/cpuinfo", "r");
    if (info) {
        char row[256];
        while (fgets(row, sizeof row, info)) {
            const char *colon = strchr(row, ':');
            if (strncmp(row, "model name", 10) == 0 && colon) {
                snprintf(line, sizeof line, "%s", colon + 2);
                line[strcspn(line, "\n")] = '\0';
                break;
            }
        }
        fclose(info);
    }
    printf("machine: %s, %ld processors; compiler: %s\n", line, sysconf(_SC_NPROCESSORS_ONLN),
           __VERSION__);
}
