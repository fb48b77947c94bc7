#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""scripts/make_checkpoint.py: the same bytes every time, the same tensors in every layout."""

import hashlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
MAKER = ROOT / "scripts" / "make_checkpoint.py"
ITEM_BYTES = {"F32": 4, "BF16": 2, "U8": 1}
VISION = ("vision_tower.", "mm_projector.")


def make(folder, *options, preset="fuzz"):
    return subprocess.run([sys.executable, "-B", MAKER, "--preset", preset, *options, folder],
                          capture_output=True, text=True, check=False)


def read_shards(folder):
    """name -> (dtype, shape, bytes); fails on a gap, an overlap or a wrong size."""
    tensors, homes = {}, {}
    for path in sorted(pathlib.Path(folder).glob("*.safetensors")):
        file_bytes = path.read_bytes()
        data_at = 8 + int.from_bytes(file_bytes[:8], "little")
        assert data_at % 8 == 0
        header = json.loads(file_bytes[8:data_at])
        header.pop("__metadata__", None)
        reached = 0
        for name, entry in sorted(header.items(), key=lambda item: item[1]["data_offsets"]):
            begin, end = entry["data_offsets"]
            size = ITEM_BYTES[entry["dtype"]]
            for count in entry["shape"]:
                size *= count
            assert begin == reached and end - begin == size and name not in tensors, name
            tensors[name] = (entry["dtype"], entry["shape"],
                             file_bytes[data_at + begin:data_at + end])
            homes[name] = path.name
            reached = end
        assert data_at + reached == len(file_bytes), path
    return tensors, homes


def digest(folder):
    total = hashlib.sha256()
    for path in sorted(pathlib.Path(folder).iterdir()):
        total.update(path.name.encode() + path.read_bytes())
    return total.hexdigest()


class MakeCheckpoint(unittest.TestCase):

    def setUp(self):
        self._scratch = tempfile.TemporaryDirectory()
        self.addCleanup(self._scratch.cleanup)

    def made(self, name, *options, **keywords):
        folder = os.path.join(self._scratch.name, name)
        result = make(folder, *options, **keywords)
        self.assertEqual(result.returncode, 0, result.stderr)
        return folder

    def test_same_seed_same_bytes(self):
        first, again, other = self.made("a"), self.made("b"), self.made("c", "--seed", "1")
        self.assertEqual(digest(first), digest(again))
        self.assertNotEqual(digest(first), digest(other))

    def test_layouts_hold_the_same_tensors(self):
        for preset in ("fuzz", "tiny"):
            expected, _ = read_shards(self.made(preset, preset=preset))
            for layout in ("released", "single", "split", "shuffled"):
                with self.subTest(preset=preset, layout=layout):
                    folder = self.made(f"{preset} {layout}", "--layout", layout, preset=preset)
                    tensors, homes = read_shards(folder)
                    self.assertEqual(tensors, expected)
                    index = json.loads((pathlib.Path(folder) / "model.safetensors.index.json")
                                       .read_text())
                    self.assertEqual(index["weight_map"], homes)
                    self.assertEqual(index["metadata"]["total_size"],
                                     sum(len(data) for _, _, data in tensors.values()))

    def test_split_cuts_an_expert(self):
        _, homes = read_shards(self.made("split", "--layout", "split", preset="tiny"))
        experts = {}
        for name, home in homes.items():
            if ".experts." in name:
                experts.setdefault(name.rsplit(".", 2)[0], set()).add(home)
        self.assertEqual(sum(len(shards) > 1 for shards in experts.values()), 10)   # one a layer

    def test_options(self):
        bare = pathlib.Path(self.made("bare", "--no-index", "--without-vision"))
        self.assertFalse((bare / "model.safetensors.index.json").exists())
        tensors, _ = read_shards(bare)
        self.assertFalse([name for name in tensors if name.startswith(VISION)])
        everything, _ = read_shards(self.made("everything"))
        self.assertEqual({name: tensor for name, tensor in everything.items()
                          if not name.startswith(VISION)}, tensors)

    def test_refuses_what_it_would_overwrite(self):
        folder = self.made("twice")
        result = make(folder)
        self.assertNotEqual(result.returncode, 0)
        self.assertIn("not empty", result.stderr)
        self.assertEqual(make(folder, "--force", "--layout", "split").returncode, 0)
        self.assertFalse((pathlib.Path(folder) / "model.safetensors").exists())

    def test_every_merge_has_its_parts(self):
        sys.path.insert(0, str(MAKER.parent))
        self.addCleanup(sys.path.remove, str(MAKER.parent))
        from checkpoint_maker.vocabulary import make_ranks
        ranks = make_ranks(2000)
        self.assertEqual(len(set(ranks)), 2000)
        seen = set()
        for token in ranks:
            splits = [(token[:at], token[at:]) for at in range(1, len(token))]
            self.assertTrue(len(token) == 1 or any(a in seen and b in seen for a, b in splits))
            seen.add(token)


if __name__ == "__main__":
    unittest.main()
