# SPDX-License-Identifier: Apache-2.0
"""What must not be mistaken for something else: another pack's files, another checkpoint's pack,
names that only some readers can take, damage behind an unreadable file."""

import json
import os
import shutil
import subprocess
import unittest

from k3pack_common import (CANT_CREATE, DATA, IO, OK, PACK_FILES, USAGE, TestCase, digests, find_tensor,
                           flip, run, text_tensors)


class Identity(TestCase):
    def copy_of_pack(self):
        return shutil.copytree(self.pack(), self.folder / "pack")

    def test_empty_journal_explains_no_data_files(self):
        """A pack that lost its index is not overwritten because somebody left an empty journal."""
        pack = self.copy_of_pack()
        before = digests(pack, ("k3.trunk", "k3.experts"))
        (pack / "k3.index").unlink()
        (pack / "k3.journal").write_bytes(b"")
        done = run(self.checkpoint("tiny"), pack)
        self.assertEqual(done.returncode, CANT_CREATE, done.stderr)
        self.assertIn(b"without an index and without a journal", done.stderr)
        self.assertEqual(digests(pack, ("k3.trunk", "k3.experts")), before)

    def test_finished_pack_with_a_stale_journal_is_left_alone(self):
        pack = self.copy_of_pack()
        before = digests(pack, PACK_FILES)
        (pack / "k3.journal").write_bytes(b"")
        done = run(self.checkpoint(), pack)
        self.assertEqual(done.returncode, OK, done.stderr)
        self.assertEqual(digests(pack, PACK_FILES), before)

    def test_pack_of_other_small_files_is_another_pack(self):
        pack = self.copy_of_pack()
        other = self.own_checkpoint()
        with open(other / "tokenizer_config.json", "ab") as file:
            file.write(b"\n")
        done = run(other, pack)
        self.assertEqual(done.returncode, CANT_CREATE, done.stderr)
        self.assertIn(b"another checkpoint", done.stderr)

    def test_checkpoint_folder_is_no_place_for_its_pack(self):
        checkpoint = self.own_checkpoint()
        done = run(checkpoint, checkpoint)
        self.assertEqual(done.returncode, USAGE, done.stderr)
        self.assertIn(b"own folder", done.stderr)
        self.assertFalse((checkpoint / "k3.journal").exists())

    def test_restart_does_not_touch_a_finished_pack(self):
        pack = self.copy_of_pack()
        done = run("--restart", self.checkpoint(), pack)
        self.assertEqual(done.returncode, CANT_CREATE, done.stderr)
        self.assertIn(b"does not touch", done.stderr)

    def test_second_copy_of_a_shard_is_not_called_unknown(self):
        checkpoint = self.own_checkpoint("fuzz", "--no-index")
        shard = next(checkpoint.glob("*.safetensors"))
        shutil.copy(shard, checkpoint / "again (1).safetensors")
        done = run("--plan", checkpoint)
        self.assertEqual(done.returncode, DATA, done.stderr)
        self.assertNotIn(b"unknown tensor", done.stderr)

    def test_difference_is_not_called_damage(self):
        other = self.own_checkpoint()
        shard, offset, _ = find_tensor(other, "language_model.lm_head.weight")
        flip(shard, offset, 0x01)
        done = run("--verify", self.pack(), "--against", other)
        self.assertEqual(done.returncode, DATA)
        self.assertIn(b"differs from the checkpoint in 1 place", done.stderr)
        self.assertNotIn(b"bytes 0..0", done.stdout)

    def test_already_packed_does_not_claim_equal_weights(self):
        pack = self.copy_of_pack()
        other = self.own_checkpoint()
        shard, offset, _ = find_tensor(other, "language_model.lm_head.weight")
        flip(shard, offset, 0x01)
        done = run(other, pack)
        self.assertEqual(done.returncode, OK, done.stderr)
        self.assertIn(b"weights were not compared", done.stderr)
        self.assertEqual(run("--verify", pack, "--against", other).returncode, DATA)

    def test_shard_name_that_is_not_utf8_is_refused_before_packing(self):
        checkpoint = self.own_checkpoint("fuzz", "--no-index")
        shard = next(checkpoint.glob("*.safetensors"))
        os.rename(os.fsencode(shard), os.fsencode(checkpoint) + b"/\xff00.safetensors")
        done = run("--plan", checkpoint)
        self.assertEqual(done.returncode, DATA, done.stderr)
        self.assertIn(b"rename it", done.stderr)

    def test_export_of_a_shard_name_with_quotes(self):
        checkpoint = self.own_checkpoint("fuzz", "--no-index")
        next(checkpoint.glob("*.safetensors")).rename(checkpoint / 'a"\\1.safetensors')
        pack, out = self.folder / "pack", self.folder / "out"
        self.assertEqual(run("-q", checkpoint, pack).returncode, OK)
        self.assertEqual(run("-q", "--export", pack, out).returncode, OK)
        index = json.loads((out / "model.safetensors.index.json").read_text())
        self.assertEqual(set(index["weight_map"].values()), {'a"\\1.safetensors'})
        self.assertEqual(text_tensors(out), text_tensors(checkpoint))
        self.assertEqual(run("--plan", out).returncode, OK)

    def test_damage_is_told_although_comparing_failed(self):
        pack = self.copy_of_pack()
        flip(pack / "k3.trunk", (2 << 20) + 5)
        os.truncate(pack / "k3.experts", (2 << 20) + 4096)
        alone = json.loads(run("-q", "--json", "--verify", pack).stdout)
        done = run("-q", "--json", "--verify", pack, "--against", self.checkpoint())
        self.assertIn(done.returncode, (DATA, IO))
        places = {(d["file"], d.get("offset")) for d in json.loads(done.stdout)["damage"]}
        for damage in alone["damage"]:
            self.assertIn((damage["file"], damage.get("offset")), places)


if __name__ == "__main__":
    unittest.main()
