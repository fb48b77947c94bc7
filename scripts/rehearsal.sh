#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The full-scale rehearsal: a checkpoint of the released dimensions and shard sizes (1.56 TB, mostly
# holes, salted with real values) is made, planned, packed, quick-verified and decoded for two tokens,
# whose ids must be those of the independent reference on the same salt. Prints a report: wall time,
# peak memory and disk use of every step.
#   scripts/rehearsal.sh [FOLDER]        FOLDER: about 6 GB free; default build/rehearsal, removed at the end
#   K3_BUILD=DIR                 uses the programs of that build folder
#   K3_REHEARSAL_KEEP=1                  keeps it
#   K3_REHEARSAL_VERIFY=1                also the full verify (reads 1.56 TB of holes)
set -eu
cd "$(dirname "$0")/.."

folder=${1:-build/rehearsal}
bin=${K3_BUILD:-build/release}
k3pack=$bin/packer/k3pack
k3infer=$bin/runtime/cli/k3infer
prompt=11,222,3333
scripts/install_packages.sh time
[ -n "${K3_BUILD:-}" ] || {
    cmake --preset release --log-level=WARNING
    cmake --build --preset release --target k3pack k3infer
}
mkdir -p "$folder"
report=$folder/report.txt
: >"$report"

# measure NAME COMMAND...: runs it, appends one line to the report.
measure() {
    name=$1
    shift
    printf '\n== %s\n$ %s\n' "$name" "$*"
    /usr/bin/time -o "$folder/time.txt" -f '%e %M %U %S' "$@" || {
        echo "rehearsal: step '$name' failed" >&2
        exit 1
    }
    read -r wall peak user system <"$folder/time.txt"
    printf '| %s | %s s | %s s | %d MiB | %s |\n' "$name" "$wall" \
        "$(echo "$user $system" | awk '{ printf "%.1f", $1 + $2 }')" $((peak / 1024)) \
        "$(du -sh --total "$folder"/checkpoint "$folder"/pack 2>/dev/null | tail -n 1 | cut -f 1)" \
        >>"$report"
}

rm -rf "$folder/checkpoint" "$folder/pack"
measure "make the checkpoint" /usr/bin/python3 scripts/make_checkpoint.py --preset sparse-full "$folder/checkpoint"
measure "plan (census of 96 headers)" "$k3pack" --plan "$folder/checkpoint"
read -r census_seconds _ <"$folder/time.txt"
measure "pack" "$k3pack" "$folder/checkpoint" "$folder/pack"
measure "verify --quick" "$k3pack" --verify --quick "$folder/pack"
[ -z "${K3_REHEARSAL_VERIFY:-}" ] || measure "verify" "$k3pack" --verify "$folder/pack"
measure "reference, 2 tokens" /usr/bin/python3 tests/reference/run_reference.py "$folder/checkpoint" \
    --ids $prompt -n 2 --ids-out "$folder/reference.ids" --logits "$folder/reference.npy"
measure "k3infer, 2 tokens" "$k3infer" "$folder/pack" --ids $prompt -n 2 --check first \
    --ids-out "$folder/k3infer.ids" --logits "$folder/k3infer.npy" --stats "$folder/stats.json"
# The same in less memory: other clock, same bytes. /usr/bin/time's peak counts what is mapped.
for ram in 1GiB 4GiB; do
    measure "k3infer, 2 tokens, --ram $ram" "$k3infer" "$folder/pack" --ids $prompt -n 2 --check off \
        --ram $ram --context 1024 --logits "$folder/k3infer-$ram.npy" --stats "$folder/stats-$ram.json"
done

echo
echo "| step | wall | CPU | peak memory | disk in use after it |"
echo "|---|---|---|---|---|"
cat "$report"
echo
echo "reference ids: $(cat "$folder/reference.ids")   k3infer ids: $(cat "$folder/k3infer.ids")"
/usr/bin/python3 tests/reference/compare.py "$folder/k3infer.npy" "$folder/reference.npy" --gate 3e-4
pack_kib=$(du -sk "$folder/pack" | cut -f 1)
echo "pack: $((pack_kib / 1024)) MiB on disk (limit 3 GB)"
open_seconds=$(sed -n 's/.*"open_seconds": *\([0-9.e-]*\).*/\1/p' "$folder/stats.json")
echo "census: $census_seconds s (limit 3 s)   opening the pack: $open_seconds s (limit 0.5 s)"
status=0
awk -v c="$census_seconds" -v o="$open_seconds" 'BEGIN { exit !(c < 3 && o < 0.5) }' || status=1
[ "$(cat "$folder/reference.ids")" = "$(cat "$folder/k3infer.ids")" ] || status=1
[ "$pack_kib" -lt 2929687 ] || status=1
for ram in 1GiB 4GiB; do
    cmp "$folder/k3infer.npy" "$folder/k3infer-$ram.npy" || status=1
    awk -F '[:,]' '/"total_bytes"/ { total = $2 } /"peak_used_bytes"/ { used = $2 }
        END { exit !(used + 0 > 0 && used + 0 <= total + 0) }' "$folder/stats-$ram.json" || status=1
done
[ -n "${K3_REHEARSAL_KEEP:-}" ] || rm -rf "$folder/checkpoint" "$folder/pack"
exit $status
