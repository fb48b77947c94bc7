/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/residency/io_probe.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "format/base/ckd.h"
#include "format/base/clock.h"

#define THREADS         4U
#define TURNS           4U /* each way twice */
#define BLOCKS_MAX      32U
#define NS_MAX          400000000U
#define TRIAL_BYTES_MIN (4 * K3_TRUNK_BLOCK_BYTES)
#define PATH_ROOM       1024
#define RELEASE_ROOM    65

/* mmap is slower than this share of direct, or dearer than this in processor time: choose direct.
 */
#define CLEARLY_SLOWER 0.8
#define CPU_DEAR       0.25

static uint64_t device_bytes(void)
{
    FILE *file = fopen("/proc/self/io", "re");
    uint64_t bytes = 0;
    char line[128];
    while (file && fgets(line, sizeof line, file) &&
           sscanf(line, "read_bytes: %" SCNu64, &bytes) != 1) {
    }
    if (file) {
        fclose(file);
    }
    return bytes;
}

static uint64_t cpu_ns(void)
{
    struct timespec t = {0};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000U + (uint64_t)t.tv_nsec;
}

/* One way of reading, tried by as many threads as will do it later: threads are part of the way. */
struct trial {
    struct k3_backing backing;
    uint64_t first, block_end, start_ns;
    _Atomic uint64_t next, bytes, cpu_ns;
    _Atomic bool has_failed;
};

static void *read_blocks(void *context)
{
    struct trial *t = context;
    const uint64_t cpu_before = cpu_ns();
    while (!atomic_load(&t->has_failed) && k3_clock_ns() - t->start_ns < NS_MAX) {
        const uint64_t i = atomic_fetch_add(&t->next, 1);
        const uint64_t block = t->first + i;
        if (i >= BLOCKS_MAX || block + 1 >= t->block_end) {
            break;
        }
        const uint64_t at = block * K3_TRUNK_BLOCK_BYTES;
        if (k3_backing_fetch(&t->backing, at, K3_TRUNK_BLOCK_BYTES, NULL) != K3_OK) {
            atomic_store(&t->has_failed, true);
        }
        k3_backing_drop(&t->backing, at, K3_TRUNK_BLOCK_BYTES);
        atomic_fetch_add(&t->bytes, K3_TRUNK_BLOCK_BYTES);
    }
    atomic_fetch_add(&t->cpu_ns, cpu_ns() - cpu_before);
    return NULL;
}

/* Blocks in a row, as the stream reads them, at another place at every turn. The best turn counts.
 * false when nothing can be said. */
static bool measure(const struct k3_pack *pack, enum k3_io_kind kind, unsigned turn,
                    struct k3_io_rate *best)
{
    struct trial t = {.first = 0};
    if (k3_backing_open(&pack->trunk, kind, K3_ACCESS_SEQUENTIAL, K3_TRUNK_EXTENT_ALIGN, &t.backing,
                        NULL) != K3_OK) {
        return false;
    }
    t.block_end = k3_trunk_data_end(&pack->tables) / K3_TRUNK_BLOCK_BYTES;
    t.first = t.block_end / TURNS * turn;
    const uint64_t device_before = device_bytes();
    t.start_ns = k3_clock_ns();
    pthread_t threads[THREADS];
    unsigned started = 0;
    while (started < THREADS && pthread_create(&threads[started], NULL, read_blocks, &t) == 0) {
        started++;
    }
    for (unsigned i = 0; i < started; i++) {
        pthread_join(threads[i], NULL);
    }
    const double seconds = (double)(k3_clock_ns() - t.start_ns) * 1e-9;
    const uint64_t device = device_bytes() - device_before, bytes = atomic_load(&t.bytes);
    const bool is_good = !atomic_load(&t.has_failed) && bytes >= TRIAL_BYTES_MIN &&
                         device >= bytes / 2 && t.backing.kind == kind;
    if (is_good && (double)bytes / seconds > best->bytes_per_second) {
        best->bytes_per_second = (double)bytes / seconds;
        best->cpu_seconds_per_gb = (double)atomic_load(&t.cpu_ns) / (double)bytes;
    }
    k3_backing_close(&t.backing);
    return is_good;
}

static bool measure_both(const struct k3_pack *pack, struct k3_io_finding *f)
{
    bool is_good = true;
    for (unsigned turn = 0; is_good && turn < TURNS; turn += 2) {
        is_good = measure(pack, K3_IO_DIRECT, turn, &f->direct) &&
                  measure(pack, K3_IO_MMAP, turn + 1, &f->mmap);
    }
    return is_good;
}

void k3_io_decide(struct k3_io_finding *f)
{
    f->io = K3_IO_MMAP;
    if (!f->is_measured) {
        f->reason = "nothing to measure by: the weights do not come from a device";
    } else if (f->mmap.bytes_per_second < CLEARLY_SLOWER * f->direct.bytes_per_second) {
        f->io = K3_IO_DIRECT;
        f->reason = "mapping is clearly slower here";
    } else if (f->mmap.cpu_seconds_per_gb > CPU_DEAR &&
               f->mmap.cpu_seconds_per_gb > 2 * f->direct.cpu_seconds_per_gb) {
        f->io = K3_IO_DIRECT;
        f->reason = "mapping costs much processor time here: a file system without large pages";
    } else {
        f->reason = "mapping is as fast as reading past the cache";
    }
}

