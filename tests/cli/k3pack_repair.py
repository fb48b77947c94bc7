#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""k3pack --repair: every kind of damage goes away byte for byte, from no more of the checkpoint than
it needs; what cannot be repaired is listed and stays damaged for every reader."""

import fcntl
import json
import os
import random
import shutil
import signal
import subprocess
import time
import unittest

from k3pack_common import (AGAIN, DATA, K3PACK, NO_INPUT, OK, PACK_FILES, TestCase, digests,
                           find_tensor, flip, patch, run)


class RepairCase(TestCase):
    PRESET = ("tiny",)

    def setUp(self):
        super().setUp()
        self.pack_dir = self.own_pack(*self.PRESET)
        self.source = self.checkpoint(*self.PRESET)
        self.before = digests(self.pack_dir)
        self.list = json.loads(run("--list", "--json", self.pack_dir).stdout)

    def repair(self, status=OK, *options, source=None):
        done = self.expect(status, "-q", "--repair", "--json", *options, self.pack_dir,
                           source or self.source)
        return json.loads(done.stdout)

    def assert_whole(self, *options, source=None):
        report = self.repair(OK, *options, source=source)
        self.assertTrue(report["is_whole"], report)
        self.assertEqual((report["lacking"], report["left"]), ([], []))
        self.assertEqual(digests(self.pack_dir), self.before)
        self.assertEqual(sorted(path.name for path in self.pack_dir.iterdir()),
                         sorted(PACK_FILES))
        return report

    def trunk_at(self, tensor, offset=0):
        return tensor["file_offset"] + offset

    def expert_at(self, number, offset=0):
        layout = self.list["expert_layout"]
        return layout["data_offset"] + number * layout["stride"] + offset


class Repair(RepairCase):
    def test_nothing_to_do(self):
        times = {name: os.stat(self.pack_dir / name).st_mtime_ns for name in PACK_FILES}
        report = self.assert_whole()
        self.assertEqual(report["written_bytes"], 0)
        self.assertEqual(times, {n: os.stat(self.pack_dir / n).st_mtime_ns for n in PACK_FILES})

    def test_every_trunk_tensor(self):
        """All at once, and only the pages that were damaged are written."""
        for tensor in self.list["trunk_tensors"]:
            for at in (0, tensor["stored_bytes"] // 2, tensor["stored_bytes"] - 1):
                flip(self.pack_dir / "k3.trunk", self.trunk_at(tensor, at))
        report = self.assert_whole()
        self.assertGreater(report["repaired_blocks"], 10)
        self.assertLessEqual(report["written_bytes"], 3 * 4096 * len(self.list["trunk_tensors"]))

    def test_each_trunk_tensor_alone(self):
        for number, tensor in enumerate(self.list["trunk_tensors"]):
            if number % 7 and tensor["role"] not in (14, 19, 20, 44):
                continue
            flip(self.pack_dir / "k3.trunk", self.trunk_at(tensor, tensor["stored_bytes"] // 3))
            report = self.assert_whole()
            self.assertEqual((report["repaired_blocks"], report["written_bytes"]), (1, 4096))

    def test_experts(self):
        used = self.list["expert_layout"]["used_bytes"]
        for number in (0, 3, 9):
            for at in (0, used // 2, used - 1):
                flip(self.pack_dir / "k3.experts", self.expert_at(number, at))
        report = self.assert_whole()
        self.assertEqual(report["repaired_experts"], 3)

    def test_only_what_is_in_scope(self):
        for number in (0, 9):
            flip(self.pack_dir / "k3.experts", self.expert_at(number))
        first = self.list["expert_layout"]["first_layer"]
        report = self.repair(OK, "--experts", f"{first}:0")
        self.assertEqual(report["repaired_experts"], 1)
        self.expect(DATA, "--verify", self.pack_dir)
        self.assert_whole()

    def test_padding(self):
        for tensor in self.list["trunk_tensors"]:
            end = tensor["file_offset"] + tensor["stored_bytes"]
            if end % 4096:
                flip(self.pack_dir / "k3.trunk", end)
        self.assert_whole()

    def test_superblocks_and_tails(self):
        """One file at a time: the other copy helps, and the index needs all shards at most."""
        for name in PACK_FILES:
            size = (self.pack_dir / name).stat().st_size
            table = self.list["superblocks"][name]["section_table_offset"]
            places = [0, 9, 30, 100, 4090, table + 5, size - 1]
            places += [entry["offset"] for entry in self.list["section_tables"][name]]
            for at in places:
                with self.subTest(name=name, at=at):
                    flip(self.pack_dir / name, at)
                    self.assert_whole("--quick")

    def test_tail_and_data_at_once(self):
        flip(self.pack_dir / "k3.trunk", 100)
        flip(self.pack_dir / "k3.trunk", self.trunk_at(self.list["trunk_tensors"][5]))
        flip(self.pack_dir / "k3.experts", 4080)
        flip(self.pack_dir / "k3.experts", self.expert_at(2))
        flip(self.pack_dir / "k3.index", self.list["section_tables"]["k3.index"][3]["offset"])
        self.assert_whole()

    def test_lost_index(self):
        (self.pack_dir / "k3.index").unlink()
        report = self.assert_whole()
        self.assertTrue(report["read_all_shards"])

    def test_lost_index_and_damaged_data(self):
        (self.pack_dir / "k3.index").unlink()
        for tensor in self.list["trunk_tensors"][::5]:
            flip(self.pack_dir / "k3.trunk", self.trunk_at(tensor, 3))
        flip(self.pack_dir / "k3.experts", self.expert_at(1, 77))
        self.assert_whole()

    def test_lost_and_cut_and_grown_data_files(self):
        for name in ("k3.trunk", "k3.experts"):
            size = (self.pack_dir / name).stat().st_size
            for new_size in (0, 100, size // 2, size - 1, size + 5000, None):
                with self.subTest(name=name, size=new_size):
                    if new_size is None:
                        (self.pack_dir / name).unlink()
                    else:
                        os.truncate(self.pack_dir / name, new_size)
                    self.assert_whole()

    def test_both_copies_lost(self):
        for name in ("k3.trunk", "k3.index"):
            for entry in self.list["section_tables"][name]:
                if entry["kind"] == 4:
                    flip(self.pack_dir / name, entry["offset"])
        damaged = digests(self.pack_dir)
        self.expect_error(DATA, "-q", "--repair", self.pack_dir, self.source, says=["make it anew"])
        self.assertEqual(digests(self.pack_dir), damaged)

    def test_file_of_another_pack(self):
        other = self.folder / "other"
        source = shutil.copytree(self.source, self.folder / "changed")
        with open(source / "generation_config.json", "a", encoding="ascii") as stream:
            stream.write(" ")
        self.expect(OK, "-q", source, other)
        shutil.copy(other / "k3.trunk", self.pack_dir / "k3.trunk")
        damaged = digests(self.pack_dir)
        self.expect_error(DATA, "-q", "--repair", self.pack_dir, self.source,
                          says=["k3.trunk belongs to another pack"])
        self.assertEqual(digests(self.pack_dir), damaged)

    def test_not_a_pack(self):
        self.expect_error(NO_INPUT, "-q", "--repair", self.folder, self.source)
        self.expect_error(NO_INPUT, "-q", "--repair", self.folder / "none", self.source)

    def test_busy(self):
        with open(self.pack_dir / "k3.trunk", "rb") as stream:
            fcntl.flock(stream, fcntl.LOCK_EX)
            self.expect_error(AGAIN, "-q", "--repair", self.pack_dir, self.source)


class PartialCheckpoint(RepairCase):
    """What is there helps, what is lacking is named, nothing looks repaired that is not."""

    def damage_one_of_each(self):
        tensor = self.list["trunk_tensors"][40]
        flip(self.pack_dir / "k3.trunk", self.trunk_at(tensor, 9))
        flip(self.pack_dir / "k3.experts", self.expert_at(4, 9))
        report = json.loads(self.expect(DATA, "--verify", "--json", self.pack_dir).stdout)
        self.assertEqual(len(report["damage"]), 2)
        return report["damage"]

    def test_one_shard_is_enough(self):
        trunk, expert = self.damage_one_of_each()
        some = self.folder / "some"
        some.mkdir()
        shutil.copy(self.source / trunk["source"]["shard"], some)
        if expert["source"]["shard"] != trunk["source"]["shard"]:
            report = self.repair(DATA, source=some)
            self.assertEqual((report["repaired_blocks"], report["repaired_experts"]), (1, 0))
            shutil.copy(self.source / expert["source"]["shard"], some)
        self.assert_whole(source=some)

    def test_the_named_bytes_are_enough(self):
        """A file with only those bytes at their place does, as a range download would make it."""
        damage = self.damage_one_of_each()
        some = self.folder / "some"
        some.mkdir()
        report = self.repair(DATA, source=some)
        self.assertFalse(report["is_whole"])
        self.assertEqual((report["repaired_blocks"], report["repaired_experts"]), (0, 0))
        self.expect(DATA, "--verify", self.pack_dir)
        for item in damage + [l for l in report["lacking"]
                              if l.get("expert") is not None]:
            place = item["source"]
            data = (self.source / place["shard"]).read_bytes()
            path = some / place["shard"]
            if not path.exists():
                path.touch()
            patch(path, place["offset"],
                  data[place["offset"]:place["offset"] + place["bytes"]])
        self.assert_whole(source=some)

    def test_lacking_names_ranges(self):
        damage = self.damage_one_of_each()
        some = self.folder / "some"
        some.mkdir()
        lacking = self.repair(DATA, source=some)["lacking"]
        places = {(l["source"]["shard"], l["source"]["offset"]) for l in lacking}
        for item in damage:
            self.assertIn((item["source"]["shard"], item["source"]["offset"]), places)
        text = self.expect(DATA, "-q", "--repair", self.pack_dir, some).stdout.decode()
        for shard, offset in places:
            self.assertIn(f"lacking: '{shard}' bytes {offset}..", text)

    def test_wrong_bytes_in_the_shard(self):
        damage = self.damage_one_of_each()
        copy = shutil.copytree(self.source, self.folder / "copy")
        for item in damage:
            flip(copy / item["source"]["shard"], item["source"]["offset"] + 1)
        broken = digests(self.pack_dir)
        report = self.repair(DATA, source=copy)
        self.assertEqual((report["repaired_blocks"], report["repaired_experts"]), (0, 0))
        self.assertTrue(all("other bytes" in l["message"] for l in report["lacking"]))
        self.assertEqual(digests(self.pack_dir), broken)
        self.assert_whole()

    def test_lost_index_needs_all_shards(self):
        (self.pack_dir / "k3.index").unlink()
        flip(self.pack_dir / "k3.trunk", (self.pack_dir / "k3.trunk").stat().st_size - 3)
        copy = shutil.copytree(self.source, self.folder / "copy")
        gone = sorted(copy.glob("*.safetensors"))[3]
        gone.unlink()
        self.expect_error(NO_INPUT, "-q", "--repair", self.pack_dir, copy, says=[gone.name])
        self.assertFalse((self.pack_dir / "k3.index").exists())
        self.assert_whole()

    def test_lost_index_and_another_checkpoint(self):
        (self.pack_dir / "k3.index").unlink()
        copy = shutil.copytree(self.source, self.folder / "copy")
        source = self.list["trunk_sources"][11]
        path, offset, _ = find_tensor(copy, source["name"])
        flip(path, offset, 1)
        self.expect_error(DATA, "-q", "--repair", self.pack_dir, copy, says=["does not hold"])
        self.assertFalse((self.pack_dir / "k3.index").exists())


class Interrupted(RepairCase):
    def test_kill(self):
        """At random moments: a block is as damaged as before or right, never anything else."""
        source = random.Random(5)
        for tensor in self.list["trunk_tensors"][::3]:
            flip(self.pack_dir / "k3.trunk", self.trunk_at(tensor, 5))
        for number in range(0, 40, 3):
            flip(self.pack_dir / "k3.experts", self.expert_at(number, 5))
        flip(self.pack_dir / "k3.trunk", 200)
        flip(self.pack_dir / "k3.index", 200)
        kept = self.folder / "kept"
        shutil.copytree(self.pack_dir, kept)
        start = time.monotonic()
        self.repair()
        whole = time.monotonic() - start
        for _ in range(12):
            shutil.rmtree(self.pack_dir)
            shutil.copytree(kept, self.pack_dir)
            child = subprocess.Popen([K3PACK, "-q", "--repair", str(self.pack_dir),
                                      str(self.source)], stdout=subprocess.DEVNULL)
            time.sleep(source.random() * whole)
            child.send_signal(signal.SIGKILL)
            child.wait()
            report = json.loads(run("--verify", "--json", self.pack_dir).stdout)
            self.assertEqual(report["is_good"], digests(self.pack_dir) == self.before)
            self.repair()
            self.assertEqual(digests(self.pack_dir), self.before)


if __name__ == "__main__":
    unittest.main()
