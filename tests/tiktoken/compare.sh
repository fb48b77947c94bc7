#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# compare.sh ENCODE_LINES WORK_FOLDER: our tokenizer against npm's tiktoken (see README.md).
# Exit status 77: node, npm or the package is not to be had.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
encode_lines=$1
work=$2
version=1.0.22

command -v node >/dev/null && command -v npm >/dev/null || {
    echo "skipped: node and npm are not installed"
    exit 77
}
if [ ! -d "$work/node_modules/tiktoken" ]; then
    npm install --prefix "$work" --no-save --no-package-lock --no-audit --no-fund \
        --fetch-retries=0 --fetch-timeout=60000 "tiktoken@$version" >"$work/npm.log" 2>&1 || {
        echo "skipped: npm cannot install tiktoken $version, see $work/npm.log"
        exit 77
    }
fi
exec node "$here/compare.mjs" "$encode_lines" "$work"
