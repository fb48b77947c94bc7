#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Installs the Debian packages that building and testing need, if any is missing.
# As root or through sudo.
set -eu

packages="build-essential cmake ninja-build pkg-config
libzstd-dev libxxhash-dev libjansson-dev libutf8proc-dev libssl-dev check
python3 python3-numpy python3-xxhash python3-zstandard xxhash zstd ${*:-}"

missing=""
for package in $packages; do
    status=$(dpkg-query -W -f '${Status}' "$package" 2>/dev/null || true)
    [ "$status" = "install ok installed" ] || missing="$missing $package"
done
[ -n "$missing" ] || exit 0

echo "== installing (downloads compilers where there are none: a minute or two):$missing"
as_root=""
if [ "$(id -u)" != 0 ]; then
    command -v sudo >/dev/null || {
        echo "run this as root, or install sudo; missing packages:$missing" >&2
        exit 1
    }
    as_root=sudo
fi
$as_root apt-get update -qq
# shellcheck disable=SC2086 # a list of words
DEBIAN_FRONTEND=noninteractive $as_root apt-get install -y -qq --no-install-recommends $missing >/dev/null
