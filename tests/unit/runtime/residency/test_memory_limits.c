/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/residency/memory_limits.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "tests/support/suite_main.h"
#include "tests/support/temp_folder.h"

static char root[512];

static void setup(void)
{
    snprintf(root, sizeof root, "%s", k3_temp_folder_make());
}
static void teardown(void)
{
    k3_temp_folder_remove(root);
}

/* A file and the folders above it. */
static void put(const char *path, const char *text)
{
    char full[1024];
    snprintf(full, sizeof full, "%s%s", root, path);
    for (char *p = full + strlen(root) + 1; (p = strchr(p, '/')) != NULL; p++) {
        *p = 0;
        mkdir(full, 0777);
        *p = '/';
    }
    k3_temp_file_write(root, path + 1, text, strlen(text));
}

#define V1_MOUNT "30 25 0:26 / /cg/memory rw shared:9 - cgroup cgroup rw,memory\n"
#define V2_MOUNT "31 25 0:27 / /cg rw - cgroup2 cgroup2 rw,nsdelegate\n"
#define V1_NONE  "9223372036854771712\n"

static const struct {
    const char *why;
    const char *meminfo, *cgroup, *mounts;
    struct {
        const char *path, *text;
    } files[6];
    uint64_t physical, limit;
    const char *source;
} machines[] = {
    {.why = "nothing can be read",
     .physical = K3_MEMORY_NO_LIMIT,
     .limit = K3_MEMORY_NO_LIMIT,
     .source = ""},
    {.why = "no control groups",
     .meminfo = "MemFree: 1 kB\nMemTotal:       16384 kB\n",
     .physical = 16384 * 1024,
     .limit = 16384 * 1024,
     .source = ""},
    {.why = "version 2, the group's own limit",
     .meminfo = "MemTotal: 16384 kB\n",
     .cgroup = "0::/a/b\n",
     .mounts = V2_MOUNT,
     .files = {{"/cg/a/b/memory.max", "4096000\n"}, {"/cg/a/memory.max", "max\n"}},
     .physical = 16384 * 1024,
     .limit = 4096000,
     .source = "/cg/a/b/memory.max"},
    {.why = "version 2, an ancestor is tighter",
     .meminfo = "MemTotal: 16384 kB\n",
     .cgroup = "0::/a/b/c\n",
     .mounts = V2_MOUNT,
     .files = {{"/cg/a/b/c/memory.max", "max\n"},
               {"/cg/a/b/memory.max", "8000000\n"},
               {"/cg/a/memory.max", "3000000\n"}},
     .physical = 16384 * 1024,
     .limit = 3000000,
     .source = "/cg/a/memory.max"},
    {.why = "version 2, memory.high of an ancestor counts",
     .meminfo = "MemTotal: 16384 kB\n",
     .cgroup = "0::/a/b\n",
     .mounts = V2_MOUNT,
     .files = {{"/cg/a/b/memory.max", "8000000\n"}, {"/cg/a/memory.high", "2000000\n"}},
     .physical = 16384 * 1024,
     .limit = 2000000,
     .source = "/cg/a/memory.high"},
    {.why = "version 2, a container that sees its group as the root",
     .meminfo = "MemTotal: 16384 kB\n",
     .cgroup = "0::/\n",
     .mounts = V2_MOUNT,
     .files = {{"/cg/memory.max", "5000000\n"}},
     .physical = 16384 * 1024,
     .limit = 5000000,
     .source = "/cg/memory.max"},
    {.why = "version 2, a group outside of the namespace",
     .meminfo = "MemTotal: 16384 kB\n",
     .cgroup = "0::/../other\n",
     .mounts = V2_MOUNT,
     .files = {{"/cg/memory.max", "5000000\n"}},
     .physical = 16384 * 1024,
     .limit = 5000000,
     .source = "/cg/memory.max"},
    {.why = "version 1, whole chain; the largest number means none",
     .meminfo = "MemTotal: 16384 kB\n",
     .cgroup = "9:cpu,cpuacct:/x\n7:memory:/a/b\n",
     .mounts = V1_MOUNT,
     .files = {{"/cg/memory/a/b/memory.limit_in_bytes", V1_NONE},
               {"/cg/memory/a/memory.limit_in_bytes", "6000000\n"},
               {"/cg/memory/memory.limit_in_bytes", V1_NONE}},
     .physical = 16384 * 1024,
     .limit = 6000000,
     .source = "/cg/memory/a/memory.limit_in_bytes"},
    {.why = "version 1, mounted at the container's own group",
     .meminfo = "MemTotal: 16384 kB\n",
     .cgroup = "7:memory:/docker/abc\n",
     .mounts = "30 25 0:26 /docker/abc /cg/memory rw - cgroup cgroup rw,memory\n",
     .files = {{"/cg/memory/memory.limit_in_bytes", "6100000\n"}},
     .physical = 16384 * 1024,
     .limit = 6100000,
     .source = "/cg/memory/memory.limit_in_bytes"},
    {.why = "both versions at once: the tighter wins",
     .meminfo = "MemTotal: 16384 kB\n",
     .cgroup = "7:memory:/a\n0::/b\n",
     .mounts = "31 25 0:27 / /cg2 rw - cgroup2 cgroup2 rw\n" V1_MOUNT,
     .files = {{"/cg/memory/a/memory.limit_in_bytes", "7000000\n"},
               {"/cg2/b/memory.max", "6500000\n"}},
     .physical = 16384 * 1024,
     .limit = 6500000,
     .source = "/cg2/b/memory.max"},
    {.why = "a limit above the machine does not matter",
     .meminfo = "MemTotal: 16384 kB\n",
     .cgroup = "0::/a\n",
     .mounts = V2_MOUNT,
     .files = {{"/cg/a/memory.max", "99999999999\n"}},
     .physical = 16384 * 1024,
     .limit = 16384 * 1024,
     .source = "/cg/a/memory.max"},
};

START_TEST(smallest_limit_wins)
{
    if (machines[_i].meminfo) {
        put("/proc/meminfo", machines[_i].meminfo);
    }
    if (machines[_i].cgroup) {
        put("/proc/self/cgroup", machines[_i].cgroup);
        put("/proc/self/mountinfo", machines[_i].mounts);
    }
    for (size_t i = 0; i < 6 && machines[_i].files[i].path; i++) {
        put(machines[_i].files[i].path, machines[_i].files[i].text);
    }
    struct k3_memory_limits limits;
    k3_memory_limits_read(root, &limits);
    ck_assert_msg(limits.physical_bytes == machines[_i].physical, "%s", machines[_i].why);
    ck_assert_msg(k3_memory_limit(&limits) == machines[_i].limit, "%s", machines[_i].why);
    ck_assert_msg(strcmp(limits.cgroup_source, machines[_i].source) == 0, "%s: '%s'",
                  machines[_i].why, limits.cgroup_source);
}
END_TEST

START_TEST(this_machine_has_memory)
{
    struct k3_memory_limits limits;
    k3_memory_limits_read("", &limits);
    ck_assert_uint_gt(k3_memory_limit(&limits), UINT64_C(1) << 20);
}
END_TEST

Suite *k3_suite(void)
{
    Suite *suite = suite_create("memory_limits");
    TCase *chain = tcase_create("chain of groups");
    tcase_add_checked_fixture(chain, setup, teardown);
    tcase_add_loop_test(chain, smallest_limit_wins, 0, (int)(sizeof machines / sizeof machines[0]));
    tcase_add_test(chain, this_machine_has_memory);
    suite_add_tcase(suite, chain);
    return suite;
}
