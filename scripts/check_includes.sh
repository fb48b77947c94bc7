#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The arrows of docs/architecture.md, tested: each folder includes only what it may.
set -eu
cd "$(dirname "$0")/.."

status=0
# check FOLDER ALLOWED_PREFIX...: project includes of FOLDER's files start with an allowed prefix.
check() {
    folder=$1
    shift
    allowed="^$folder/"
    for prefix in "$@"; do
        allowed="$allowed|^$prefix"
    done
    bad=$(grep -rnoE '#include "[^"]+"' "$folder" --include='*.[ch]' |
        sed -E 's/^([^:]+:[0-9]+):#include "([^"]+)"/\1 \2/' |
        awk -v allowed="$allowed" '$2 !~ allowed { print "  " $1 " includes " $2 }')
    if [ -n "$bad" ]; then
        printf '%s may include only %s:\n%s\n' "$folder" "$*" "$bad"
        status=1
    fi
}

base=format/base/
check format/base
check format/tool $base
check format/pack $base
check format/vocab $base
check format/safetensors $base format/pack/model_spec.h
check packer $base format/tool/ format/pack/ format/safetensors/ format/vocab/
check runtime/kernels $base
check runtime/thread $base
check runtime/tokenizer $base format/vocab/
check runtime/model $base format/pack/ runtime/kernels/ runtime/thread/
check runtime/residency $base format/pack/ runtime/thread/ runtime/model/weight_source.h
check runtime/engine $base format/pack/ format/vocab/ runtime/kernels/ runtime/model/ \
    runtime/residency/ runtime/tokenizer/ runtime/thread/
check runtime/cli $base format/pack/ format/tool/ runtime/engine/ runtime/kernels/ \
    runtime/residency/ runtime/tokenizer/ runtime/thread/
[ $status = 0 ] && echo "includes follow docs/architecture.md"
exit $status
