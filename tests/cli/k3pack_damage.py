#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One flipped byte in every region of a pack, cuts and extensions, files of two packs mixed:
k3pack --verify finds each and names the region."""

import json
import shutil
import unittest

from k3pack_common import (DATA, NO_INPUT, OK, PACK_FILES, TestCase, find_tensor, flip,
                           make_checkpoint, run)

SUPERBLOCK = {"magic": 0, "version_major": 8, "version_minor": 10, "feature_incompat": 12,
              "feature_compat": 16, "file_kind": 20, "pack_id": 24, "file_bytes": 40,
              "section_table_offset": 48, "section_count": 56, "spare": 60,
              "section_table_digest": 64, "data_offset": 80, "data_end": 88, "writer": 96,
              "more spare": 2000, "superblock_digest": 4090}
SECTIONS = {1: "MODEL_SPEC", 2: "TRUNK_EXTENTS", 3: "TRUNK_TENSORS", 4: "TRUNK_DIGESTS",
            5: "EXPERT_LAYOUT", 6: "EXPERT_DIGESTS", 7: "FILES", 8: "SHARDS", 9: "TRUNK_SOURCES",
            10: "EXPERT_SOURCES"}
TOP_LEVEL = 0xFFFFFFFF


class Damage(TestCase):
    def setUp(self):
        super().setUp()
        self.pack_dir = self.own_pack(*self.preset())
        self.list = json.loads(run("--list", "--json", self.pack_dir).stdout)

    @staticmethod
    def preset():
        return ("fuzz",)

    def verify(self, status, *options):
        done = self.expect(status, "--verify", "--json", *options, self.pack_dir)
        report = json.loads(done.stdout)
        self.assertEqual(report["is_good"], status == OK)
        self.assertEqual(report["damage_count"], len(report["damage"]))
        return report["damage"]

    def with_flip(self, file, offset, *options, mask=0x40):
        """The damage that one flipped byte makes; the byte is put back."""
        flip(self.pack_dir / file, offset, mask)
        damage = self.verify(DATA, *options)
        flip(self.pack_dir / file, offset, mask)
        self.assertGreater(len(damage), 0)
        return damage

    def test_good_to_begin_with(self):
        self.assertEqual(self.verify(OK), [])
        self.assertEqual(self.verify(OK, "--quick"), [])

    def test_superblocks(self):
        for file in PACK_FILES:
            for field, offset in SUPERBLOCK.items():
                with self.subTest(file=file, field=field):
                    for options in ((), ("--quick",)):
                        damage = self.with_flip(file, offset, *options)
                        self.assertEqual({d["file"] for d in damage}, {file}, damage)
                        self.assertEqual(damage[0]["kind"], "superblock")

    def test_sections(self):
        for file, table in self.list["section_tables"].items():
            for entry in table:
                for at in {0, entry["stored_bytes"] // 2, entry["stored_bytes"] - 1}:
                    with self.subTest(file=file, kind=entry["kind"], at=at):
                        damage = self.with_flip(file, entry["offset"] + at, "--quick")
                        self.assertEqual(len(damage), 1, damage)
                        self.assertEqual((damage[0]["kind"], damage[0]["file"],
                                          damage[0]["section"]),
                                         ("section", file, SECTIONS[entry["kind"]]))
                        self.assertEqual((damage[0]["offset"], damage[0]["bytes"]),
                                         (entry["offset"], entry["stored_bytes"]))

    def test_section_tables_and_padding(self):
        for file, table in self.list["section_tables"].items():
            start = self.list["superblocks"][file]["section_table_offset"]
            for at in range(start, start + 64 * len(table), 13):
                damage = self.with_flip(file, at, "--quick")
                self.assertEqual(damage[0]["kind"], "section_table")
                self.assertEqual(damage[0]["file"], file)
            ends = [entry["offset"] + entry["stored_bytes"] for entry in table]
            for end, after in zip(ends, [entry["offset"] for entry in table[1:]] + [start]):
                if end < after:
                    damage = self.with_flip(file, end, "--quick")
                    self.assertEqual(damage[0]["kind"], "padding")

    def source_of(self, damage):
        return damage["source"]["shard"], damage["source"]["offset"], damage["source"]["bytes"]

    def test_every_trunk_tensor(self):
        checkpoint = self.checkpoint(*self.preset())
        for tensor in self.list["trunk_tensors"]:
            source = self.list["trunk_sources"][tensor["source"]]
            for at in {0, tensor["stored_bytes"] // 2, tensor["stored_bytes"] - 1}:
                with self.subTest(name=source["name"], role=tensor["role"], at=at):
                    damage = self.with_flip("k3.trunk", tensor["file_offset"] + at)
                    # kv_b_proj is stored as two: the digest of the source cannot tell them apart.
                    self.assertEqual(len(damage), 2 if tensor["role"] in (19, 20) else 1, damage)
                    found = damage[0]
                    self.assertEqual((found["kind"], found["file"]), ("trunk", "k3.trunk"))
                    self.assertEqual(found["tensor"], source["name"])
                    self.assertEqual(found.get("layer", TOP_LEVEL), tensor["layer"])
                    path, start, size = find_tensor(checkpoint, source["name"])
                    shard, offset, count = self.source_of(found)
                    self.assertEqual(shard, path.name)
                    self.assertGreaterEqual(offset, start)
                    self.assertLessEqual(offset + count, start + size)
                    self.assertGreater(count, 0)
            self.assertEqual(self.verify(OK, "--quick"), [])

    def test_padding_between_trunk_tensors(self):
        for tensor in self.list["trunk_tensors"]:
            end = tensor["file_offset"] + tensor["stored_bytes"]
            if end % 4096:
                damage = self.with_flip("k3.trunk", end)
                self.assertEqual([d["kind"] for d in damage], ["padding"], damage)

    def test_every_expert(self):
        layout = self.list["expert_layout"]
        for number in range(layout["layer_count"] * layout["expert_count"]):
            layer, expert = divmod(number, layout["expert_count"])
            start = layout["data_offset"] + number * layout["stride"]
            for at in (0, 64, 700, layout["w2_offset"], layout["w2_offset"] + 100):
                with self.subTest(number=number, at=at):
                    damage = self.with_flip("k3.experts", start + at, mask=1)
                    for found in damage:
                        self.assertEqual((found["file"], found["layer"], found["expert"]),
                                         ("k3.experts", layout["first_layer"] + layer, expert))
                        if found["kind"] == "expert":
                            self.assertIn(".w2." if at >= layout["w2_offset"] else ".w",
                                          found["tensor"])
                            self.assertIn(f".experts.{expert}.", found["tensor"])

    def test_expert_parts(self):
        """Lines 0 are scales, the others nibbles; w1 and w3 take turns by tile."""
        layout, spec = self.list["expert_layout"], self.list["model_spec"]
        tile = -(-spec["latent"] // 128) * 1088
        for at, part in ((0, "w1.weight_scale"), (64, "w1.weight_packed"),
                         (tile, "w3.weight_scale"), (tile + 64, "w3.weight_packed"),
                         (layout["w2_offset"], "w2.weight_scale"),
                         (layout["w2_offset"] + 64, "w2.weight_packed")):
            damage = self.with_flip("k3.experts", layout["data_offset"] + at, mask=1)
            self.assertEqual(len(damage), 1, damage)
            self.assertEqual(damage[0]["kind"], "expert")
            self.assertTrue(damage[0]["tensor"].endswith(part), damage)
            path, start, size = find_tensor(self.checkpoint(*self.preset()),
                                            damage[0]["tensor"])
            self.assertEqual(self.source_of(damage[0]), (path.name, start, size))

    def test_bytes_without_meaning(self):
        """Gaps between extents are never interpreted."""
        layout = self.list["expert_layout"]
        for file, offset in (("k3.trunk", 4096), ("k3.trunk", (2 << 20) - 1),
                             ("k3.experts", 5000),
                             ("k3.experts", layout["data_offset"] + layout["used_bytes"])):
            flip(self.pack_dir / file, offset)
            self.assertEqual(self.verify(OK), [])

    def test_all_damage_at_once(self):
        tensor = self.list["trunk_tensors"][3]
        layout = self.list["expert_layout"]
        flip(self.pack_dir / "k3.trunk", tensor["file_offset"])
        flip(self.pack_dir / "k3.experts", layout["data_offset"] + 64)
        flip(self.pack_dir / "k3.experts", layout["data_offset"] + layout["stride"] + 64)
        flip(self.pack_dir / "k3.index", 4096)
        damage = self.verify(DATA)
        self.assertEqual(sorted(d["kind"] for d in damage),
                         ["expert", "expert", "section", "trunk"])

    def test_index_lost_data_still_checked(self):
        (self.pack_dir / "k3.index").unlink()
        damage = self.verify(DATA)
        self.assertEqual([(d["kind"], d["file"]) for d in damage], [("file", "k3.index")])
        flip(self.pack_dir / "k3.trunk", self.list["trunk_tensors"][0]["file_offset"])
        damage = self.verify(DATA)
        self.assertIn("trunk", [d["kind"] for d in damage])

    def test_missing_files(self):
        for file in PACK_FILES:
            kept = (self.pack_dir / file).read_bytes()
            (self.pack_dir / file).unlink()
            damage = self.verify(DATA)
            self.assertEqual((damage[0]["kind"], damage[0]["file"]), ("file", file))
            (self.pack_dir / file).write_bytes(kept)
        for file in PACK_FILES:
            (self.pack_dir / file).unlink()
        self.expect_error(NO_INPUT, "--verify", self.pack_dir, says=["not a pack"])

    def test_cut_and_extended(self):
        for file in PACK_FILES:
            path = self.pack_dir / file
            whole = path.read_bytes()
            for size in (0, 1, 4095, 4096, 4097, len(whole) // 2, len(whole) - 64, len(whole) - 1):
                with self.subTest(file=file, size=size):
                    path.write_bytes(whole[:size])
                    self.assertIn(file, {d["file"] for d in self.verify(DATA)})
                    self.assertIn(file, {d["file"] for d in self.verify(DATA, "--quick")})
            for more in (b"\0", b"x" * 4096):
                path.write_bytes(whole + more)
                damage = self.verify(DATA, "--quick")
                self.assertEqual((damage[0]["kind"], damage[0]["file"]), ("file", file))
            path.write_bytes(whole)

    def test_files_of_two_packs(self):
        other = self.folder / "other"
        run("-q", make_checkpoint(self.folder / "seed", "fuzz", "--seed", "9"), other)
        for file in PACK_FILES:
            kept = (self.pack_dir / file).read_bytes()
            shutil.copy(other / file, self.pack_dir / file)
            damage = self.verify(DATA)
            self.assertIn((file, True),
                          [(d["file"], "another pack" in d["message"]) for d in damage])
            (self.pack_dir / file).write_bytes(kept)

    def test_text_names_it_too(self):
        tensor = self.list["trunk_tensors"][0]
        name = self.list["trunk_sources"][0]["name"]
        flip(self.pack_dir / "k3.trunk", tensor["file_offset"])
        text = self.expect(DATA, "--verify", self.pack_dir).stdout.decode()
        self.assertIn(name, text)
        self.assertIn("made from 'model", text)

    def test_damage_is_not_exported(self):
        flip(self.pack_dir / "k3.trunk", self.list["trunk_tensors"][3]["file_offset"])
        self.expect_error(DATA, "--export", self.pack_dir, self.folder / "out",
                          says=["is not what was packed"])
        self.assertFalse((self.folder / "out/model.safetensors.index.json").exists())

    def test_damage_differs_from_the_checkpoint(self):
        tensor = self.list["trunk_tensors"][3]
        flip(self.pack_dir / "k3.trunk", tensor["file_offset"])
        done = self.expect(DATA, "--verify", "--json", self.pack_dir, "--against",
                           self.checkpoint(*self.preset()))
        kinds = [d["kind"] for d in json.loads(done.stdout)["damage"]]
        self.assertEqual(kinds, ["trunk", "difference"])


class Changes(TestCase):
    """--against finds what a checkpoint has and the pack has not."""

    def test_one_byte_of_each_tensor(self):
        checkpoint = self.own_checkpoint()
        for name in ("language_model.model.norm.weight",
                     "language_model.lm_head.weight",
                     "language_model.model.embed_tokens.weight"):
            path, offset, _ = find_tensor(checkpoint, name)
            flip(path, offset, 1)
            done = self.expect(DATA, "--verify", "--json", self.pack(), "--against", checkpoint)
            damage = json.loads(done.stdout)["damage"]
            self.assertEqual([(d["kind"], d["tensor"]) for d in damage], [("difference", name)])
            self.assertEqual(damage[0]["source"], {"shard": path.name, "offset": offset,
                                                   "bytes": 1})
            flip(path, offset, 1)

    def test_another_file(self):
        checkpoint = self.own_checkpoint()
        with open(checkpoint / "generation_config.json", "a", encoding="ascii") as stream:
            stream.write("\n")
        text = self.expect(DATA, "--verify", self.pack(), "--against", checkpoint).stdout.decode()
        self.assertIn("generation_config.json", text)

    def test_another_model(self):
        text = self.expect(DATA, "--verify", self.pack("fuzz"), "--against",
                           self.checkpoint("tiny")).stdout.decode()
        self.assertIn("different models", text)


if __name__ == "__main__":
    unittest.main()
