#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checkpoints that a downloader, a disk or a tired person has spoiled: each is refused with the
shard's name and what to do, all problems in one run; and what is merely unusual is accepted."""

import json
import struct
import unittest

from k3pack_common import (DATA, NO_INPUT, OK, UNSUPPORTED, Shard, TestCase, find_tensor, patch,
                           shards, text_tensors)

NAN_BF16, INF_BF16, NAN_F32 = b"\xc0\x7f", b"\x80\xff", b"\x00\x00\xc0\x7f"
LAYER = "language_model.model.layers."


def write_shard(path, tensors):
    """(name, dtype, shape, bytes) in this order."""
    header, data = {}, b""
    for name, dtype, shape, content in tensors:
        header[name] = {"dtype": dtype, "shape": list(shape),
                        "data_offsets": [len(data), len(data) + len(content)]}
        data += content
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


class Inputs(TestCase):
    def setUp(self):
        super().setUp()
        self.source = self.own_checkpoint("fuzz", "--no-index")
        self.shard, = self.source.glob("*.safetensors")
        self.target = self.folder / "pack"

    def refuse(self, *says, status=DATA):
        text = self.expect_error(status, "-q", self.source, self.target, says=says)
        self.assert_no_pack(self.target)
        self.expect_error(status, "-q", "--plan", self.source, says=()) \
            if not self.target.exists() else None
        return text

    def tensors(self):
        return list(Shard(self.shard).tensors())

    def rewrite(self, change):
        """change(name, dtype, shape, data) -> list of tensors that stand in its place."""
        write_shard(self.shard, [new for old in self.tensors() for new in change(*old)])

    def name_of(self, ending):
        return next(name for name, *_ in self.tensors() if name.endswith(ending))


