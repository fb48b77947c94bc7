#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Installs what is missing, builds everything, runs every test that needs no more than a few minutes.
#   scripts/test.sh [PRESET] [CTEST OPTIONS...]    PRESET: release (default), dev, asan, tsan, clang
#   scripts/test.sh release -L slow                the slow ones
set -eu
cd "$(dirname "$0")/.."

preset=release
case "${1:-}" in
    release | dev | asan | tsan | clang)
        preset=$1
        shift
        ;;
esac

extra=""
[ "$preset" != clang ] || extra=clang
# shellcheck disable=SC2086 # a list of words
scripts/install_packages.sh $extra
cmake --preset "$preset" --log-level=WARNING
cmake --build --preset "$preset"

if [ $# -gt 0 ]; then
    exec ctest --test-dir "build/$preset" --output-on-failure "$@"
fi
exec ctest --preset "$preset" -j "$(nproc)"
