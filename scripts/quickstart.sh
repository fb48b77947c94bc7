#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# From a fresh clone to generated text: installs what is missing, builds, makes a small sample
# checkpoint in the released format, packs it, verifies the pack, generates from it.
# The sample's weights are random: its text is noise, its path through the programs is the real one.
set -eu
cd "$(dirname "$0")/.."

step() {
    printf '\n== %s\n' "$1"
    shift
    printf '$'
    for word in "$@"; do
        case "$word" in
            *' '*) printf " '%s'" "$word" ;;
            *) printf ' %s' "$word" ;;
        esac
    done
    printf '\n'
    "$@"
}

sample=build/sample
step "1/6 install packages" scripts/install_packages.sh
step "2/6 build" cmake --preset release -DK3_BUILD_TESTS=OFF -B build/quickstart --log-level=WARNING
cmake --build build/quickstart
rm -rf "$sample"
mkdir -p "$sample"
step "3/6 make a sample checkpoint" /usr/bin/python3 scripts/make_checkpoint.py --preset tiny "$sample/checkpoint"
step "4/6 pack it" build/quickstart/packer/k3pack "$sample/checkpoint" "$sample/pack"
step "5/6 verify the pack" build/quickstart/packer/k3pack --verify "$sample/pack"
step "6/6 generate" build/quickstart/runtime/cli/k3infer "$sample/pack" \
    --prompt "The capital of France is" --max-tokens 24 --seed 1 --temperature 1

cat <<EOF

Done. The programs are build/quickstart/packer/k3pack and build/quickstart/runtime/cli/k3infer.
Next: read 'k3pack --help' and 'k3infer --help', or pack the real model:
  build/quickstart/packer/k3pack --plan KIMI_K3_FOLDER
EOF
