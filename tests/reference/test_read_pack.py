#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Checks of scripts/read_pack.py on a tiny pack written here from docs/format.md.

Run:  /usr/bin/python3 -m unittest discover -s tests/reference
"""

import contextlib
import io
import itertools
import json
import math
import os
import pathlib
import random
import re
import shutil
import struct
import sys
import tempfile
import unittest
from unittest import mock

PROJECT = pathlib.Path(__file__).resolve().parents[2]
DOCUMENT = PROJECT / "docs" / "format.md"
sys.path.insert(0, str(PROJECT / "scripts"))

import numpy as np
import xxhash
import zstandard

import read_pack

SPEC = dict(layers=2, hidden=130, vocab=37, kda_heads=3, kda_head_dim=5, conv_taps=4, mla_heads=2,
            q_lora_rank=9, kv_lora_rank=7, qk_nope_head_dim=6, qk_rope_head_dim=4, v_head_dim=5,
            dense_layers=1, dense_intermediate=33, experts=3, experts_per_token=2,
            shared_experts=1, latent=160, expert_intermediate=64, attn_res_block_layers=2,
            bos_id=1, eos_id=2, pad_id=3)
KINDS = [0, 1]                          # a dense KDA layer, an MLA layer with experts
FILES = [("config.json", b"{}"), ("tiktoken.model", b"abc"), ("tokenizer_config.json", b"")]
MIB, STRIDE = 1 << 20, 64 << 10


def read_roles():
    """The table of roles, from the document: (role, where, name, rows, cols, encoding, source)."""
    lines = re.findall(r"^\| (\d+) \| (\w+) \| `([\w.]+)`(.*?) \| (.*?) \| (\w+) \|$",
                       DOCUMENT.read_text(encoding="utf-8"), re.M)
    for role, where, name, remark, shape, encoding in lines:
        source = ("k" if "kv_b_proj" in name else "c" if encoding == "TAPS" else "r" if "1 × E" in
                  remark else "f" if "F32" in remark else "v" if shape[:3] == "1 ×" else "b")
        for text in shape.replace("·", "*").split(", "):
            rows, cols, kind = re.fullmatch(r"(?:A matrices of )?(\S+) × (\S+)(?: \((.*)\))?",
                                            text).groups()
            yield (int(role), kind or where, name, rows, cols,
                   ["F32", "TAPS", "B16", "ROWS"].index(encoding) + 1, source)


def hashed(data):
    return xxhash.xxh3_128_digest(bytes(data))


def pad(data, unit):
    data.extend(bytes(-len(data) % unit))


def b16(matrix):                         # section 7.4, word for word
    rows, cols = matrix.shape
    full = np.zeros((-(-rows // 16) * 16, -(-cols // 128) * 128), np.uint32)
    full[:rows, :cols] = matrix
    out = bytearray()
    for tile in full.reshape(-1, 16, full.shape[1]):
        for p in range(full.shape[1] // 2):
            out += (tile[:, 2 * p] | tile[:, 2 * p + 1] << 16).astype("<u4").tobytes()
    return out


def m4_tiles(packed, scale, rows, cols):
    """Section 8.1, word for word: a list of tiles."""
    groups = cols // 32
    tiles = [bytearray(1088 * -(-cols // 128)) for _ in range(-(-rows // 16))]
    for row, group in itertools.product(range(rows), range(groups)):
        tile, r, base, g = tiles[row // 16], row % 16, 1088 * (group // 4), group % 4
        tile[base + 16 * g + r] = scale[row * groups + group]
        for q in range(4):
            at, source = base + 64 * (1 + 4 * g + q) + 4 * r, (row * groups + group) * 16 + q * 4
            tile[at:at + 4] = packed[source:source + 4]
    return tiles


ROLES = list(read_roles())
ENCODE = {1: lambda a: (a.astype("<u4") << (16 if a.itemsize == 2 else 0)).tobytes(),
          2: lambda a: a[:, 0].T.tobytes(), 3: b16, 4: lambda a: a.tobytes()}


class Writer:
    """Writes a checkpoint and its pack; edits change sections and extents before the digests."""

    def __init__(self, folder, edits=()):
        os.makedirs(folder, exist_ok=True)
        self.folder, self.edits, self.random = folder, dict(edits), random.Random(7)
        self.tensors, self.sources, self.data = [], [], {}
        self.extents = self.digests = self.expert_digests = b""
        self.regions = {name: [(0, 128), (128, 4096)] for name in read_pack.PACK_FILES}
        self.symbols = dict(zip("_ E V H D t A Q R dn dr dv _ I N _ S Z F".split(), SPEC.values()))
        for derived in ("W=H*D", "n=H+5", "J=S*F"):
            exec(derived, self.symbols)
        self.write(self.trunk(), self.experts())

    def edit(self, key, data):
        data = bytearray(data)
        self.edits.get(key, len)(data)
        return bytes(data)

    def source(self, name, dtype, shape):
        """Random bytes of a source tensor, recorded in order for the shard."""
        if name not in self.data:
            kind, finite = (("u1", 0xFF), ("<u2", 0xBFFF), ("<u4", 0xBFFFFFFF))[dtype]
            data = np.frombuffer(self.random.randbytes(math.prod(shape) << dtype), kind) & finite
            if name.endswith("A_log"):
                data[-1] = 0x7FC00000
            if name.endswith("weight_scale"):
                data = data % 252 + 1
            self.data[name] = (dtype, shape, data)
        return self.data[name][2].reshape(shape)

    def trunk(self):
        out = bytearray(2 * MIB)
        for layer in range(len(KINDS) + 1):
            groups, number, prefix = {"top"}, 0xFFFFFFFF, ""
            if layer < len(KINDS):
                groups = {"all", ("KDA", "MLA")[KINDS[layer]],
                          "dense" if layer < SPEC["dense_layers"] else "MoE"}
                number, prefix = layer, f"language_model.model.layers.{layer}."
            pad(out, 2 * MIB)
            start, first = len(out), len(self.tensors)
            for role in (role for role in ROLES if role[1] in groups):
                pad(out, 4096)
                self.tensor(out, layer, number, prefix, role)
            pad(out, 4096)
            used = out[start:] = self.edit(f"trunk{layer}", out[start:])
            self.regions["k3.trunk"].append((start, len(out)))
            self.extents += struct.pack("<IIIIQQ", number, first, len(self.tensors) - first,
                                        len(self.digests) // 16, start, len(used))
            for at in range(0, len(used), 8 * MIB):
                self.digests += hashed(used[at:at + 8 * MIB])
        return out

    def tensor(self, out, extent, layer, prefix, columns):
        role, _, name, rows, cols, encoding, source = columns
        rows, cols = eval(rows, self.symbols), eval(cols, self.symbols)
        heads, dn, dv = (self.symbols[key] for key in ("A", "dn", "dv"))
        shape = {"b": [rows, cols], "v": [cols], "f": [cols], "r": [1, cols],
                 "c": [cols, 1, rows], "k": [heads * (dn + dv), self.symbols["R"]]}[source]
        dtype = 2 if source in "fc" else 1
        data, at = self.source(prefix + name, dtype, shape), len(out)
        if not self.sources or self.sources[-1] != prefix + name:
            self.sources.append(prefix + name)
        matrices = [data]
        if source == "k":
            parts = data.reshape(heads, dn + dv, -1)
            matrices = parts[:, :dn].transpose(0, 2, 1) if role == 19 else parts[:, dn:]
        out += b"".join(ENCODE[encoding](matrix) for matrix in matrices)
        self.tensors.append(struct.pack(
            "<IHHHHIIIQQII16x", layer, role, encoding, dtype, 0, heads if source == "k" else 1,
            rows, cols, at, len(out) - at, extent, len(self.sources) - 1))

    def experts(self):
        wide, latent = SPEC["expert_intermediate"], SPEC["latent"]
        shapes = {"w1": (wide, latent), "w2": (latent, wide), "w3": (wide, latent)}
        out = bytearray(2 * MIB)
        for layer, e in itertools.product(range(SPEC["dense_layers"], SPEC["layers"]),
                                          range(SPEC["experts"])):
            tiles = {}
            for w, (rows, cols) in shapes.items():
                name = f"language_model.model.layers.{layer}.block_sparse_moe.experts.{e}.{w}"
                packed = self.source(name + ".weight_packed", 0, [rows, cols // 2])
                scale = self.source(name + ".weight_scale", 0, [rows, cols // 32])
                scale[1, 1], packed[1, 16:32] = 0, 0x80
                tiles[w] = m4_tiles(packed.tobytes(), scale.tobytes(), rows, cols)
            extent = bytearray(b"".join(itertools.chain(*zip(tiles["w1"], tiles["w3"]))))
            pad(extent, 4096)
            self.w2_offset = len(extent)
            extent += b"".join(tiles["w2"])
            pad(extent, 4096)
            extent = self.edit(f"expert{e}", extent)
            self.expert_digests += hashed(extent)
            out.extend(bytes(-(len(out) - 2 * MIB) % STRIDE))
            self.regions["k3.experts"].append((len(out), len(out) + len(extent)))
            out += extent
        self.expert_bytes = len(extent)
        return out

    def write_checkpoint(self):
        """One shard, and {tensor: offset in it}."""
        header, offsets, body = {}, {}, bytearray()
        for name, (dtype, shape, data) in self.data.items():
            offsets[name] = 8 + (1 << 16) + len(body)
            header[name] = {"dtype": ["U8", "BF16", "F32"][dtype], "shape": shape,
                            "data_offsets": [len(body), len(body) + data.nbytes]}
            body += data.tobytes()
        shard = struct.pack("<Q", 1 << 16) + json.dumps(header).encode().ljust(1 << 16) + body
        for name, content in [*FILES, ("a.safetensors", shard)]:
            pathlib.Path(self.folder, name).write_bytes(content)
        return shard, offsets

    def sections(self):
        shard, offsets = self.write_checkpoint()
        spec = (struct.pack("<23I20x5d8xQ88x", *SPEC.values(), 1e-5, 4, 25, -5, 2.5, 1 << 20)
                + bytes(KINDS))
        first, count = SPEC["dense_layers"], SPEC["experts"]
        layout = struct.pack("<IIIIQQQQ16x", first, SPEC["layers"] - first, count, 0, 2 * MIB,
                             STRIDE, self.expert_bytes, self.w2_offset)
        files = struct.pack("<I", len(FILES)) + b"".join(
            struct.pack("<IQ", len(name), len(data)) + name.encode() + data for name, data in FILES)
        shards = struct.pack("<IIIQ16s32x", 1, 13, 0, len(shard), hashed(shard)) + b"a.safetensors"
        sources, experts = struct.pack("<I", len(self.sources)), b""
        for name, (dtype, shape, data) in self.data.items():
            tail = (offsets[name], data.nbytes, hashed(data))
            if dtype:
                sources += struct.pack(f"<IHH{len(shape)}QIQQ16s", len(name), dtype, len(shape),
                                       *shape, 0, *tail) + name.encode()
            else:
                experts += struct.pack("<IIQQ16s", 0, 0, *tail)
        raw = [spec, self.extents, b"".join(self.tensors), self.digests, layout,
               self.expert_digests, files, shards, sources, experts]
        return {kind: self.edit(kind, data) for kind, data in enumerate(raw, 1)}

    def write(self, trunk, experts):
        raw = self.sections()
        pack_id = hashed(b"".join(struct.pack("<I", k) + hashed(raw[k]) for k in range(1, 8)))
        for number, (name, out, kinds) in enumerate((
                ("k3.index", bytearray(4096), range(1, 11)), ("k3.trunk", trunk, (1, 2, 3, 4, 7)),
                ("k3.experts", experts, (1, 5, 6))), 1):
            end, table = len(out), b""
            for kind in kinds:
                stored = zstandard.compress(raw[kind]) if kind >= 7 else raw[kind]
                pad(out, 64)
                table += struct.pack("<IIQQQ16s16x", kind, kind >= 7, len(out), len(stored),
                                     len(raw[kind]), hashed(stored))
                out += stored
            pad(out, 64)
            size, data = len(out) + len(table), (0, 0) if number == 1 else (2 * MIB, end)
            block = struct.pack(
                "<8sHHIII16sQQII16sQQ32s3952x", b"\x89K3P\r\n\x1a\n", 1, 0, 0, 0, number, pack_id,
                size, len(out), len(kinds), 0, hashed(table), *data, b"test 1")
            self.regions[name].append((end, size))
            pathlib.Path(self.folder, name).write_bytes(block + hashed(block) + out[4096:] + table)


def run(*arguments):
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(out):
        return read_pack.main(list(arguments)), out.getvalue()


def flip(path, at):
    np.memmap(path, "u1", "r+")[at] ^= 1 << at % 8


class ReadPackTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.top = tempfile.mkdtemp()
        cls.addClassCleanup(shutil.rmtree, cls.top)
        cls.writer = Writer(os.path.join(cls.top, "pack"))
        cls.pack = cls.writer.folder

    def broken(self, edits):
        return Writer(os.path.join(self.top, "broken"), edits).folder

    def assert_damaged(self, folder, *options, saying=""):
        status, out = run("check", folder, *options)
        self.assertEqual(status, 65, out)
        self.assertIn(saying, out)
        self.assertNotIn("checking stopped", out)

    def test_valid_pack(self):
        self.assertEqual(run("check", self.pack), (0, ""))
        with mock.patch.multiple(read_pack, xxhash=None, zstandard=None):
            self.assertEqual(run("check", self.pack, "--quick"), (0, ""))
        dump = json.loads(run("dump", self.pack)[1])
        self.assertEqual(dump["superblocks"]["k3.trunk"]["writer"], "test 1")
        self.assertEqual(len(dump["trunk_tensors"]), len(self.writer.tensors))
        self.assertEqual(dump["expert_digests"][0], self.writer.expert_digests[:16].hex())

    def test_tensors(self):
        path = os.path.join(self.top, "tensor")
        for name, (_, _, data) in self.writer.data.items():
            with mock.patch.object(read_pack, "PIECE_BYTES", 9000):
                status, out = run("tensor", self.pack, name, "--digest", "--out", path)
            self.assertEqual((status, out), (0, hashed(data.tobytes()).hex() + "\n"), name)
            self.assertEqual(pathlib.Path(path).read_bytes(), data.tobytes(), name)

    def test_compare(self):
        status, out = run("compare", self.pack, self.pack)
        self.assertEqual((status, out.split()[-2:]), (0, ["0", "problems"]), out)
        shard = os.path.join(self.pack, "a.safetensors")
        flip(shard, os.path.getsize(shard) - 5)
        status, out = run("compare", self.pack, self.pack)
        flip(shard, os.path.getsize(shard) - 5)
        self.assertEqual(status, 65)
        self.assertIn("differs from the pack here", out)

    def test_flipped_bytes(self):
        """The first and last byte of all used regions, and some between."""
        chance = random.Random(1)
        for name, regions in self.writer.regions.items():
            path = os.path.join(self.pack, name)
            for at in (at for start, end in regions for at in (
                    start, end - 1, *chance.choices(range(start, end), k=12))):
                flip(path, at)
                self.assert_damaged(self.pack)
                flip(path, at)

    def test_cut_files(self):
        for name in read_pack.PACK_FILES:
            path = os.path.join(self.broken({}), name)
            for size in (os.path.getsize(path) - 1, 2 * MIB + 5, 4096, 4095, 0):
                os.truncate(path, min(size, os.path.getsize(path) - 1))
                self.assert_damaged(os.path.dirname(path))

    def test_sealed_damage(self):
        """Wrong fields are found, or at least do no harm, also where the digests are right."""
        chance = random.Random(2)
        for kind in (2, 3, 4, 5, 6) * 20 + (1, 7, 8, 9, 10) * 12:
            place, bit = chance.random(), 1 << chance.randrange(8)

            def spoil(data):
                data[int(place * len(data))] ^= bit

            status, out = run("check", self.broken({kind: spoil}))
            self.assertNotIn("checking stopped", out)
            self.assertIn(status, (65,) if kind in (2, 3, 4, 5, 6) else (0, 65))

    def test_sealed_weights(self):
        def at(offset, *values):
            return lambda data: data.__setitem__(slice(offset, offset + len(values)), values)

        w2 = self.writer.w2_offset
        for key, edit, message in (
                ("trunk0", at(3 * 4096, 0x80, 0x7F), "role 4: a weight is not finite"),
                ("trunk0", at(2, 0x80, 0xFF), "role 1: a weight is not finite"),
                ("trunk0", at(0, 1), "not a widened BF16"),
                ("trunk0", at(3 * 4096 + 64 * 10 + 60, 1), "padding rows or columns"),
                ("trunk0", at(4095, 1), "padding after a tensor"),
                ("expert1", at(0, 253), "w1: a scale code is above 252"),
                ("expert2", at(w2 + 64 * 5 + 4, 1), "w2: a group with scale code 0"),
                ("expert0", at(w2 + 32, 1), "w2: padding rows or columns"),
                ("expert0", at(w2 - 1, 1), "padding in the extent")):
            self.assert_damaged(self.broken({key: edit}), saying=message)
