#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# How fast k3pack is against what the machine can do at all: packing against cp and fsync of the
# same bytes, --verify against xxhsum -H2 and dd iflag=direct of the same files, CPU seconds per GB.
# Files leave the page cache before each run. Prints each command, then medians and ratios.
#
# usage: scripts/bench_pack.sh K3PACK CHECKPOINT_DIR WORK_DIR [RUNS]
#   CHECKPOINT_DIR  real random data, 6 GB or more:
#                   make_checkpoint.py --preset wide --layers 3 --experts 64 CHECKPOINT_DIR
#   WORK_DIR        on the same device; needs twice the checkpoint's size
set -eu
[ $# -ge 3 ] || { sed -n '3,12s/^# \{0,1\}//p' "$0" >&2; exit 64; }
k3pack=$1 checkpoint=$2 work=$3 runs=${4:-3}
mkdir -p "$work"
scratch=$(mktemp -d "$work/bench-XXXXXX")
trap 'rm -rf "$scratch"' EXIT
TIMEFORMAT='%R %U %S'

cold() { # the kernel forgets these files
    local file
    for file in "$@"; do
        sync "$file"
        dd if="$file" iflag=nocache count=0 status=none
    done
}

# measure NAME COMMAND...: one line "wall user system" a run to $scratch/time.NAME.
measure() {
    local name=$1
    shift
    { time "$@" >/dev/null 2>&1; } 2>>"$scratch/time.$name"
}

copy() {
    rm -rf "$scratch/copy"
    mkdir "$scratch/copy"
    cp "$checkpoint"/*.safetensors "$scratch/copy/"
    sync "$scratch"/copy/*
}
pack() { "$k3pack" -q "$checkpoint" "$scratch/pack"; }
verify() { "$k3pack" -q --verify "$scratch/pack"; }
hash() { xxhsum -H2 "$scratch"/pack/k3.*; }
read_direct() {
    local file
    for file in "$scratch"/pack/k3.*; do
        dd if="$file" of=/dev/null iflag=direct bs=16M
    done
}

for ((run = 0; run < runs; run++)); do
    cold "$checkpoint"/*.safetensors
    measure copy copy
    rm -rf "$scratch/copy" "$scratch/pack"
    cold "$checkpoint"/*.safetensors
    measure pack pack
    for what in verify hash read_direct; do
        cold "$scratch"/pack/k3.*
        measure $what $what
    done
done

source_bytes=$(stat -L -c %s "$checkpoint"/*.safetensors | awk '{ n += $1 } END { print n }')
pack_bytes=$(stat -c %s "$scratch"/pack/k3.* | awk '{ n += $1 } END { print n }')

# report NAME BYTES COMMAND: medians of wall clock and CPU.
report() {
    sort -n "$scratch/time.$1" | awk -v name="$1" -v bytes="$2" -v what="$3" '
        { wall[NR] = $1; cpu[NR] = $2 + $3 }
        END { m = int((NR + 1) / 2); gb = bytes / 1e9
              printf "%-12s %7.2f s (%.2f..%.2f)  %6.2f GB/s  %5.2f CPU s/GB  %s\n",
                     name, wall[m], wall[1], wall[NR], gb / wall[m], cpu[m] / gb, what }'
}
median() { sort -n "$scratch/time.$1" | awk '{ w[NR] = $1 } END { print w[int((NR + 1) / 2)] }'; }

echo "machine: $(nproc) processors, $(awk -F': ' '/model name/ { print $2; exit }' /proc/cpuinfo), load $(cut -d' ' -f1-3 /proc/loadavg)"
echo "commit: $(git -C "$(dirname "$0")" rev-parse --short HEAD 2>/dev/null || echo unknown), $runs runs, cold cache, medians (min..max)"
report copy "$source_bytes" "cp CHECKPOINT/*.safetensors COPY && sync COPY/*"
report pack "$source_bytes" "k3pack -q CHECKPOINT PACK"
report verify "$pack_bytes" "k3pack -q --verify PACK"
report hash "$pack_bytes" "xxhsum -H2 PACK/k3.*"
report read_direct "$pack_bytes" "dd if=FILE of=/dev/null iflag=direct bs=16M, for the three files"
awk -v copy="$(median copy)" -v pack="$(median pack)" -v verify="$(median verify)" \
    -v hash="$(median hash)" -v direct="$(median read_direct)" 'BEGIN {
    best = hash < direct ? hash : direct
    printf "pack / (cp + fsync)               %.2f  (wanted: 0.90)\n", copy / pack
    printf "verify / (faster of xxhsum, dd)   %.2f  (wanted: 0.90)\n", best / verify }'
