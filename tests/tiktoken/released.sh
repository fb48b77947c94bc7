#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# released.sh ENCODE_LINES: public test vectors (see README.md). Exit status 77: files not given.
set -eu
: "${K3_RELEASED_DATA:=}" "${K3_RELEASED_TOKENIZER:=}"
if [ ! -f "$K3_RELEASED_DATA/tok_vectors.json" ] ||
    [ ! -f "$K3_RELEASED_TOKENIZER/tiktoken.model" ]; then
    echo "skipped: K3_RELEASED_DATA and K3_RELEASED_TOKENIZER do not name the folders with the files"
    exit 77
fi
exec python3 "$(dirname "$0")/released.py" "$1" "$K3_RELEASED_DATA/tok_vectors.json" \
    "$K3_RELEASED_TOKENIZER"
