#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""However tensors are spread over shards: one pack, both readers agree, export gives them back."""

import json
import os
import pathlib
import shutil
import unittest

from k3pack_common import (OK, SHARED_FILES, TestCase, digests, read_pack, run, text_tensors)

LAYOUTS = ("released", "single", "split", "shuffled")


class Layouts(TestCase):
    def pack_layout(self, preset, layout):
        return self.pack(preset, "--layout", layout)

    def test_packs_are_equal(self):
        for preset in ("fuzz", "tiny"):
            expected = digests(self.pack_layout(preset, "released"), SHARED_FILES)
            for layout in LAYOUTS[1:]:
                with self.subTest(preset=preset, layout=layout):
                    folder = self.pack_layout(preset, layout)
                    self.assertEqual(digests(folder, SHARED_FILES), expected)

    def test_pack_ids_are_equal(self):
        ids = {json.loads(run("--verify", "--json", self.pack_layout("fuzz", layout)).stdout)
               ["pack_id"] for layout in LAYOUTS}
        self.assertEqual(len(ids), 1)

    def test_verify_and_compare(self):
        for layout in LAYOUTS:
            with self.subTest(layout=layout):
                done = self.expect(OK, "--verify", "--json", self.pack_layout("tiny", layout),
                                   "--against", self.checkpoint("tiny", "--layout", layout))
                report = json.loads(done.stdout)
                self.assertEqual(report["schema"], "k3pack.verify/1")
                self.assertTrue(report["is_good"])
                self.assertEqual(report["equal_tensors"],
                                 len(text_tensors(self.checkpoint("tiny", "--layout", layout))))

    def test_compare_across_layouts(self):
        self.expect(OK, "--verify", self.pack_layout("fuzz", "released"), "--against",
                    self.checkpoint("fuzz", "--layout", "shuffled"))

    def test_second_reader_agrees(self):
        for layout in LAYOUTS:
            with self.subTest(layout=layout):
                folder = self.pack_layout("tiny", layout)
                for command in (("check", folder),
                                ("compare", folder, self.checkpoint("tiny", "--layout", layout))):
                    done = read_pack(*command)
                    self.assertEqual(done.returncode, 0, done.stdout)
                theirs = json.loads(read_pack("dump", folder).stdout)
                ours = json.loads(self.expect(OK, "--list", "--json", folder).stdout)
                self.assertEqual(ours.pop("schema"), "k3pack.list/1")
                self.assertEqual(ours, theirs)

    def test_export_is_identical(self):
        for layout in LAYOUTS:
            with self.subTest(layout=layout):
                source = self.checkpoint("tiny", "--layout", layout)
                out = self.folder / layout
                self.expect(OK, "-q", "--export", self.pack_layout("tiny", layout), out)
                self.assertEqual(text_tensors(out), text_tensors(source))
                for name in ("config.json", "tiktoken.model", "tokenizer_config.json",
                             "generation_config.json"):
                    self.assertEqual((out / name).read_bytes(), (source / name).read_bytes())
                self.assertFalse(list(out.glob("*.partial")))
                again = self.folder / f"{layout}-again"
                self.expect(OK, "-q", out, again)
                self.assertEqual(digests(again, SHARED_FILES),
                                 digests(self.pack_layout("tiny", "released"), SHARED_FILES))

    def test_released_shards_come_back_whole(self):
        source, out = self.checkpoint("tiny", "--layout", "released"), self.folder / "out"
        self.expect(OK, "-q", "--export", self.pack_layout("tiny", "released"), out)
        for path in out.glob("*.safetensors"):
            self.assertEqual(path.read_bytes(), (source / path.name).read_bytes())

    def test_without_index_file(self):
        self.expect(OK, "-q", self.checkpoint("fuzz", "--no-index"), self.folder / "pack")
        self.assertEqual(digests(self.folder / "pack"), digests(self.pack("fuzz")))

    def test_list_names_the_layers(self):
        text = self.expect(OK, "--list", "-v", self.pack("fuzz")).stdout.decode()
        self.assertIn("self_attn.A_log", text)
        self.assertIn("made from 1 shards", text)


class Places(TestCase):
    """Where folders lie and what they are called."""

    def test_symlinked_shards(self):
        source, links = self.checkpoint("tiny"), self.folder / "snapshot"
        links.mkdir()
        for path in source.iterdir():
            (links / path.name).symlink_to(path)
        self.expect(OK, "-q", links, self.folder / "pack")
        self.assertEqual(digests(self.folder / "pack"), digests(self.pack("tiny")))

    def test_names_with_spaces_and_letters(self):
        source = self.folder / "my model für Käthe"
        shutil.copytree(self.checkpoint(), source)
        self.expect(OK, "-q", source, self.folder / "ein päck")
        self.expect(OK, "--verify", self.folder / "ein päck", "--against", source)

    def test_relative_paths(self):
        shutil.copytree(self.checkpoint(), self.folder / "in")
        self.expect(OK, "-q", "in", "out", cwd=self.folder)
        self.expect(OK, "--verify", "./out/", cwd=self.folder)

    def test_target_inside_the_checkpoint(self):
        source = self.own_checkpoint()
        self.expect(OK, "-q", source, source / "pack")
        self.expect(OK, "--verify", source / "pack", "--against", source)

    def test_read_only_checkpoint(self):
        source = self.own_checkpoint()
        for path in source.iterdir():
            path.chmod(0o444)
        source.chmod(0o555)
        try:
            self.expect(OK, "-q", source, self.folder / "pack")
        finally:
            source.chmod(0o755)

    def test_modes_follow_the_umask(self):
        old = os.umask(0o027)
        try:
            self.expect(OK, "-q", self.checkpoint(), self.folder / "pack")
        finally:
            os.umask(old)
        for path in (self.folder / "pack").iterdir():
            self.assertEqual(path.stat().st_mode & 0o777, 0o640, path.name)

    def test_another_file_system(self):
        other = pathlib.Path("/dev/shm")
        if not other.is_dir() or not os.access(other, os.W_OK):
            self.skipTest("no /dev/shm")
        target = other / f"k3pack-{os.getpid()}"
        try:
            self.expect(OK, "-q", self.checkpoint(), target)
            self.assertEqual(digests(target), digests(self.pack()))
        finally:
            shutil.rmtree(target, ignore_errors=True)


if __name__ == "__main__":
    unittest.main()