/* File systems that are not on a device of this machine: mapping them is slow or unsafe. */
static bool is_remote(const struct k3_file *file)
{
    static const long remote[] = {
        0x6969 /* NFS */,    0x65735546 /* FUSE */, 0x517B /* SMB */, 0xFE534D42 /* SMB2 */,
        0x01021997 /* 9P */, 0x00C36400 /* CEPH */, 0x0BD00BD0 /* LUSTRE */};
    struct statfs fs;
    if (fstatfs(file->fd, &fs) != 0) {
        return false;
    }
    for (size_t i = 0; i < sizeof remote / sizeof remote[0]; i++) {
        if ((unsigned long)fs.f_type == (unsigned long)remote[i]) {
            return true;
        }
    }
    return false;
}

/* A finding holds for one pack on one device under one kernel. */
struct place {
    char folder[PATH_ROOM], path[PATH_ROOM + 64];
    char release[RELEASE_ROOM];
    uint64_t device;
};

static bool place_of(const struct k3_pack *pack, struct place *out)
{
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    struct stat st;
    struct utsname name;
    int len = -1;
    if (cache && cache[0] == '/') {
        len = snprintf(out->folder, sizeof out->folder, "%s/k3infer", cache);
    } else if (home && home[0] == '/') {
        len = snprintf(out->folder, sizeof out->folder, "%s/.cache/k3infer", home);
    }
    if (len < 0 || (size_t)len >= sizeof out->folder || fstat(pack->trunk.fd, &st) != 0 ||
        uname(&name) != 0) {
        return false;
    }
    char id[K3_DIGEST_HEX_BYTES];
    k3_digest_hex(&pack->superblock.pack_id, id);
    snprintf(out->path, sizeof out->path, "%s/io-%s", out->folder, id);
    snprintf(out->release, sizeof out->release, "%.64s", name.release);
    out->device = st.st_dev;
    return true;
}

#define FORMAT_TAG "k3infer.io/1"

static bool recall(const struct place *place, struct k3_io_finding *f)
{
    FILE *file = fopen(place->path, "re");
    char tag[32], release[RELEASE_ROOM];
    uint64_t device = 0;
    const bool is_valid = file &&
                          fscanf(file, "%31s %64s %" SCNu64 " %lf %lf %lf %lf", tag, release,
                                 &device, &f->mmap.bytes_per_second, &f->mmap.cpu_seconds_per_gb,
                                 &f->direct.bytes_per_second, &f->direct.cpu_seconds_per_gb) == 7 &&
                          strcmp(tag, FORMAT_TAG) == 0 && strcmp(release, place->release) == 0 &&
                          device == place->device && f->mmap.bytes_per_second > 0 &&
                          f->direct.bytes_per_second > 0;
    if (file) {
        fclose(file);
    }
    return is_valid;
}

/* mkdir -p of the cache; what fails here is found out by opening the file. */
static void make_folders(const char *folder)
{
    char path[PATH_ROOM];
    snprintf(path, sizeof path, "%s", folder);
    for (char *p = path + 1; *p; p++) {
        if (*p == '/') {
            *p = 0;
            (void)mkdir(path, 0700);
            *p = '/';
        }
    }
    (void)mkdir(path, 0777);
}

static void remember(const struct place *place, const struct k3_io_finding *f)
{
    make_folders(place->folder);
    char temporary[PATH_ROOM + 128];
    snprintf(temporary, sizeof temporary, "%s.%ld", place->path, (long)getpid());
    FILE *file = fopen(temporary, "we");
    if (!file) {
        return;
    }
    const bool failed =
        fprintf(file, "%s %s %" PRIu64 " %.0f %.4f %.0f %.4f\n", FORMAT_TAG, place->release,
                place->device, f->mmap.bytes_per_second, f->mmap.cpu_seconds_per_gb,
                f->direct.bytes_per_second, f->direct.cpu_seconds_per_gb) < 0;
    if (fclose(file) != 0 || failed || rename(temporary, place->path) != 0) {
        (void)unlink(temporary);
    }
}

void k3_io_probe(const struct k3_pack *pack, struct k3_io_finding *out_finding)
{
    struct k3_io_finding f = {.io = K3_IO_MMAP};
    if (is_remote(&pack->trunk)) {
        f.io = K3_IO_DIRECT;
        f.reason = "the pack is on a network or user-space file system";
        *out_finding = f;
        return;
    }
    struct place place;
    const bool has_place = place_of(pack, &place);
    f.was_cached = has_place && recall(&place, &f);
    f.is_measured = f.was_cached || measure_both(pack, &f);
    k3_io_decide(&f);
    if (has_place && f.is_measured && !f.was_cached) {
        remember(&place, &f);
    }
    *out_finding = f;
}
