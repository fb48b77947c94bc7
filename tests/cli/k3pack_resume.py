#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Interruptions of every kind: a rerun gives the bytes of an uninterrupted run, or says why not;
nothing that looks like a finished pack exists before it is one."""

import fcntl
import json
import os
import pathlib
import resource
import shutil
import signal
import subprocess
import time
import unittest

from k3pack_common import (AGAIN, CANT_CREATE, DATA, IO, K3PACK, OK, TestCase, digests,
                           find_tensor, flip, make_checkpoint, patch, run)

KILLS = int(os.environ.get("K3PACK_KILLS", "30"))


class Kill(TestCase):
    """kill -9, one moment after the other, over the whole time that a run takes."""

    def begin(self, *arguments):
        return subprocess.Popen([K3PACK, "-q", *map(str, arguments)], stdout=subprocess.DEVNULL,
                                stderr=subprocess.DEVNULL)

    def run_time(self, source):
        begin = time.monotonic()
        self.expect(OK, "-q", source, self.folder / "timed")
        return time.monotonic() - begin

    def kill_at(self, source, target, delay):
        """True when it was killed, false when it had finished."""
        child = self.begin(source, target)
        time.sleep(delay)
        child.kill()
        return child.wait() != 0

    def check_layout(self, layout, count):
        source = self.checkpoint("tiny", "--layout", layout)
        expected = self.pack("tiny", "--layout", layout)
        length, killed = self.run_time(source), 0
        for moment in range(count):
            target = self.folder / f"{layout}-{moment}"
            if self.kill_at(source, target, length * (moment + 0.5) / count):
                killed += 1
                if (target / "k3.index").exists():      # killed between the seal and its exit
                    self.expect(OK, "--verify", target)
            self.expect(OK, "-q", source, target)
            self.assert_same_pack(target, expected)
            shutil.rmtree(target)
        self.assertGreater(killed, 0, "no run was killed: the test does not test")

    def test_each_layout(self):
        for layout in ("released", "split", "shuffled"):
            with self.subTest(layout=layout):
                self.check_layout(layout, max(KILLS // 3, 1))

    def test_killed_again_and_again(self):
        source, target = self.checkpoint("tiny", "--layout", "split"), self.folder / "pack"
        length = self.run_time(source)
        for attempt in range(1, 12):
            self.kill_at(source, target, length * attempt / 12)
        self.expect(OK, "-q", source, target)
        self.assert_same_pack(target, self.pack("tiny", "--layout", "split"))


class Stopped(TestCase):
    """An unfinished pack to work on: the run was told to stop after a few shards."""

    LAYOUT = "split"

    def setUp(self):
        super().setUp()
        self.source = self.own_checkpoint("tiny", "--layout", self.LAYOUT)
        self.target = self.folder / "pack"

    def stop(self, wanted=2, number=signal.SIGKILL):
        """Stops a run when its journal holds about `wanted` shards; some runs are too fast."""
        for _ in range(200):
            shutil.rmtree(self.target, ignore_errors=True)
            child = subprocess.Popen([K3PACK, "-q", str(self.source), str(self.target)],
                                     stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
            while child.poll() is None and self.journal_bytes() < 8000 * wanted:
                pass
            child.send_signal(number)
            text = child.communicate()[1].decode()
            if child.returncode and (self.target / "k3.journal").exists() \
                    and self.journal_bytes() >= 8000:
                return child.returncode, text
        raise AssertionError("every run finished before it could be stopped")

    def journal_bytes(self):
        try:
            return (self.target / "k3.journal").stat().st_size
        except FileNotFoundError:
            return 0

    def resume(self):
        done = self.expect(OK, "--json", self.source, self.target)
        self.assert_same_pack(self.target, self.pack("tiny", "--layout", self.LAYOUT))
        return json.loads(done.stdout)["resumed"]

    def test_signals(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            status, text = self.stop(number=number)
            self.assertEqual(status, AGAIN)
            self.assertIn("run the same command again to resume", text)
            self.assert_no_pack(self.target)
            self.assertGreater(self.resume()["shards"], 0)

    def test_unfinished_is_said(self):
        self.stop()
        self.expect_error(66, "--verify", self.target, says=["not finished"])
        self.expect_error(66, "--list", self.target, says=["not finished"])

    def test_written_is_not_believed(self):
        """Whatever happened to the data files meanwhile, the result is the same."""
        for what in ("flip", "zero", "cut", "remove", "foreign"):
            with self.subTest(what=what):
                self.stop(4)
                for name in ("k3.trunk.partial", "k3.experts.partial"):
                    self.spoil(self.target / name, what)
                resumed = self.resume()
                self.assertGreater(resumed["redone_extents"] + resumed["redone_experts"], 0)

    @staticmethod
    def spoil(path, what):
        size = path.stat().st_size
        if what == "flip":
            for offset in range(2 << 20, size, 24571):
                flip(path, offset)
        elif what == "zero":
            path.write_bytes(b"")
            os.truncate(path, size)
        elif what == "cut":
            os.truncate(path, size // 16)
        elif what == "remove":
            path.unlink()
        else:
            path.write_bytes(b"\x5a" * size)

    def test_garbage_where_nothing_is_yet(self):
        """Bytes of a shard that was not finished do not shine through zeros that are skipped."""
        self.stop(2)
        for name in ("k3.trunk.partial", "k3.experts.partial"):
            path = self.target / name
            size = path.stat().st_size
            patch(path, size // 2, b"\x77" * (size - size // 2))
        self.resume()

    def test_journal_torn_and_flipped(self):
        self.stop(3)
        kept = self.folder / "kept"
        shutil.copytree(self.target, kept)
        journal = (kept / "k3.journal").read_bytes()
        cuts = [journal[:size] for size in (0, 1, 31, 33, 1000, len(journal) - 1)]
        flips = [journal[:at] + bytes([journal[at] ^ 1]) + journal[at + 1:]
                 for at in range(0, len(journal), len(journal) // 12)]
        longer = [journal + b"\0" * 100, journal + journal[-500:], journal + journal]
        for number, data in enumerate(cuts + flips + longer):
            with self.subTest(number=number):
                shutil.rmtree(self.target)
                shutil.copytree(kept, self.target)
                (self.target / "k3.journal").write_bytes(data)
                self.resume()

    def test_source_changed(self):
        self.stop(3)
        first = sorted(self.source.glob("*.safetensors"))[0]
        os.utime(first)
        text = self.expect_error(DATA, "-q", self.source, self.target,
                                 says=[first.name, "--restart"])
        self.assertIn("time of modification", text)
        self.assert_no_pack(self.target)
        self.expect(OK, "-q", "--restart", self.source, self.target)
        self.assert_same_pack(self.target, self.pack("tiny", "--layout", self.LAYOUT))

    def test_source_changed_in_secret(self):
        """Same size, same time, other bytes: found when something has to be written again."""
        self.stop(4)
        done = json.loads(run("--list", "--json",
                              self.pack("tiny", "--layout", self.LAYOUT)).stdout)
        first = min(done["trunk_sources"], key=lambda s: (s["shard"], s["offset"]))
        path, offset, _ = find_tensor(self.source, first["name"])
        flip(path, offset, 1)
        (self.target / "k3.trunk.partial").unlink()
        self.expect_error(DATA, "-q", self.source, self.target,
                          says=[first["name"], "reads differently"])
        self.assert_no_pack(self.target)

    def test_later_shard_replaced(self):
        """A shard that is not packed yet may be downloaded again."""
        self.stop(2)
        last = sorted(self.source.glob("*.safetensors"))[-1]
        os.utime(last)
        self.resume()

    def test_config_changed(self):
        self.stop(3)
        with open(self.source / "generation_config.json", "a", encoding="ascii") as stream:
            stream.write(" ")
        self.expect_error(DATA, "-q", self.source, self.target, says=["config", "--restart"])

    def test_another_checkpoint(self):
        self.stop(3)
        other = self.checkpoint("fuzz")
        self.expect_error(DATA, "-q", other, self.target, says=["--restart"])
        self.expect(OK, "-q", "--restart", other, self.target)
        self.assert_same_pack(self.target, self.pack("fuzz"))

    def test_vanished_source(self):
        self.stop(3)
        last = sorted(self.source.glob("*.safetensors"))[-1]
        last.rename(self.folder / "away")
        self.expect_error(DATA, "-q", self.source, self.target, says=[last.name])
        (self.folder / "away").rename(last)
        self.resume()

    def test_crash_between_the_renames(self):
        self.expect(OK, "-q", self.source, self.target)
        index = (self.target / "k3.index").read_bytes()
        self.stop(3)
        kept = self.folder / "kept"
        shutil.copytree(self.target, kept)
        for renamed in (("k3.trunk",), ("k3.trunk", "k3.experts")):
            shutil.rmtree(self.target)
            shutil.copytree(kept, self.target)
            for name in renamed:
                (self.target / f"{name}.partial").rename(self.target / name)
            (self.target / "k3.index.partial").write_bytes(index[:5000])
            self.resume()

    def test_crash_after_the_seal(self):
        self.expect(OK, "-q", self.source, self.target)
        (self.target / "k3.journal").write_bytes(b"left over")
        self.expect(OK, "-q", self.source, self.target)
        self.assert_same_pack(self.target, self.pack("tiny", "--layout", self.LAYOUT))


class Targets(TestCase):
    """What may already be where the pack should go."""

    def test_two_packers(self):
        target = self.folder / "pack"
        target.mkdir()
        with open(target / "k3.journal", "wb") as stream:
            fcntl.flock(stream, fcntl.LOCK_EX)
            self.expect_error(AGAIN, "-q", self.checkpoint(), target, says=["another k3pack"])
        self.expect(OK, "-q", self.checkpoint(), target)
        self.assert_same_pack(target, self.pack())

    def test_already_packed(self):
        target = self.own_pack()
        before = digests(target)
        done = self.expect(OK, self.checkpoint(), target)
        self.assertIn("already packed", done.stderr.decode())
        self.assertEqual(digests(target), before)

    def test_another_pack_is_kept(self):
        target = self.own_pack("fuzz")
        before = digests(target)
        self.expect_error(CANT_CREATE, self.checkpoint("tiny"), target, says=["another checkpoint"])
        self.expect_error(CANT_CREATE, "--restart", self.checkpoint("tiny"), target)
        self.assertEqual(digests(target), before)

    def test_files_that_nothing_explains(self):
        target = self.folder / "pack"
        target.mkdir()
        (target / "k3.trunk").write_bytes(b"somebody's work")
        self.expect_error(CANT_CREATE, "-q", self.checkpoint(), target, says=["k3.trunk"])
        self.assertEqual((target / "k3.trunk").read_bytes(), b"somebody's work")
        self.assertEqual([path.name for path in target.iterdir()], ["k3.trunk"])

    def test_partial_files_without_a_journal(self):
        target = self.folder / "pack"
        target.mkdir()
        (target / "k3.trunk.partial").write_bytes(b"x" * 9000000)
        (target / "k3.experts.partial").write_bytes(b"x" * 9000000)
        self.expect(OK, "-q", self.checkpoint(), target)
        self.assert_same_pack(target, self.pack())

    def test_a_file_in_the_way(self):
        (self.folder / "pack").write_bytes(b"")
        self.expect_error(CANT_CREATE, "-q", self.checkpoint(), self.folder / "pack")
        self.expect_error(CANT_CREATE, "-q", self.checkpoint(), self.folder / "no/such/pack")

    def test_read_only_target(self):
        if os.geteuid() == 0:
            self.skipTest("root writes everywhere")
        (self.folder / "pack").mkdir(mode=0o555)
        self.expect_error(CANT_CREATE, "-q", self.checkpoint(), self.folder / "pack")

    def test_export_needs_an_empty_folder(self):
        out = self.folder / "out"
        out.mkdir()
        (out / "thesis.tex").write_bytes(b"")
        self.expect_error(CANT_CREATE, "--export", self.pack(), out, says=["not empty"])
        self.assertEqual([path.name for path in out.iterdir()], ["thesis.tex"])


class Space(TestCase):
    """Before the first byte: exact numbers. In the middle: resumes after space is made."""

    def test_file_size_limit(self):
        def limit():
            resource.setrlimit(resource.RLIMIT_FSIZE, (3 << 20, 3 << 20))

        target = self.folder / "pack"
        text = self.expect_error(IO, "-q", self.checkpoint("tiny"), target, says=["ulimit -f"],
                                 preexec_fn=limit)
        self.assertIn(str(3 << 20), text)
        self.assertEqual(list(target.iterdir()), [], "something was left")

    def mount(self, size):
        """A command prefix that runs in a world where `where` is a file system of that size."""
        where = self.folder / "small"
        where.mkdir(exist_ok=True)
        script = f'mount -t tmpfs -o size={size} none "$1" && shift && exec "$@"'
        prefix = ["unshare", "--mount", "--map-root-user"] if os.geteuid() else ["unshare", "-m"]
        prefix += ["sh", "-c", script, "sh", str(where)]
        if shutil.which("unshare") is None or subprocess.run(
                [*prefix, "true"], stderr=subprocess.DEVNULL, check=False).returncode:
            self.skipTest("file systems cannot be mounted here")
        return where, prefix

    def test_preflight(self):
        where, prefix = self.mount("2m")
        done = subprocess.run([*prefix, K3PACK, "-q", str(self.checkpoint("tiny")),
                               str(where / "pack")], capture_output=True, check=False)
        self.assertEqual(done.returncode, IO, done.stderr.decode())
        self.assertRegex(done.stderr.decode(), r"has \d+ bytes free, this pack needs \d+ \(\d+ more")

    def test_full_disk(self):
        """Space that was there at the start is taken by somebody else; then it comes back."""
        where, prefix = self.mount("14m")
        script = ('("$1" -q "$2" "$3/pack"; echo $? > "$3/status") &\n'
                  'while [ ! -e "$3/pack/k3.journal" ]; do :; done\n'
                  'head -c 30000000 /dev/zero > "$3/filler" 2> /dev/null\n'
                  'wait; first=$(cat "$3/status"); ls "$3/pack" >&2; rm "$3/filler"\n'
                  '"$1" -q "$2" "$3/pack" || exit 1\n'
                  'cp "$3"/pack/k3.* "$4"; echo "$first"')
        out = self.folder / "out"
        out.mkdir()
        done = subprocess.run([*prefix, "sh", "-c", script, "sh", K3PACK,
                               str(self.checkpoint("tiny")), str(where), str(out)],
                              capture_output=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        self.assertIn(int(done.stdout.split()[-1]), (OK, IO))
        self.assertEqual(digests(out), digests(self.pack("tiny")))


if __name__ == "__main__":
    unittest.main()
