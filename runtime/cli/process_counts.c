/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/cli/process_counts.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

/* Numbers on lines of the form "name: value". */
struct wanted {
    const char *name;
    uint64_t *value;
};

static void read_lines(const char *path, const struct wanted *wanted, size_t count)
{
    FILE *file = fopen(path, "re");
    char line[256];
    while (file && fgets(line, sizeof line, file)) {
        for (size_t i = 0; i < count; i++) {
            const size_t len = strlen(wanted[i].name);
            if (strncmp(line, wanted[i].name, len) == 0 && line[len] == ':') {
                (void)!sscanf(line + len + 1, "%" SCNu64, wanted[i].value);
            }
        }
    }
    if (file) {
        fclose(file);
    }
}

/* Minor and major faults of one thread: fields 10 and 12, counted behind the name, which may hold
 * anything. */
static uint64_t faults_of(long thread)
{
    char path[64], line[1024];
    snprintf(path, sizeof path, "/proc/self/task/%ld/stat", thread);
    FILE *file = fopen(path, "re");
    const char *rest = file && fgets(line, sizeof line, file) ? strrchr(line, ')') : NULL;
    uint64_t minor = 0, major = 0;
    if (rest && sscanf(rest + 1, " %*c %*d %*d %*d %*d %*d %*u %" SCNu64 " %*u %" SCNu64, &minor,
                       &major) != 2) {
        minor = major = 0;
    }
    if (file) {
        fclose(file);
    }
    return minor + major;
}

static uint64_t ns_of(struct timeval t)
{
    return (uint64_t)t.tv_sec * 1000000000U + (uint64_t)t.tv_usec * 1000U;
}

void k3_process_counts_read(const struct k3_pool *pool, struct k3_process_counts *out_counts)
{
    struct rusage usage;
    memset(&usage, 0, sizeof usage);
    getrusage(RUSAGE_SELF, &usage);
    struct k3_process_counts c = {
        .major_faults = (uint64_t)usage.ru_majflt,
        .minor_faults = (uint64_t)usage.ru_minflt,
        .peak_resident_bytes = (uint64_t)usage.ru_maxrss * 1024U,
        .cpu_ns = ns_of(usage.ru_utime) + ns_of(usage.ru_stime),
    };
    read_lines("/proc/self/io", &(struct wanted){"read_bytes", &c.device_read_bytes}, 1);
    uint64_t anonymous = 0, file = 0, shared = 0, tables = 0;
    const struct wanted wanted[] = {
        {"RssAnon", &anonymous}, {"RssFile", &file}, {"RssShmem", &shared}, {"VmPTE", &tables}};
    read_lines("/proc/self/status", wanted, sizeof wanted / sizeof wanted[0]);
    c.anonymous_bytes = anonymous * 1024;
    c.mapped_bytes = (file + shared) * 1024;
    c.page_table_bytes = tables * 1024;
    for (unsigned i = 0; pool && i < k3_pool_thread_count(pool); i++) {
        c.compute_faults += faults_of(k3_pool_thread_id(pool, i));
    }
    *out_counts = c;
}
