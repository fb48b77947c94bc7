#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""released.py ENCODE_LINES TOK_VECTORS_JSON TOKENIZER_FOLDER: ids of the released tokenizer."""
import hashlib
import json
import subprocess
import sys


def requests(vectors):
    """(name, request, check) for every vector; check(ids) says whether the ids are right."""
    for case in vectors["texts"]:
        request = {"text": case["text"], "markers": case["special"]}
        yield case["name"], request, lambda ids, case=case: ids == case["ids"]
    for case in vectors["run_caps"]:
        request = {"text": case["text"], "markers": False, "run_chars": case["max_run"]}
        yield case["name"], request, lambda ids, case=case: ids == case["ids"]
    for case in vectors["long_texts"]:
        text = case["unit"] * case["count"] + case["suffix"]
        yield (f"long {case['unit']!r} x {case['count']}", {"text": text, "markers": False},
               lambda ids, case=case: hash_of(ids) == case["ids_sha256_of_compact_json"])


def hash_of(ids):
    return hashlib.sha256(json.dumps(ids, separators=(",", ":")).encode()).hexdigest()


def main():
    encode_lines, vectors_path, folder = sys.argv[1:]
    with open(vectors_path, encoding="utf-8") as file:
        cases = list(requests(json.load(file)))
    lines = "".join(json.dumps(request) + "\n" for _, request, _ in cases)
    command = [encode_lines, f"{folder}/tiktoken.model", f"{folder}/tokenizer_config.json"]
    answers = subprocess.run(command, input=lines.encode(), stdout=subprocess.PIPE, check=True)
    ids_of = [json.loads(line) for line in answers.stdout.splitlines()]
    wrong = [name for (name, _, check), ids in zip(cases, ids_of, strict=True) if not check(ids)]
    for name in wrong:
        print(f"different ids: {name}")
    print(f"{len(cases) - len(wrong)} of {len(cases)} vectors agree")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
