#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The Arm tiers: builds the kernels and print_hashes for AArch64, runs them under qemu-user and
# compares both tiers with the committed hashes. Exit status 77 (skipped) without the tools:
#   apt-get install gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user
#
# usage: cross_neon.sh SOURCE_DIR
set -eu

root=$1
cc=aarch64-linux-gnu-gcc
for tool in $cc qemu-aarch64; do
    command -v $tool >/dev/null || { echo "skipped: no $tool"; exit 77; }
done
xxhash=/usr/include/xxhash.h
[ -f $xxhash ] || { echo "skipped: no $xxhash"; exit 77; }

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# xxHash from its header alone: there is no library for Arm here.
mkdir "$work/include"
cp $xxhash "$work/include/"
for inlined in /usr/include/xxh3.h /usr/include/xxh_x86dispatch.h; do
    [ ! -f $inlined ] || cp $inlined "$work/include/"
done

cd "$root"
grep -v '^#' tests/golden/kernels_hashes.txt >"$work/golden"
tests=tests/unit/runtime/kernels
for level in -O2 -O0; do
    $cc -std=c17 $level -Wall -Wextra -Wconversion -Werror -ffp-contract=off -fno-math-errno -static \
        -D_POSIX_C_SOURCE=200809L -D_DEFAULT_SOURCE -DXXH_INLINE_ALL -I. -isystem "$work/include" \
        -o "$work/print_hashes" \
        runtime/kernels/*.c runtime/kernels/ref/*.c runtime/kernels/neon/*.c \
        format/base/assert.c format/base/digest.c format/base/error.c \
        $tests/fixture.c $tests/hashes.c $tests/print_hashes.c -lm
    for tier in scalar neon; do
        qemu-aarch64 "$work/print_hashes" $tier >"$work/$tier"
        diff "$work/golden" "$work/$tier" ||
            { echo "$tier differs at $level"; exit 1; }
    done
done
