#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Random distributions of the same tensors over shards: pack -> export gives every tensor back bit
for bit, and the pack depends neither on shards, order, --jobs nor interruption."""

import json
import os
import random
import shutil
import struct
import subprocess
import time
import unittest

from k3pack_common import (K3PACK, OK, SHARED_FILES, TestCase, digests, text_tensors)

CASES = int(os.environ.get("K3PACK_CASES", "8"))


def write_shard(path, tensors, source):
    header, data = {}, []
    end = 0
    for name, (dtype, shape, content) in tensors:
        header[name] = {"dtype": dtype, "shape": list(shape),
                        "data_offsets": [end, end + len(content)]}
        end += len(content)
        data.append(content)
    names = list(header)
    source.shuffle(names)  # the order in the header means nothing
    text = json.dumps({name: header[name] for name in names}).encode()
    text += b" " * source.randrange(9)
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(data))


class Property(TestCase):
    def redistribute(self, origin, source):
        """A checkpoint of the same tensors: some shards, in some order, cut anywhere."""
        folder = self.folder / f"checkpoint-{source.randrange(1 << 30)}"
        folder.mkdir()
        for path in origin.iterdir():
            if not path.name.endswith((".safetensors", ".index.json")):
                shutil.copy(path, folder)
        tensors = list(text_tensors(origin).items())
        if source.random() < 0.7:
            source.shuffle(tensors)
        count = source.choice((1, 2, 3, 7, 20))
        cuts = sorted(source.sample(range(1, len(tensors)), count - 1))
        for number, (first, last) in enumerate(zip([0] + cuts, cuts + [len(tensors)])):
            write_shard(folder / f"part-{number:03}.safetensors", tensors[first:last], source)
        return folder

    def pack_with_interruption(self, checkpoint, target, source):
        for _ in range(source.randrange(3)):
            child = subprocess.Popen([K3PACK, "-q", "--jobs", str(source.randrange(1, 9)),
                                      str(checkpoint), str(target)], stdout=subprocess.DEVNULL)
            time.sleep(source.random() * 0.3)
            child.kill()
            child.wait()
        self.expect(OK, "-q", "--jobs", source.randrange(1, 9), checkpoint, target)

    def check(self, preset, seed):
        source = random.Random(seed)
        origin = self.checkpoint(preset)
        checkpoint = self.redistribute(origin, source)
        target, out = self.folder / "pack", self.folder / "out"
        self.pack_with_interruption(checkpoint, target, source)
        self.assertEqual(digests(target, SHARED_FILES), digests(self.pack(preset), SHARED_FILES))
        plain = self.folder / "plain"
        self.expect(OK, "-q", "--jobs", 1, checkpoint, plain)
        self.assert_same_pack(target, plain)
        self.expect(OK, "-q", "--export", target, out)
        self.assertEqual(text_tensors(out), text_tensors(origin))
        self.expect(OK, "-q", "--verify", target, "--against", origin)
        for folder in (checkpoint, target, out, plain):
            shutil.rmtree(folder)

    def test_distributions(self):
        for seed in range(CASES):
            with self.subTest(seed=seed):
                self.check("fuzz" if seed % 2 else "tiny", seed)


if __name__ == "__main__":
    unittest.main()