class Weights(Inputs):
    """Numbers that arithmetic could not carry exactly."""

    def poison(self, name, index, data):
        path, offset, _ = find_tensor(self.source, name)
        patch(path, offset + index, data)
        return offset + index

    def test_not_finite_anywhere(self):
        for name, dtype, _, data in self.tensors():
            if name.startswith(("vision", "mm_")) or dtype == "U8" or name.endswith("A_log"):
                continue
            size = 4 if dtype == "F32" else 2
            at = len(data) // size // 2 * size
            bad = NAN_F32 if dtype == "F32" else INF_BF16
            with self.subTest(name=name):
                place = self.poison(name, at, bad)
                text = self.refuse(name, self.shard.name, "not a finite number",
                                   f"element {at // size} ", f"file byte {place}")
                self.assertIn("download this shard again", text)
                self.poison(name, at, data[at:at + size])
        self.expect(OK, "-q", self.source, self.target)

    def test_first_and_last_element(self):
        name = "language_model.lm_head.weight"
        _, _, size = find_tensor(self.source, name)
        original = text_tensors(self.source)[name][2]
        for at in (0, size - 2):
            self.poison(name, at, NAN_BF16)
            self.refuse(name, f"element {at // 2} ")
            self.poison(name, at, original[at:at + 2])

    def test_a_log_tail_is_free(self):
        spec = json.loads((self.source / "config.json").read_text())
        heads = spec["text_config"]["linear_attn_config"]["num_heads"]
        name = self.name_of("A_log")
        _, _, size = find_tensor(self.source, name)
        self.assertGreater(size // 4, heads, "the preset has no tail")
        for at in range(heads * 4, size, 4):
            self.poison(name, at, NAN_F32)
        self.expect(OK, "-q", self.source, self.target)
        self.expect(OK, "--verify", self.target, "--against", self.source)
        self.expect(OK, "-q", "--export", self.target, self.folder / "out")
        self.assertEqual(text_tensors(self.folder / "out"), text_tensors(self.source))

    def test_a_log_heads_are_not(self):
        name = self.name_of("A_log")
        self.poison(name, 0, NAN_F32)
        self.refuse(name, "element 0 ")

    def test_scale_codes(self):
        scale = self.name_of("experts.1.w2.weight_scale")
        _, _, size = find_tensor(self.source, scale)
        for code in (253, 254, 255):
            with self.subTest(code=code):
                at = size - 1
                original = text_tensors(self.source)[scale][2][at:at + 1]
                place = self.poison(scale, at, bytes([code]))
                self.refuse(scale, self.shard.name, f"scale code {code}", f"file byte {place}")
                self.poison(scale, at, original)
        self.poison(scale, 0, bytes([252]))
        self.expect(OK, "-q", self.source, self.target)

    def test_scale_code_zero(self):
        scale = self.name_of("experts.0.w1.weight_scale")
        packed = scale.replace("scale", "packed")
        self.poison(scale, 0, b"\0")
        self.poison(packed, 0, b"\x80" * 15 + b"\x01")
        self.refuse(scale, "scale code 0", "unless its 32 weights are zero")
        self.poison(packed, 0, b"\x80\x08\x00\x88" * 4)
        self.expect(OK, "-q", self.source, self.target)
        self.expect(OK, "--verify", self.target, "--against", self.source)

    def test_vision_may_hold_anything(self):
        name = next((n for n, *_ in self.tensors() if n.startswith("vision")), None)
        if name is None:
            self.skipTest("no vision tensors in this preset")
        self.poison(name, 0, b"\xff\xff")
        self.expect(OK, "-q", self.source, self.target)


class Tables(Inputs):
    """Names, dtypes and shapes."""

    def test_missing_tensor(self):
        name = self.name_of("input_layernorm.weight")
        self.rewrite(lambda n, *rest: [] if n == name else [(n, *rest)])
        self.refuse(name, "in no shard")

    def test_all_missing_tensors_at_once(self):
        gone = [n for n, *_ in self.tensors() if n.endswith(("o_proj.weight", "w3.weight_scale"))]
        self.rewrite(lambda n, *rest: [] if n in gone else [(n, *rest)])
        text = self.refuse()
        for name in gone:
            self.assertIn(name, text)

    def test_transposed(self):
        name = self.name_of("self_attn.f_a_proj.weight")
        self.rewrite(lambda n, d, shape, data:
                     [(n, d, tuple(reversed(shape)) if n == name else shape, data)])
        self.refuse(name, "the config needs BF16")

    def test_same_size_other_dtype(self):
        name = self.name_of("o_norm.weight")
        self.rewrite(lambda n, d, shape, data: [(n, "I32" if n == name else d, shape, data)])
        self.refuse(name, "I32", "needs F32")

    def test_one_dimension_more(self):
        name = self.name_of("model.norm.weight")
        self.rewrite(lambda n, d, shape, data:
                     [(n, d, (1, *shape) if n == name else shape, data)])
        self.refuse(name)

    def test_stranger(self):
        self.rewrite(lambda n, *rest: [(n, *rest)] + (
            [("language_model.model.surprise", "F32", (1,), b"\0\0\0\0")]
            if n.endswith("model.norm.weight") else []))
        self.refuse("unknown tensor 'language_model.model.surprise'")

    def test_one_expert_too_many(self):
        stray = LAYER + "1.block_sparse_moe.experts.977.w1.weight_scale"
        self.rewrite(lambda n, *rest: [(n, *rest)] + (
            [(stray, "U8", (1, 1), b"\1")] if n.endswith("model.norm.weight") else []))
        self.refuse(stray)

    def test_control_characters_are_not_printed(self):
        self.rewrite(lambda n, *rest: [(n, *rest)] + (
            [("evil\x1b[2Jname", "U8", (1,), b"\1")] if n.endswith("model.norm.weight") else []))
        self.assertNotIn("\x1b", self.refuse())

    def test_a_log_too_short(self):
        name = self.name_of("A_log")
        self.rewrite(lambda n, d, shape, data:
                     [(n, d, (1,), data[:4]) if n == name else (n, d, shape, data)])
        self.refuse(name, "must have")

    def test_same_tensor_in_two_shards(self):
        first = self.tensors()[0]
        write_shard(self.source / "model-extra.safetensors", [first])
        self.refuse(first[0], "model-extra.safetensors", self.shard.name)

    def test_metadata_is_ignored(self):
        whole = Shard(self.shard)
        header = {"__metadata__": {"format": "pt"}, **whole.header}
        text = json.dumps(header).encode()
        self.shard.write_bytes(struct.pack("<Q", len(text)) + text + whole.data)
        self.expect(OK, "-q", self.source, self.target)


class Files(Inputs):
    """What happens to files on their way."""

    def test_short_shard(self):
        data = self.shard.read_bytes()
        for size in (len(data) - 1, len(data) // 2, 8, 3, 0):
            self.shard.write_bytes(data[:size])
            self.refuse(self.shard.name)

    def test_long_shard(self):
        self.shard.write_bytes(self.shard.read_bytes() + b"\0")
        self.refuse(self.shard.name)

    def test_other_files_by_that_name(self):
        for content in (b"<!DOCTYPE html><html>404</html>" * 20,
                        b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n"):
            self.shard.write_bytes(content)
            self.refuse(self.shard.name)

    def test_missing_shard_by_number(self):
        source = self.folder / "split"
        parts = self.tensors()
        source.mkdir()
        for path in self.source.glob("*.json"):
            (source / path.name).write_bytes(path.read_bytes())
        (source / "tiktoken.model").write_bytes((self.source / "tiktoken.model").read_bytes())
        for number in (1, 2, 4):
            write_shard(source / f"model-{number:05d}-of-000004.safetensors", parts[number::4])
        text = self.expect_error(NO_INPUT, "-q", source, self.target)
        self.assertIn("3", text)

    def test_unfinished_download(self):
        (self.source / (self.shard.name + ".part")).write_bytes(b"")
        self.refuse(self.shard.name + ".part")

    def test_no_checkpoint(self):
        self.expect_error(NO_INPUT, "-q", self.folder / "nowhere", self.target, says=["nowhere"])
        self.expect_error(NO_INPUT, "--plan", self.shard)
        self.assertFalse(self.target.exists(), "a folder was made for nothing")

    def test_small_files_missing(self):
        for name in ("config.json", "tiktoken.model", "tokenizer_config.json"):
            kept = (self.source / name).read_bytes()
            (self.source / name).unlink()
            self.refuse(name, status=NO_INPUT)
            (self.source / name).write_bytes(kept)
        (self.source / "generation_config.json").unlink()
        self.expect(OK, "-q", self.source, self.target)

    def test_licence_is_carried(self):
        (self.source / "LICENSE").write_bytes(b"be kind\n")
        self.expect(OK, "-q", self.source, self.target)
        self.expect(OK, "-q", "--export", self.target, self.folder / "out")
        self.assertEqual((self.folder / "out/LICENSE").read_bytes(), b"be kind\n")

    def change_config(self, change):
        config = json.loads((self.source / "config.json").read_text())
        change(config["text_config"])
        (self.source / "config.json").write_text(json.dumps(config))

    def test_vocabulary_of_another_model(self):
        self.change_config(lambda text: text.update(vocab_size=text["vocab_size"] + 1))
        self.refuse("vocab_size", "different models")

    def test_config_lacks_keys(self):
        def change(text):
            del text["hidden_size"], text["num_experts_per_token"]
        self.change_config(change)
        self.refuse("hidden_size", "num_experts_per_token")

    def test_config_of_a_larger_model(self):
        self.change_config(lambda text: text.update(num_experts=60000))
        self.refuse()

    def test_unsupported_config(self):
        self.change_config(lambda text: text.update(hidden_act="gelu"))
        self.refuse("hidden_act", status=UNSUPPORTED)

    def test_problems_of_all_kinds_at_once(self):
        name = self.name_of("input_layernorm.weight")
        self.rewrite(lambda n, *rest: [] if n == name else [(n, *rest)])
        (self.source / "tokenizer_config.json").write_bytes(b"{")
        self.refuse(name, "tokenizer_config.json")
        done = self.expect(DATA, "--json", "-q", self.source, self.target)
        report = json.loads(done.stdout)
        self.assertEqual(report["schema"], "k3pack.failure/1")
        self.assertGreaterEqual(report["problem_count"], 2)
        self.assertEqual(len(report["problems"]), report["problem_count"])

    def test_index_that_disagrees(self):
        source = self.own_index_checkpoint()
        path = source / "model.safetensors.index.json"
        index = json.loads(path.read_text())
        name = next(iter(index["weight_map"]))
        index["weight_map"][name] = "model-00077-of-00099.safetensors"
        path.write_text(json.dumps(index))
        self.expect_error(NO_INPUT, "-q", source, self.target, says=["model-00077-of-00099"])

    def own_index_checkpoint(self):
        source = self.folder / "with-index"
        source.mkdir()
        for path in self.checkpoint("fuzz").iterdir():
            (source / path.name).write_bytes(path.read_bytes())
        return source


class Plan(TestCase):
    def test_plan_is_what_packing_makes(self):
        plan = json.loads(self.expect(OK, "--plan", "--json", self.checkpoint("tiny")).stdout)
        pack = self.pack("tiny")
        sizes = {name: (pack / name).stat().st_size for name in
                 ("k3.index", "k3.trunk", "k3.experts")}
        self.assertEqual(plan["schema"], "k3pack.plan/1")
        self.assertEqual(plan["read_bytes"], sum(
            shard.path.stat().st_size for shard in shards(self.checkpoint("tiny"))))
        for key, name in (("trunk_bytes", "k3.trunk"), ("experts_bytes", "k3.experts"),
                          ("index_bytes_max", "k3.index")):
            self.assertGreaterEqual(plan[key], sizes[name])
        self.assertLess(plan["trunk_bytes"], sizes["k3.trunk"] + 65536)
        self.assertLess(plan["experts_bytes"], sizes["k3.experts"] + 65536)
        self.assertGreater(plan["skipped_tensors"], 0)
        used = sum((pack / name).stat().st_blocks * 512 for name in sizes)
        self.assertLessEqual(used, plan["space_bytes"] + 65536)

    def test_plan_writes_nothing(self):
        before = sorted(self.checkpoint("tiny").iterdir())
        text = self.expect(OK, "--plan", self.checkpoint("tiny"), cwd=self.folder).stdout.decode()
        self.assertIn("assuming one disk", text)
        self.assertEqual(sorted(self.checkpoint("tiny").iterdir()), before)
        self.assertEqual(list(self.folder.iterdir()), [])


if __name__ == "__main__":
    unittest.main()
