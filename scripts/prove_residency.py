#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Proves a memory budget on real bytes: device bytes against what had to be read, under a hard cap.

usage: prove_residency.py [--bin BUILD_DIR] [--tokens N] [--keep] FOLDER

A checkpoint of the released widths with few layers and experts (6.7 GB of random data) is made and
packed in FOLDER (14 GB free; what is there already is used). k3infer then decodes with a third of
the pack's size as its budget, mapped and direct, in a memory control group of its own where one can
be made (root, version 1 or 2), and everything else is read from its --stats. Holds when
  * device bytes of the decoded tokens are at most 1.02 times the ideal,
  * compute threads met at most two page faults a token from the third on (the kernel moves a page of
    theirs now and then; weights that are faulted in would be hundreds),
  * peak memory is within the budget, and the group's limit was never hit,
  * both ways gave the same ids and logits.
Times are printed and not judged: they depend on who else uses the machine. Exit status 0, 1, or 77
where nothing can be measured (the folder is not on a device).
"""

import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
HEADROOM = 1 << 28


class Group:
    """A memory control group with a hard limit; `path` is None where none can be made."""

    def __init__(self, limit: int):
        self.path, name = None, f"k3-prove-{os.getpid()}"
        for base, limit_file in (("/sys/fs/cgroup/memory", "memory.limit_in_bytes"),
                                 ("/sys/fs/cgroup", "memory.max")):
            path = pathlib.Path(base) / name
            try:
                path.mkdir()
                (path / limit_file).write_text(str(limit))
            except OSError:
                if path.is_dir():
                    path.rmdir()
                continue
            self.path = path
            return

    def enter(self):
        if self.path:
            (self.path / "cgroup.procs").write_text(str(os.getpid()))

    def hits(self):
        """How often the limit was met; None where nobody counts."""
        if self.path and (self.path / "memory.failcnt").exists():
            return int((self.path / "memory.failcnt").read_text())
        if self.path and (self.path / "memory.events").exists():
            events = dict(line.split() for line in (self.path / "memory.events").read_text().split("\n") if line)
            return int(events["max"])
        return None

    def remove(self):
        if self.path:
            self.path.rmdir()


def prepare(args) -> pathlib.Path:
    checkpoint, pack = args.folder / "checkpoint", args.folder / "pack"
    if not (pack / "k3.index").exists():
        args.folder.mkdir(parents=True, exist_ok=True)
        subprocess.run([sys.executable, str(ROOT / "scripts" / "make_checkpoint.py"), "--preset", "wide",
                        "--force", str(checkpoint)], check=True)
        subprocess.run([str(args.bin / "packer" / "k3pack"), "-q", str(checkpoint), str(pack)], check=True)
        shutil.rmtree(checkpoint)
    return pack


def evict(pack):
    for path in pack.iterdir():
        fd = os.open(path, os.O_RDONLY)
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(fd)


def direct_rate(path, seconds=2.0) -> float:
    """Bytes a second of plain O_DIRECT reads of 4 MiB, one after the other, right now."""
    import mmap
    buffer = mmap.mmap(-1, 4 << 20)
    fd = os.open(path, os.O_RDONLY | os.O_DIRECT)
    start, done = time.monotonic(), 0
    while time.monotonic() - start < seconds:
        done += os.preadv(fd, [buffer], (done // len(buffer)) * len(buffer) % (os.path.getsize(path) >> 22 << 22))
    os.close(fd)
    return done / (time.monotonic() - start)


def decode(args, pack, group, ram, io, folder):
    evict(pack)
    stats, logits = folder / f"{io}.json", folder / f"{io}.npy"
    subprocess.run([str(args.bin / "runtime" / "cli" / "k3infer"), "-q", str(pack), "--ids", "5,17,250",
                    "-n", str(args.tokens), "--ram", str(ram), "--io", io, "--stats", str(stats),
                    "--logits", str(logits)], check=True, stdout=subprocess.DEVNULL,
                   preexec_fn=group.enter)
    return json.loads(stats.read_text()), logits.read_bytes()


def judge(io, report, ram) -> list:
    tokens = report["decode_tokens"]
    device = sum(t["device_read_bytes"] for t in tokens)
    ideal = sum(t["ideal_bytes"] for t in tokens)
    if device == 0:
        print("no byte came from a device: nothing to prove here")
        sys.exit(77)
    faults = sum(t["compute_thread_faults"] for t in tokens[2:])
    seconds = statistics.median(t["seconds"] for t in tokens)
    wait = statistics.median(t["trunk_wait_seconds"] + t["expert_wait_seconds"] for t in tokens)
    cpu = sum(t["input_cpu_seconds"] for t in tokens)
    print(f"| {io} | {device / 1e9:.2f} | {ideal / 1e9:.2f} | {device / ideal:.4f} | {seconds:.2f} | "
          f"{wait:.2f} | {device / 1e9 / sum(t['seconds'] for t in tokens):.2f} | "
          f"{cpu / (device / 1e9):.3f} | {faults} | {report['peak_used_bytes'] / 1e9:.3f} |")
    wrong = []
    if device > 1.02 * ideal:
        wrong.append(f"{io}: {device / ideal:.4f} times the ideal bytes")
    if faults > 2 * len(tokens[2:]):
        wrong.append(f"{io}: compute threads met {faults} page faults")
    if report["peak_used_bytes"] > ram:
        wrong.append(f"{io}: used {report['peak_used_bytes']} of {ram}")
    return wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "build" / "release")
    parser.add_argument("--tokens", type=int, default=8)
    parser.add_argument("--keep", action="store_true")
    args = parser.parse_args()
    if args.tokens < 6:
        parser.error("--tokens: at least 6")
    pack = prepare(args)
    size = sum(path.stat().st_size for path in pack.iterdir())
    ram = size // 3
    group = Group(ram + HEADROOM)
    print(f"pack {size / 1e9:.2f} GB, budget {ram / 1e9:.2f} GB, "
          f"{'hard cap ' + format((ram + HEADROOM) / 1e9, '.2f') + ' GB' if group.path else 'no cap'}; "
          f"O_DIRECT, one reader: {direct_rate(pack / 'k3.trunk') / 1e9:.2f} GB/s")
    print("| io | device GB | ideal GB | ratio | s/token | of it waiting | GB/s | input CPU s/GB | faults | "
          "peak GB |\n|---|---|---|---|---|---|---|---|---|---|")
    wrong, results = [], []
    try:
        for io in ("mmap", "direct"):
            report, logits = decode(args, pack, group, ram, io, args.folder)
            wrong += judge(io, report, ram)
            results.append(logits)
        if group.hits():
            wrong.append(f"the group's limit was hit {group.hits()} times")
    finally:
        group.remove()
    if results[0] != results[1]:
        wrong.append("mapped and direct gave different logits")
    for line in wrong:
        print("WRONG:", line)
    if not args.keep:
        shutil.rmtree(pack)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
