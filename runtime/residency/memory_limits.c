/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/residency/memory_limits.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/base/ckd.h"

#define PATH_ROOM 4096
#define LINE_ROOM 4096

/* Version 1 says "none" with the largest multiple of a page below 2^63. */
#define V1_NONE_FROM (UINT64_C(1) << 62)

/* A mounted hierarchy that limits memory, and where in it this process is. */
struct hierarchy {
    bool is_v2, is_mounted, is_member;
    char mount_root[PATH_ROOM]; /* which group of the hierarchy is seen at mount_point */
    char mount_point[PATH_ROOM];
    char group[PATH_ROOM]; /* of this process, from the root of the hierarchy */
};

static FILE *open_under(const char *root, const char *path)
{
    char full[2 * PATH_ROOM];
    const int len = snprintf(full, sizeof full, "%s%s", root, path);
    return len > 0 && (size_t)len < sizeof full ? fopen(full, "re") : NULL;
}

static uint64_t physical_bytes(const char *root)
{
    FILE *file = open_under(root, "/proc/meminfo");
    uint64_t kib = 0;
    bool found = false;
    char line[LINE_ROOM];
    while (file && !found && fgets(line, sizeof line, file)) {
        found = sscanf(line, "MemTotal: %" SCNu64 " kB", &kib) == 1;
    }
    if (file) {
        fclose(file);
    }
    return found && kib < UINT64_MAX / 1024 ? kib * 1024 : K3_MEMORY_NO_LIMIT;
}

/* Does a comma-separated list hold the word? */
static bool list_holds(const char *list, const char *word)
{
    const size_t len = strlen(word);
    for (const char *p = list; *p;) {
        const size_t n = strcspn(p, ",");
        if (n == len && memcmp(p, word, len) == 0) {
            return true;
        }
        p += n + (p[n] == ',');
    }
    return false;
}

/* /proc/self/cgroup: "7:memory:/a/b" (version 1), "0::/a/b" (version 2). */
static void find_groups(const char *root, struct hierarchy *v1, struct hierarchy *v2)
{
    FILE *file = open_under(root, "/proc/self/cgroup");
    char line[LINE_ROOM];
    while (file && fgets(line, sizeof line, file)) {
        line[strcspn(line, "\n")] = 0;
        char *controllers = strchr(line, ':');
        char *group = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!group) {
            continue;
        }
        *controllers++ = 0;
        *group++ = 0;
        struct hierarchy *h = strcmp(line, "0") == 0 && *controllers == 0 ? v2
                              : list_holds(controllers, "memory")         ? v1
                                                                          : NULL;
        if (h) {
            h->is_member = true;
            snprintf(h->group, sizeof h->group, "%s", group);
        }
    }
    if (file) {
        fclose(file);
    }
}

/* /proc/self/mountinfo: "id parent major:minor ROOT POINT options ... - TYPE source OPTIONS". */
static void find_mounts(const char *root, struct hierarchy *v1, struct hierarchy *v2)
{
    FILE *file = open_under(root, "/proc/self/mountinfo");
    char line[LINE_ROOM];
    while (file && fgets(line, sizeof line, file)) {
        char mount_root[LINE_ROOM], point[LINE_ROOM], type[LINE_ROOM], options[LINE_ROOM];
        const char *rest = strstr(line, " - ");
        if (!rest || sscanf(line, "%*s %*s %*s %4095s %4095s", mount_root, point) != 2 ||
            sscanf(rest, " - %4095s %*s %4095s", type, options) != 2) {
            continue;
        }
        struct hierarchy *h = strcmp(type, "cgroup2") == 0                                   ? v2
                              : strcmp(type, "cgroup") == 0 && list_holds(options, "memory") ? v1
                                                                                             : NULL;
        if (h && !h->is_mounted) {
            h->is_mounted = true;
            snprintf(h->mount_root, sizeof h->mount_root, "%s", mount_root);
            snprintf(h->mount_point, sizeof h->mount_point, "%s", point);
        }
    }
    if (file) {
        fclose(file);
    }
}

static void take_limit(const char *root, const char *folder, const char *name,
                       struct k3_memory_limits *limits)
{
    char path[2 * PATH_ROOM];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = open_under(root, path);
    uint64_t bytes = 0;
    /* "max" does not parse. */
    if (file && fscanf(file, "%" SCNu64, &bytes) == 1 && bytes < V1_NONE_FROM &&
        bytes < limits->cgroup_bytes) {
        limits->cgroup_bytes = bytes;
        snprintf(limits->cgroup_source, sizeof limits->cgroup_source, "%.*s",
                 K3_LIMIT_SOURCE_ROOM - 1, path);
    }
    if (file) {
        fclose(file);
    }
}

/* The group's folder and each one above it, up to the mount point. */
static void walk_up(const char *root, const struct hierarchy *h, struct k3_memory_limits *limits)
{
    if (!h->is_mounted || !h->is_member) {
        return;
    }
    /* A container sees its own group as the root of the mount. */
    const char *below = h->group;
    const size_t root_len = strcmp(h->mount_root, "/") == 0 ? 0 : strlen(h->mount_root);
    if (root_len > 0) {
        const bool is_below = strncmp(below, h->mount_root, root_len) == 0 &&
                              (below[root_len] == '/' || below[root_len] == 0);
        below = is_below ? below + root_len : "";
    }
    if (strstr(below, "..")) {
        below = ""; /* outside of what this namespace sees */
    }
    char folder[2 * PATH_ROOM];
    snprintf(folder, sizeof folder, "%s%s", h->mount_point, strcmp(below, "/") == 0 ? "" : below);
    const size_t stop = strlen(h->mount_point);
    if (limits->peak_source[0] == 0 && strlen(folder) > stop) {
        snprintf(limits->peak_source, sizeof limits->peak_source, "%.*s/%s", 200, folder,
                 h->is_v2 ? "memory.peak" : "memory.max_usage_in_bytes");
    }
    for (;;) {
        if (h->is_v2) {
            take_limit(root, folder, "memory.max", limits);
            take_limit(root, folder, "memory.high", limits);
        } else {
            take_limit(root, folder, "memory.limit_in_bytes", limits);
        }
        char *slash = strrchr(folder, '/');
        if (!slash || (size_t)(slash - folder) < stop) {
            return;
        }
        *slash = 0;
    }
}

void k3_memory_limits_read(const char *root, struct k3_memory_limits *out_limits)
{
    struct hierarchy *h = calloc(2, sizeof *h);
    *out_limits = (struct k3_memory_limits){.physical_bytes = physical_bytes(root),
                                            .cgroup_bytes = K3_MEMORY_NO_LIMIT};
    if (h) {
        h[1].is_v2 = true;
        find_groups(root, &h[0], &h[1]);
        find_mounts(root, &h[0], &h[1]);
        walk_up(root, &h[0], out_limits);
        walk_up(root, &h[1], out_limits);
    }
    free(h);
}

uint64_t k3_memory_group_peak(const struct k3_memory_limits *limits)
{
    FILE *file = limits->peak_source[0] ? fopen(limits->peak_source, "re") : NULL;
    uint64_t bytes = 0;
    if (file) {
        if (fscanf(file, "%" SCNu64, &bytes) != 1) {
            bytes = 0;
        }
        fclose(file);
    }
    return bytes;
}

uint64_t k3_memory_limit(const struct k3_memory_limits *limits)
{
    return k3_min_u64(limits->physical_bytes, limits->cgroup_bytes);
}
