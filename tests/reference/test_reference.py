#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Checks of the reference itself, on a tiny random checkpoint written here from the model report.

Run:  /usr/bin/python3 -m unittest discover -s tests/reference
K3_RELEASED_DATA may name a folder with a few released MXFP4 rows; without it that test is skipped.
"""

import json
import math
import os
import struct
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import numpy as np

import compare
import run_reference
from checkpoint import (Checkpoint, CheckpointError, Mxfp4Matrix, decode_bf16, decode_mxfp4,
                        _grouped, _row_spans)
from faults import FAULTS
from model import (Config, ConfigError, Kda, Model, choose_experts, l2_norm, mix, rms_norm,
                   row_sums, sigmoid, situ, softmax)

PROMPT = [5, 17, 3, 96, 44, 5]


# ---- a tiny checkpoint --------------------------------------------------------------------------

def tiny_config():
    """Seven layers, boundaries at 0, 3, 6; two dense layers; MLA at 2, 5, 6; no two sizes alike
    that a mistake could confuse, except where a square matrix is wanted (KDA width = hidden)."""
    return {
        "model_type": "kimi_k3",
        "text_config": {
            "model_type": "kimi_linear", "hidden_size": 64, "num_hidden_layers": 7,
            "vocab_size": 97, "rms_norm_eps": 1e-5, "tie_word_embeddings": False,
            "hidden_act": "situ", "activation_situ_beta": 4.0, "activation_situ_linear_beta": 25.0,
            "num_attention_heads": 3, "num_key_value_heads": 3, "q_lora_rank": 24,
            "kv_lora_rank": 40, "qk_nope_head_dim": 16, "qk_rope_head_dim": 8, "v_head_dim": 12,
            "mla_use_nope": True, "mla_use_output_gate": True, "first_k_dense_replace": 2,
            "moe_layer_freq": 1, "intermediate_size": 80, "num_experts": 8,
            "num_experts_per_token": 3, "num_shared_experts": 2, "routed_expert_hidden_size": 96,
            "moe_intermediate_size": 32, "latent_moe_use_norm": True,
            "moe_router_activation_func": "sigmoid", "moe_renormalize": True,
            "routed_scaling_factor": 1.5, "num_expert_group": 1, "topk_group": 1,
            "attn_res_block_size": 3,
            "linear_attn_config": {
                "num_heads": 4, "head_dim": 16, "short_conv_kernel_size": 4,
                "gate_lower_bound": -5.0, "use_full_rank_gate": True,
                "full_attn_layers": [3, 6, 7], "kda_layers": [1, 2, 4, 5]}}}


def to_bf16(values):
    """float -> BF16 bits, cut off."""
    return (np.ascontiguousarray(values, dtype="<f4").view("<u4") >> 16).astype("<u2")


def random_tensors(config, seed=1):
    """name -> array (u16 for BF16, float32, u8) of every tensor the report lists."""
    text = config["text_config"]
    linear = text["linear_attn_config"]
    random = np.random.default_rng(seed)
    hidden, heads = text["hidden_size"], text["num_attention_heads"]
    latent, width = text["routed_expert_hidden_size"], text["moe_intermediate_size"]
    nope, shared = text["qk_nope_head_dim"], text["qk_rope_head_dim"]
    kda_heads, dim = linear["num_heads"], linear["head_dim"]
    kda = kda_heads * dim
    tensors = {}

    def matrix(name, out_size, in_size, scale=1.5):
        values = random.standard_normal((out_size, in_size)) * scale / math.sqrt(in_size)
        tensors[name + ".weight"] = to_bf16(values)

    def gain(name, size):
        tensors[name + ".weight"] = to_bf16(random.uniform(0.5, 1.5, size))

    def mxfp4(name, out_size, in_size):
        tensors[name + ".weight_packed"] = random.integers(
            0, 256, (out_size, in_size // 2), dtype=np.uint8)
        tensors[name + ".weight_scale"] = random.integers(
            0x78, 0x7C, (out_size, in_size // 32), dtype=np.uint8)

    def float32(name, values):
        tensors[name] = np.ascontiguousarray(values, dtype="<f4")

    root = "language_model."
    matrix(root + "model.embed_tokens", text["vocab_size"], hidden)
    matrix(root + "lm_head", text["vocab_size"], hidden)
    gain(root + "model.norm", hidden)
    gain(root + "model.output_attn_res_norm", hidden)
    matrix(root + "model.output_attn_res_proj", 1, hidden)
    for number in range(text["num_hidden_layers"]):
        layer = f"{root}model.layers.{number}."
        for name in ("input_layernorm", "post_attention_layernorm",
                     "self_attention_res_norm", "mlp_res_norm"):
            gain(layer + name, hidden)
        matrix(layer + "self_attention_res_proj", 1, hidden)
        matrix(layer + "mlp_res_proj", 1, hidden)
        attention = layer + "self_attn."
        if number + 1 in linear["kda_layers"]:
            for name in "qkv":
                matrix(f"{attention}{name}_proj", kda, hidden)
                float32(f"{attention}{name}_conv1d.weight", random.standard_normal(
                    (kda, 1, linear["short_conv_kernel_size"])) * 0.5)
            matrix(attention + "g_proj", kda, hidden)
            matrix(attention + "o_proj", hidden, kda)
            matrix(attention + "f_a_proj", dim, hidden)
            matrix(attention + "f_b_proj", kda, dim)
            matrix(attention + "b_proj", kda_heads, hidden)
            a_log = np.zeros(dim)                            # longer than the heads: padded
            a_log[:kda_heads] = random.uniform(0.2, 1.2, kda_heads)
            float32(attention + "A_log", a_log)
            float32(attention + "dt_bias", random.uniform(-3, 0, kda))
            float32(attention + "o_norm.weight", random.uniform(0.5, 1.5, dim))
        else:
            matrix(attention + "q_a_proj", text["q_lora_rank"], hidden)
            gain(attention + "q_a_layernorm", text["q_lora_rank"])
            matrix(attention + "q_b_proj", heads * (nope + shared), text["q_lora_rank"])
            matrix(attention + "kv_a_proj_with_mqa", text["kv_lora_rank"] + shared, hidden)
            gain(attention + "kv_a_layernorm", text["kv_lora_rank"])
            matrix(attention + "kv_b_proj", heads * (nope + text["v_head_dim"]),
                   text["kv_lora_rank"])
            matrix(attention + "g_proj", heads * text["v_head_dim"], hidden)
            matrix(attention + "o_proj", hidden, heads * text["v_head_dim"])
        if number < text["first_k_dense_replace"]:
            for name in ("gate", "up"):
                matrix(f"{layer}mlp.{name}_proj", text["intermediate_size"], hidden)
            matrix(layer + "mlp.down_proj", hidden, text["intermediate_size"])
            continue
        moe = layer + "block_sparse_moe."
        matrix(moe + "gate", text["num_experts"], hidden)
        bias = random.uniform(-0.3, 0.3, text["num_experts"])
        if number == text["num_hidden_layers"] - 1:          # experts e and e+4 always tie
            router = tensors[moe + "gate.weight"]
            router[4:] = router[:4]
            bias[4:] = bias[:4]
        float32(moe + "gate.e_score_correction_bias", bias)
        matrix(moe + "routed_expert_down_proj", latent, hidden)
        gain(moe + "routed_expert_norm", latent)
        matrix(moe + "routed_expert_up_proj", hidden, latent)
        shared_width = text["num_shared_experts"] * width
        for name in ("gate", "up"):
            matrix(f"{moe}shared_experts.{name}_proj", shared_width, hidden)
        matrix(moe + "shared_experts.down_proj", hidden, shared_width)
        for expert in range(text["num_experts"]):
            mxfp4(f"{moe}experts.{expert}.w1", width, latent)
            mxfp4(f"{moe}experts.{expert}.w3", width, latent)
            mxfp4(f"{moe}experts.{expert}.w2", latent, width)
    return tensors


def write_shard(path, tensors):
    """A safetensors file with metadata and padding, the tensors in the order given."""
    dtypes = {"u2": "BF16", "f4": "F32", "u1": "U8"}
    header, at = {"__metadata__": {"format": "pt"}}, 0
    for name, array in tensors.items():
        header[name] = {"dtype": dtypes[array.dtype.str[1:]], "shape": list(array.shape),
                        "data_offsets": [at, at + array.nbytes]}
        at += array.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for array in tensors.values():
            file.write(array.tobytes())


def write_checkpoint(folder, config, tensors, shards=3):
    """Deal the tensors out to shards, so that none is where its layer suggests."""
    with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as file:
        json.dump(config, file)
    names = list(tensors)
    for shard in range(shards):
        write_shard(os.path.join(folder, f"model-{shard}.safetensors"),
                    {name: tensors[name] for name in names[shard::shards]})


class TinyCase(unittest.TestCase):
    """Cases that run the tiny checkpoint."""

    @classmethod
    def setUpClass(cls):
        cls._folder = tempfile.TemporaryDirectory()
        cls.folder = cls._folder.name
        cls.config = tiny_config()
        cls.tensors = random_tensors(cls.config)
        cls.tensors["vision_tower.patch_embed.proj.weight"] = np.zeros((3, 3), dtype=np.float32)
        write_checkpoint(cls.folder, cls.config, cls.tensors)

    @classmethod
    def tearDownClass(cls):
        cls._folder.cleanup()

    def open(self, fault=None):
        checkpoint = Checkpoint(self.folder, fault)
        self.addCleanup(checkpoint.close)
        return checkpoint

    def logits(self, ids, fault=None):
        model = Model(self.open(fault))
        return model.forward(ids, model.new_state(), all_logits=True)


# ---- value formats ------------------------------------------------------------------------------

class Formats(unittest.TestCase):

    def test_bf16(self):
        raw = np.array([0x3F80, 0xC000, 0x0001, 0x8000, 0x3EAB], dtype=np.uint16)
        np.testing.assert_array_equal(
            decode_bf16(raw), [1.0, -2.0, 2.0 ** -133, -0.0, 0.333984375])

    def test_mxfp4_table(self):
        packed = np.zeros((1, 16), dtype=np.uint8)
        packed[0, :8] = [0x10, 0x32, 0x54, 0x76, 0x98, 0xBA, 0xDC, 0xFE]   # nibble = its column
        magnitudes = [0, 0.5, 1, 1.5, 2, 3, 4, 6]
        expected = np.array(magnitudes + [-m for m in magnitudes] + [0] * 16)
        for code in (1, 126, 127, 128, 252):
            values = decode_mxfp4(packed, np.array([[code]], dtype=np.uint8))
            np.testing.assert_array_equal(values[0], expected * 2.0 ** (code - 127))

    def test_mxfp4_scale_covers_32_columns(self):
        packed = np.full((2, 32), 0x22, dtype=np.uint8)                    # 1.0 everywhere
        values = decode_mxfp4(packed, np.array([[127, 128], [129, 130]], dtype=np.uint8))
        np.testing.assert_array_equal(values[0], [1.0] * 32 + [2.0] * 32)
        np.testing.assert_array_equal(values[1], [4.0] * 32 + [8.0] * 32)

    def test_mxfp4_refuses_scales(self):
        zeros, ones = np.full((1, 16), 0x80, np.uint8), np.full((1, 16), 0x02, np.uint8)
        self.assertEqual(np.abs(decode_mxfp4(zeros, np.array([[0]], np.uint8))).max(), 0)
        for packed, code in ((ones, 0), (zeros, 253), (ones, 254), (ones, 255)):
            with self.assertRaises(CheckpointError):
                decode_mxfp4(packed, np.array([[code]], np.uint8))

    @unittest.skipUnless(os.environ.get("K3_RELEASED_DATA"), "K3_RELEASED_DATA is not set")
    def test_mxfp4_released_rows(self):
        stem = os.path.join(os.environ["K3_RELEASED_DATA"], "mxfp4_layer1_expert0_w1.")
        values = decode_mxfp4(np.fromfile(stem + "packed.u8", np.uint8).reshape(64, 1792),
                              np.fromfile(stem + "scale.u8", np.uint8).reshape(64, 112))
        expected = np.fromfile(stem + "expected.f32", "<f4").reshape(64, 3584)
        np.testing.assert_array_equal(values.astype(np.float32).view(np.uint32),
                                      expected.view(np.uint32))


# ---- shards and sparse matrices -----------------------------------------------------------------

class Shards(unittest.TestCase):

    def setUp(self):
        self._folder = tempfile.TemporaryDirectory()
        self.addCleanup(self._folder.cleanup)
        self.folder = self._folder.name
        with open(os.path.join(self.folder, "config.json"), "w", encoding="utf-8") as file:
            file.write("{}")

    def write_raw(self, header, data=b"", name="a.safetensors"):
        text = header if isinstance(header, bytes) else json.dumps(header).encode()
        with open(os.path.join(self.folder, name), "wb") as file:
            file.write(struct.pack("<Q", len(text)) + text + data)

    def open(self):
        checkpoint = Checkpoint(self.folder)
        self.addCleanup(checkpoint.close)
        return checkpoint

    def test_refuses(self):
        entry = {"dtype": "U8", "shape": [4], "data_offsets": [0, 4]}
        rows = (("leaves the file", {"a": entry}, b"abc"),
                ("size and shape differ", {"a": dict(entry, shape=[5])}, b"abcde"),
                ("unknown dtype", {"a": dict(entry, dtype="I8")}, b"abcd"),
                ("overlap", {"a": entry, "b": dict(entry, data_offsets=[3, 7])}, b"abcdefg"),
                ("same name twice", b'{"a":{},"a":{}}', b""))
        for why, header, data in rows:
            with self.subTest(why):
                self.write_raw(header, data)
                with self.assertRaises(CheckpointError):
                    self.open()

    def test_refuses_name_in_two_shards(self):
        header = {"a": {"dtype": "U8", "shape": [4], "data_offsets": [0, 4]}}
        self.write_raw(header, b"abcd")
        self.write_raw(header, b"abcd", "b.safetensors")
        with self.assertRaises(CheckpointError):
            self.open()

    def test_row_spans(self):
        self.assertEqual(_row_spans([(0, 4), (4, 11), (29, 30), (99, 101)], 10),
                         [(0, 3), (9, 11)])
        self.assertEqual(list(_grouped([(0, 3), (9, 14)], 4)),
                         [[(0, 3), (9, 10)], [(10, 14)]])

    def test_sparse_matrices_equal_dense(self):
        """Blocks anywhere, across page, row and tensor boundaries, in a file full of holes."""
        random = np.random.default_rng(3)
        rows, columns = 3000, 1504
        header, at = {}, 0
        for name, dtype, shape in (("plain.weight", "BF16", [rows, columns]),
                                   ("mx.weight_packed", "U8", [rows, columns // 2]),
                                   ("mx.weight_scale", "U8", [rows, columns // 32])):
            size = math.prod(shape) * (2 if dtype == "BF16" else 1)
            header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + size]}
            at += size
        self.write_raw(header)
        path = os.path.join(self.folder, "a.safetensors")
        start = os.path.getsize(path)
        plain = np.zeros((rows, columns), dtype="<u2")
        plain[100:120, 30:90] = to_bf16(random.standard_normal((20, 60)))
        plain[0, 0] = plain[-1, -1] = 0x3F80
        plain[1500:1502] = to_bf16(random.standard_normal((2, columns)))
        packed = np.zeros((rows, columns // 2), dtype=np.uint8)
        scales = np.zeros((rows, columns // 32), dtype=np.uint8)
        packed[700:733, 100:108] = random.integers(0, 256, (33, 8))
        packed[-1, -1] = 0x7A
        scales[700:733] = random.integers(0x70, 0x7A, (33, columns // 32))
        scales[-1] = 127
        with open(path, "r+b") as file:
            file.truncate(start + at)
            image = plain.tobytes() + packed.tobytes() + scales.tobytes()
            for page in range(0, start + at, 4096):           # write pages with data, leave holes
                begin, end = max(page - start, 0), page + 4096 - start
                if any(image[begin:end]):
                    file.seek(start + begin)
                    file.write(image[begin:end])
            file.flush()
            os.fsync(file.fileno())

        checkpoint = self.open()
        x = random.standard_normal((2, columns))
        for name, dense in (("plain", decode_bf16(plain)), ("mx", decode_mxfp4(packed, scales))):
            for one_panel in (False, True):
                matrix = checkpoint._open_matrix(name, rows, columns, one_panel)
                for _ in range(2):                            # decoded, then kept
                    np.testing.assert_allclose(matrix.apply(x), x @ dense.T, rtol=0, atol=1e-12)
                covered = sum(len(panel.rows) for panel in matrix.panels())
                if os.stat(path).st_blocks * 512 < (start + at) // 4:
                    self.assertLess(covered, rows // 4, "rows in holes were read")
        self.assertIsInstance(checkpoint.matrix("mx", rows, columns), Mxfp4Matrix)
        with self.assertRaises(CheckpointError):
            checkpoint.matrix("plain", columns, rows)


# ---- the parts, against scalar arithmetic or a different form ------------------------------------

class Parts(TinyCase):

    def test_config_names_everything_missing(self):
        root = tiny_config()
        del root["text_config"]["rms_norm_eps"]
        root["text_config"]["linear_attn_config"]["num_heads"] = 4.0
        with self.assertRaisesRegex(ConfigError, "num_heads, rms_norm_eps"):
            Config.from_json(root)
        root = tiny_config()
        root["text_config"]["linear_attn_config"]["kda_layers"][0] = 0
        with self.assertRaises(ConfigError):
            Config.from_json(root)

    def test_sigmoid(self):
        np.testing.assert_allclose(sigmoid(np.array([-800.0, -1.0, 0.0, 2.0, 800.0])),
                                   [0, 1 / (1 + math.e), 0.5, 1 / (1 + math.exp(-2)), 1],
                                   rtol=1e-15)

    def test_norms(self):
        x = np.array([[3.0, 4.0]])
        np.testing.assert_allclose(rms_norm(x, np.array([2.0, 1.0]), 1e-5),
                                   x * [2, 1] / math.sqrt(12.5 + 1e-5), rtol=1e-15)
        np.testing.assert_allclose(l2_norm(x), x / math.sqrt(25 + 1e-6), rtol=1e-15)

    def test_situ(self):
        for g, u in ((0.0, 3.0), (5.0, -2.0), (-9.0, 40.0)):
            expected = (4 * math.tanh(g / 4) / (1 + math.exp(-g))) * 25 * math.tanh(u / 25)
            self.assertAlmostEqual(float(situ(np.float64(g), np.float64(u), 4.0, 25.0)), expected)
        self.assertLessEqual(float(situ(np.float64(1e9), np.float64(1e9), 4.0, 25.0)), 100)

    def test_mix(self):
        random = np.random.default_rng(5)
        sources, w = random.standard_normal((3, 1, 6)), random.standard_normal(6)
        scores = [sum(w * s[0]) / math.sqrt(sum(s[0] ** 2) / 6 + 1e-5) for s in sources]
        total = sum(map(math.exp, scores))
        expected = sum(math.exp(score) / total * s for score, s in zip(scores, sources))
        np.testing.assert_allclose(mix(list(sources), w, 1e-5), expected, rtol=1e-12)
        np.testing.assert_array_equal(mix([sources[0]], w, 1e-5), sources[0])

    def test_row_sums(self):
        random = np.random.default_rng(6)
        for n in (0, 1, 2, 3, 7, 100, 7168):
            products = random.standard_normal((5, n))
            products[[1, 4]] = products[2]
            sums = row_sums(products)
            np.testing.assert_allclose(sums, [math.fsum(row) for row in products], atol=1e-12)
            self.assertTrue(sums[1] == sums[2] == sums[4])

    def test_choose_experts(self):
        config = Config.from_json(tiny_config())                          # 3 of 8, scale 1.5
        scores = np.array([0.5, 0.9, 0.5, 0.1, 0.5, 0.8, 0.2, 0.3])
        bias = np.array([0.0, -0.8, 0.0, 0.6, 0.0, 0.0, 0.0, 0.0])
        picked, weights, margin = choose_experts(scores, bias, config)
        self.assertEqual(picked.tolist(), [0, 3, 5])                      # 0, 2 and 4 tie
        self.assertEqual(margin, 0)
        np.testing.assert_allclose(weights, 1.5 * np.array([0.5, 0.1, 0.8]) / 1.4, rtol=1e-14)
        self.assertAlmostEqual(weights.sum(), 1.5)                        # renormalised
        raw = choose_experts(scores, bias, config, "no-renormalise")[1]
        np.testing.assert_allclose(raw, 1.5 * np.array([0.5, 0.1, 0.8]), rtol=1e-14)
        self.assertEqual(choose_experts(scores, bias, config, "tie-higher-index")[0].tolist(),
                         [3, 4, 5])
        self.assertEqual(choose_experts(scores, bias, config, "bias-ignored")[0].tolist(),
                         [0, 1, 5])

    def test_kda_step_by_scalars(self):
        random = np.random.default_rng(7)
        heads, dim = 2, 3
        memory = random.standard_normal((heads, dim, dim))
        q, k, v = random.standard_normal((3, heads, dim))
        alpha, beta = random.uniform(0.1, 1, (heads, dim)), random.uniform(0, 1, heads)
        expected_memory, expected = memory.copy(), np.zeros((heads, dim))
        for h in range(heads):
            s = expected_memory[h]
            for i in range(dim):
                for j in range(dim):
                    s[i][j] *= alpha[h][i]
            for j in range(dim):
                r = sum(k[h][i] * s[i][j] for i in range(dim))
                for i in range(dim):
                    s[i][j] += k[h][i] * beta[h] * (v[h][j] - r)
                expected[h][j] = sum(q[h][i] * s[i][j] for i in range(dim))
        layer = Kda.__new__(Kda)
        layer.fault = None
        np.testing.assert_allclose(layer.step(memory, q, k, v, alpha, beta), expected, rtol=1e-12)
        np.testing.assert_allclose(memory, expected_memory, rtol=1e-12)

    def test_convolution_by_scalars(self):
        model = Model(self.open())
        layer = model.layers[0].attention
        x0 = np.random.default_rng(8).standard_normal((5, 64))
        w = self.tensors["language_model.model.layers.0.self_attn.k_conv1d.weight"]
        state = layer.new_state()
        got = np.concatenate([layer.convolve("k", part, state) for part in (x0[:1], x0[1:])])
        for t in range(5):
            for c in (0, 63):
                total = sum(float(w[c, 0, 3 - back]) * x0[t - back, c]
                            for back in range(min(t, 3) + 1))
                self.assertAlmostEqual(got[t, c], total / (1 + math.exp(-total)), places=12)

    def test_mla_equals_absorbed_form(self):
        """The expanded form used here, against the algebraically equal absorbed one."""
        model = Model(self.open())
        layer, config = model.layers[2].attention, model.config
        x = np.random.default_rng(9).standard_normal((4, config.hidden))
        got = layer.forward(x, layer.new_state())
        qn, qr = layer.queries(x)
        c, r = layer.latents(x)
        kv_b = decode_bf16(self.tensors["language_model.model.layers.2.self_attn.kv_b_proj.weight"])
        kv_b = kv_b.reshape(config.mla_heads, -1, config.kv_rank)
        y = np.zeros((4, config.mla_heads, config.value_dim))
        for h in range(config.mla_heads):
            key, value = kv_b[h, :config.nope_dim], kv_b[h, config.nope_dim:]
            for t in range(4):
                scores = (c[:t + 1] @ (key.T @ qn[t, h]) + r[:t + 1] @ qr[t, h]) / math.sqrt(24)
                y[t, h] = value @ (softmax(scores, 0) @ c[:t + 1])
        gate = sigmoid(layer.out_gate.apply(x))
        np.testing.assert_allclose(got, layer.out.apply(y.reshape(4, -1) * gate), rtol=1e-10,
                                   atol=1e-12)


# ---- the whole ----------------------------------------------------------------------------------

class Whole(TinyCase):

    def test_prefill_equals_decode(self):
        whole = self.logits(PROMPT)
        model = Model(self.open())
        state = model.new_state()
        single = np.concatenate([model.forward([token], state) for token in PROMPT])
        self.assertLess(compare.relative_difference(single, whole), 1e-12)
        state = model.new_state()
        parts = np.concatenate([model.forward(part, state, all_logits=True)
                                for part in (PROMPT[:2], PROMPT[2:5], PROMPT[5:])])
        self.assertLess(compare.relative_difference(parts, whole), 1e-12)
        self.assertGreater(np.ptp(whole[0] - whole[-1]), 1e-3)       # same token, other context

    def test_every_fault_is_visible(self):
        right = self.logits(PROMPT)
        for fault in FAULTS:
            with self.subTest(fault):
                figure = compare.relative_difference(self.logits(PROMPT, fault), right)
                self.assertGreater(figure, 1e-10)
                if fault not in ("no-renormalise", "l2norm-eps", "mla-eps"):
                    self.assertGreater(figure, 1e-4)

    def test_transposed_without_square(self):
        config = tiny_config()
        config["text_config"]["linear_attn_config"]["head_dim"] = 12
        config["text_config"]["num_shared_experts"] = 3
        with tempfile.TemporaryDirectory() as folder:
            write_checkpoint(folder, config, random_tensors(config))
            results = []
            for fault in (None, "transposed-square"):
                with Checkpoint(folder, fault) as checkpoint:
                    self.assertFalse(checkpoint._has_square)
                    model = Model(checkpoint)
                    results.append(model.forward(PROMPT, model.new_state()))
        self.assertGreater(compare.relative_difference(*results), 1e-4)

    def test_ties_take_the_lower_index(self):
        model = Model(self.open())
        state = model.new_state()
        model.forward(PROMPT, state)
        for route in state.routes:
            experts, margin = route[6]                       # e and e+4 have equal scores
            self.assertEqual(margin, 0)
            self.assertTrue(all(e - 4 in experts for e in experts if e >= 4))
            self.assertEqual(set(route), {2, 3, 4, 5, 6})

    def test_shards_do_not_matter(self):
        with tempfile.TemporaryDirectory() as folder:
            write_checkpoint(folder, self.config, self.tensors, shards=1)
            with Checkpoint(folder) as checkpoint:
                model = Model(checkpoint)
                np.testing.assert_array_equal(
                    model.forward(PROMPT, model.new_state(), all_logits=True), self.logits(PROMPT))

    def test_refuses_a_strange_token(self):
        model = Model(self.open())
        for token in (-1, 97):
            with self.assertRaises(ValueError):
                model.forward([token], model.new_state())


class CommandLine(TinyCase):

    def run_main(self, *arguments):
        sys.stdout, saved_out = open(os.devnull, "w"), sys.stdout
        sys.stderr, saved_err = open(os.devnull, "w"), sys.stderr
        try:
            return run_reference.main([self.folder, "--ids", ",".join(map(str, PROMPT)),
                                       *arguments])
        finally:
            sys.stdout.close()
            sys.stderr.close()
            sys.stdout, sys.stderr = saved_out, saved_err

    def test_outputs(self):
        with tempfile.TemporaryDirectory() as out:
            paths = {name: os.path.join(out, name) for name in ("a.npy", "b.npy", "c.npy", "ids",
                                                                "routes")}
            self.assertEqual(0, self.run_main("-n", "3", "--logits", paths["a.npy"], "--ids-out",
                                              paths["ids"], "--routes", paths["routes"]))
            self.assertEqual(0, self.run_main("-n", "3", "--all-logits", "--logits",
                                              paths["b.npy"]))
            self.assertEqual(0, self.run_main("--logits", paths["c.npy"]))
            sampled, every, last = (np.load(paths[name]) for name in ("a.npy", "b.npy", "c.npy"))
            with open(paths["ids"], encoding="utf-8") as file:
                ids = run_reference.parse_ids(file.read())
            with open(paths["routes"], encoding="utf-8") as file:
                tokens = json.load(file)["tokens"]
        self.assertEqual((sampled.shape, every.shape, last.shape), ((3, 97), (8, 97), (1, 97)))
        self.assertEqual(sampled.argmax(axis=1).tolist(), ids)
        np.testing.assert_allclose(every[5:], sampled, rtol=0, atol=1e-12)
        np.testing.assert_array_equal(last[0], sampled[0])
        self.assertEqual([token["id"] for token in tokens], PROMPT + ids[:2])
        self.assertEqual(len(tokens[0]["experts"]["2"]), 3)
        # What was decoded is what one pass over the same tokens gives.
        np.testing.assert_allclose(self.logits(PROMPT + ids[:2]), every, rtol=0, atol=1e-11)

    def test_compare_what_is_not_finite(self):
        one, nan = np.ones((1, 3)), np.array([[1.0, np.nan, 1.0]])
        self.assertEqual(compare.relative_difference(one * 1.5, one), 0.5)
        self.assertEqual(compare.relative_difference(nan, one), math.inf)
        for a, b in ((one, nan), (one, one * 0), (one, np.ones((3, 1))), (one[:0], one[:0])):
            with self.assertRaises(ValueError):
                compare.relative_difference(a, b)

    def test_fault_and_compare(self):
        with tempfile.TemporaryDirectory() as out:
            right, wrong = os.path.join(out, "right.npy"), os.path.join(out, "wrong.npy")
            self.run_main("--logits", right)
            self.run_main("--logits", wrong, "--fault", "tap-order")
            saved, sys.stdout = sys.stdout, open(os.devnull, "w")
            try:
                self.assertEqual(compare.main([right, right]), 0)
                self.assertEqual(compare.main([wrong, right]), 1)
                self.assertEqual(compare.main([wrong, right, "--at-least", "1e-3"]), 0)
                self.assertEqual(compare.main([right, right, "--at-least", "1e-3"]), 1)
            finally:
                sys.stdout.close()
                sys.stdout = saved


if __name__ == "__main__":
    unittest.main()
