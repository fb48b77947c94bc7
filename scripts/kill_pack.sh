#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# kill -9 at random moments: after each the same command must end in the bytes of an undisturbed
# run, and nothing may look like a finished pack before it is one.
#
# usage: scripts/kill_pack.sh K3PACK CHECKPOINT_DIR [TIMES]     (200 times)
set -eu
[ $# -ge 2 ] || { sed -n '3,6s/^# \{0,1\}//p' "$0" >&2; exit 64; }
k3pack=$1 checkpoint=$2 times=${3:-200}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

begin=$(date +%s%N)
"$k3pack" -q "$checkpoint" "$scratch/whole" >/dev/null
length=$(($(date +%s%N) - begin)) # ns

killed=0 finished=0 n=0
while [ "$killed" -lt "$times" ]; do
    n=$((n + 1))
    delay=$(od -An -N4 -tu4 /dev/urandom | awk -v ns="$length" '{ printf "%.4f", $1 / 2^32 * ns / 1e9 }')
    "$k3pack" -q "$checkpoint" "$scratch/pack" >/dev/null 2>&1 &
    child=$!
    sleep "$delay"
    kill -9 "$child" 2>/dev/null || :
    if wait "$child" 2>/dev/null; then
        finished=$((finished + 1))
        length=$((length * 9 / 10)) # the first run was a slow one
    else
        killed=$((killed + 1))
        length=$((length * 51 / 50))
    fi
    if [ -e "$scratch/pack/k3.index" ]; then
        "$k3pack" -q --verify "$scratch/pack" >/dev/null
    fi
    # Every third time it is killed again before it may finish.
    [ $((n % 3)) -eq 0 ] && [ "$killed" -lt "$times" ] && continue
    "$k3pack" -q "$checkpoint" "$scratch/pack" >/dev/null
    for file in k3.index k3.trunk k3.experts; do
        cmp "$scratch/whole/$file" "$scratch/pack/$file"
    done
    rm -rf "$scratch/pack"
done
echo "$killed killed, $finished had finished before; every pack has the bytes of an undisturbed run"
