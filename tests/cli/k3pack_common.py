# SPDX-License-Identifier: Apache-2.0
"""What the end-to-end tests of k3pack share. $K3PACK is the program under test."""

import hashlib
import json
import os
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
K3PACK = os.environ.get("K3PACK", str(ROOT / "build/dev/packer/k3pack"))
PYTHON = sys.executable
PACK_FILES = ("k3.index", "k3.trunk", "k3.experts")
# The packs of two distributions of the same tensors share these; provenance differs.
SHARED_FILES = ("k3.trunk", "k3.experts")

OK, USAGE, DATA, NO_INPUT, UNSUPPORTED, SYSTEM, CANT_CREATE, IO, AGAIN = (
    0, 64, 65, 66, 69, 71, 73, 74, 75)


def run(*arguments, **options):
    return subprocess.run([K3PACK, *map(str, arguments)], capture_output=True, check=False,
                          **options)


def make_checkpoint(folder, preset="fuzz", *options):
    subprocess.run([PYTHON, ROOT / "scripts/make_checkpoint.py", "--preset", preset, *options,
                    folder], check=True, stdout=subprocess.DEVNULL)
    return folder


def read_pack(*arguments):
    return subprocess.run([PYTHON, ROOT / "scripts/read_pack.py", *map(str, arguments)],
                          capture_output=True, check=False, text=True)


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def digests(folder, names=PACK_FILES):
    return {name: digest(folder / name) for name in names}


class Shard:
    """A safetensors file, taken apart."""

    def __init__(self, path):
        self.path = path
        data = path.read_bytes()
        length, = struct.unpack("<Q", data[:8])
        self.header = json.loads(data[8:8 + length])
        self.data_start = 8 + length
        self.data = data[8 + length:]

    def tensors(self):
        for name, entry in self.header.items():
            if name != "__metadata__":
                start, end = entry["data_offsets"]
                yield name, entry["dtype"], tuple(entry["shape"]), self.data[start:end]

    def place(self, name):
        """(file offset, bytes) of a tensor."""
        start, end = self.header[name]["data_offsets"]
        return self.data_start + start, end - start


def shards(folder):
    return [Shard(path) for path in sorted(folder.glob("*.safetensors"))]


def text_tensors(folder):
    """name -> (dtype, shape, bytes) of the text model."""
    return {name: (dtype, shape, data) for shard in shards(folder)
            for name, dtype, shape, data in shard.tensors()
            if not name.startswith(("vision_tower.", "mm_projector."))}


def find_tensor(folder, name):
    """(path of the shard, file offset, bytes)."""
    for shard in shards(folder):
        if name in shard.header:
            return (shard.path, *shard.place(name))
    raise KeyError(name)


def patch(path, offset, data):
    """Overwrites bytes and keeps the time of modification, as bit rot does."""
    stat = path.stat()
    with open(path, "r+b") as stream:
        stream.seek(offset)
        stream.write(data)
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))


def flip(path, offset, mask=0x40):
    with open(path, "rb") as stream:
        stream.seek(offset)
        byte = stream.read(1)[0]
    patch(path, offset, bytes([byte ^ mask]))


class TestCase(unittest.TestCase):
    """One temporary folder per class, one per test; `fuzz` and `tiny` are made when first used."""

    @classmethod
    def setUpClass(cls):
        cls.shared = pathlib.Path(tempfile.mkdtemp(prefix="k3pack-"))

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.shared)

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(dir=self.shared))

    def tearDown(self):
        shutil.rmtree(self.folder)

    @classmethod
    def checkpoint(cls, preset="fuzz", *options):
        """A checkpoint that no test may change."""
        folder = cls.shared / "-".join(["checkpoint", preset, *options])
        return folder if folder.exists() else make_checkpoint(folder, preset, *options)

    def own_checkpoint(self, preset="fuzz", *options):
        return pathlib.Path(shutil.copytree(self.checkpoint(preset, *options),
                                            self.folder / "checkpoint"))

    @classmethod
    def pack(cls, preset="fuzz", *options):
        """A pack that no test may change."""
        folder = cls.shared / "-".join(["pack", preset, *options])
        if not folder.exists():
            done = run("-q", cls.checkpoint(preset, *options), folder)
            if done.returncode != 0:
                raise AssertionError(done.stderr.decode())
        return folder

    def own_pack(self, preset="fuzz", *options):
        return pathlib.Path(shutil.copytree(self.pack(preset, *options), self.folder / "pack"))

    def expect(self, status, *arguments, **options):
        done = run(*arguments, **options)
        self.assertEqual(done.returncode, status, f"{arguments}: {done.stderr.decode()}")
        return done

    def expect_error(self, status, *arguments, says=(), **options):
        """It fails with this status, and its messages hold each of these words."""
        done = self.expect(status, *arguments, **options)
        text = done.stderr.decode()
        for word in says:
            self.assertIn(word, text)
        self.assertNotIn("internal error", text)
        return text

    def assert_no_pack(self, folder):
        self.assertFalse((folder / "k3.index").exists(), "something looks like a finished pack")

    def assert_same_pack(self, folder, other):
        self.assertEqual(digests(folder), digests(other))
        left = sorted(path.name for path in folder.iterdir())
        self.assertEqual(left, sorted(PACK_FILES), "temporary files were left")
