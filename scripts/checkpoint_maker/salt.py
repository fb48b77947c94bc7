# SPDX-License-Identifier: Apache-2.0
"""Weights of the released dimensions that are holes except for a salt of about half a gigabyte.

Every layer and every tensor of the text model holds some real values, and a forward pass over
salted tokens depends on all of them but those of experts that were not picked:

  vectors       whole: norms, mix projections, convolutions, A_log, dt_bias, router bias
  embedding     rows of SALTED_IDS; other tokens embed to zero
  lm_head       HEAD_ROWS rows, all of them of salted ids: only these have logits
  KDA           16 channels of keys and 16 of values of one head, another one in every layer
  MLA           16 latents, 8 shared key channels and one whole head
  router        the rows of the layer's candidates, whose bias lifts them above all others
  experts       the candidates: 16 experts, so that all are picked, or in every fifth layer 24,
                of which the scores pick 16
  other         16 or 32 whole rows

What a matrix reads is salted where the matrix before it writes, so that nothing is lost on the
way. Whole rows are salted because a row is contiguous in the file; their first row is anywhere.
"""

import dataclasses
import functools
from typing import Iterator

import numpy as np

from .model import Dims, Tensor
from .streams import stream, to_bf16
from .weights import (GATE_SPREAD, GROUP_OCTAVES, SITU_RMS, UP_SPREAD, Style, base_scale_code,
                      make_tensor)

CHANNELS = 16                       # of a salted head
OUT_ROWS = 16                       # hidden dimensions that a mixer or the shared MLP writes
LATENT_ROWS = 32                    # latent dimensions that enter and leave an expert
WIDTH_ROWS = 16                     # hidden units of an expert or the shared MLP
DENSE_ROWS = 32
SHARED_KEY_ROWS = 8
CONTESTED_EVERY, CONTESTED_AT, CONTESTED_CANDIDATES = 5, 1, 24
HEAD_ROWS = 96
EMBEDDED_FROM_ZERO, EMBEDDED_EVERY = 1024, 1111

EMBEDDING_SPREAD = 0.2
ATTENDED_NORM = 5.6                 # length of what enters o_proj: 16 values of 1.4
LAST_BLOCK_BOOST = 3.0              # layers whose sum is never banked would hardly show
BIAS_LIFT, BIAS_LEAST = 1.3, 0.8    # of candidates; others stay below 0.5 + 0.1


@dataclasses.dataclass(frozen=True)
class LayerSalt:
    """Where the salt of a layer begins."""

    head: int
    key_channel: int
    value_channel: int
    low_rank_row: int               # of f_a_proj or q_a_proj
    latent_row: int                 # of kv_a_proj_with_mqa
    shared_key_row: int
    attention_out: int
    mlp_row: int
    mlp_out: int
    routed_row: int
    routed_out: int
    candidates: tuple


def _boost(d: Dims, layer: int) -> float:
    """Factor of what a layer writes to the hidden dimensions."""
    return LAST_BLOCK_BOOST if layer >= d.layers - d.layers % d.res_block else 1.0


def _contested(layer: int) -> bool:
    return layer % CONTESTED_EVERY == CONTESTED_AT


@functools.lru_cache(maxsize=None)
def layer_salt(d: Dims, seed: int, layer: int) -> LayerSalt:
    rng = stream(seed, f"salt of layer {layer}")
    candidate_count = CONTESTED_CANDIDATES if _contested(layer) else d.topk
    mlp_rows = d.shared_width if layer else d.intermediate
    low_rank = d.q_lora if d.is_mla(layer) else d.kda_head_dim

    def first(rows: int, count: int) -> int:
        return int(rng.integers(0, rows - count + 1))

    return LayerSalt(
        head=first(min(d.kda_heads, d.mla_heads), 1),
        key_channel=first(d.kda_head_dim, CHANNELS),
        value_channel=first(min(d.kda_head_dim, d.v_head), CHANNELS),
        low_rank_row=first(low_rank, CHANNELS),
        latent_row=first(d.kv_lora, CHANNELS),
        shared_key_row=d.kv_lora + first(d.rope, SHARED_KEY_ROWS),
        attention_out=first(d.hidden, OUT_ROWS),
        mlp_row=first(mlp_rows, DENSE_ROWS),
        mlp_out=first(d.hidden, OUT_ROWS),
        routed_row=first(d.latent, LATENT_ROWS),
        routed_out=first(d.hidden, LATENT_ROWS),
        candidates=tuple(sorted(rng.permutation(d.experts)[:candidate_count].tolist())))


@functools.lru_cache(maxsize=None)
def head_ids(d: Dims, seed: int) -> tuple:
    """The tokens that can be generated: none of the first ones and no added one."""
    ids = stream(seed, "salted ids").permutation(np.arange(EMBEDDED_FROM_ZERO, d.ranks))
    return tuple(sorted(ids[:HEAD_ROWS].tolist()))


def embedded_ids(d: Dims, seed: int) -> list:
    return sorted({*range(EMBEDDED_FROM_ZERO), *range(0, d.vocab, EMBEDDED_EVERY),
                   *head_ids(d, seed)})


def _kda_spans(d: Dims, salt: LayerSalt) -> dict:
    at = salt.head * d.kda_head_dim
    keys = [(at + salt.key_channel, CHANNELS, 1.5)]
    values = [(at + salt.value_channel, CHANNELS, 1.5)]
    return {"q_proj": keys, "k_proj": keys, "f_b_proj": keys, "v_proj": values, "g_proj": values,
            "f_a_proj": [(salt.low_rank_row, CHANNELS, 2.0)], "b_proj": [(salt.head, 1, 1.5)]}


def _mla_spans(d: Dims, salt: LayerSalt) -> dict:
    def head_rows(size: int, gain: float) -> list:
        return [(salt.head * size, size, gain)]

    return {"q_a_proj": [(salt.low_rank_row, CHANNELS, 1.0)],
            "q_b_proj": head_rows(d.nope + d.rope, 1.5),
            "kv_a_proj_with_mqa": [(salt.latent_row, CHANNELS, 1.0),
                                   (salt.shared_key_row, SHARED_KEY_ROWS, 2.0)],
            "kv_b_proj": head_rows(d.nope + d.v_head, 1.2),
            "g_proj": [(salt.head * d.v_head + salt.value_channel, CHANNELS, 1.5)]}


def _mlp_spans(prefix: str, salt: LayerSalt, rows: int, width: int, boost: float) -> dict:
    down_gain = boost * np.sqrt(width / rows) / SITU_RMS
    return {f"{prefix}.gate_proj": [(salt.mlp_row, rows, GATE_SPREAD)],
            f"{prefix}.up_proj": [(salt.mlp_row, rows, UP_SPREAD)],
            f"{prefix}.down_proj": [(salt.mlp_out, OUT_ROWS, down_gain)]}


@functools.lru_cache(maxsize=None)
def bf16_spans(d: Dims, seed: int, layer: int) -> dict:
    """Salted rows of the BF16 matrices of a layer: name -> [(first row, rows, gain)].

    The gain is that of the rms of a whole input row; inputs that are mostly zero make up for it.
    """
    salt = layer_salt(d, seed, layer)
    is_mla, boost = d.is_mla(layer), _boost(d, layer)
    mixer = _mla_spans(d, salt) if is_mla else _kda_spans(d, salt)
    mixer_width = d.mla_heads * d.v_head if is_mla else d.kda_width
    mixer["o_proj"] = [(salt.attention_out, OUT_ROWS,
                        boost * np.sqrt(mixer_width) / ATTENDED_NORM)]
    spans = {f"self_attn.{name}": rows for name, rows in mixer.items()}
    if layer == 0:
        return spans | _mlp_spans("mlp", salt, DENSE_ROWS, d.intermediate, boost)
    moe = "block_sparse_moe"
    spans |= _mlp_spans(f"{moe}.shared_experts", salt, WIDTH_ROWS, d.shared_width, boost)
    spans[f"{moe}.gate"] = [(expert, 1, 1.5) for expert in salt.candidates]
    spans[f"{moe}.routed_expert_down_proj"] = [(salt.routed_row, LATENT_ROWS, 1.0)]
    spans[f"{moe}.routed_expert_up_proj"] = [(salt.routed_out, LATENT_ROWS, boost)]
    return spans


def _rows(tensor: Tensor, first: int, values: np.ndarray) -> tuple:
    return first * (tensor.bytes // tensor.shape[0]), values


def _normal_rows(tensor: Tensor, seed: int, first: int, rows: int, spread: float) -> np.ndarray:
    rng = stream(seed, f"{tensor.name} {first}")
    return rng.standard_normal((rows, tensor.shape[1]), dtype=np.float32) * np.float32(spread)


def _layer_matrix(d: Dims, tensor: Tensor, seed: int) -> Iterator[tuple]:
    name = tensor.suffix.removesuffix(".weight")
    for first, rows, gain in bf16_spans(d, seed, tensor.layer)[name]:
        values = _normal_rows(tensor, seed, first, rows, gain / np.sqrt(tensor.shape[1]))
        if name == "self_attn.k_proj":              # alike, see weights.py
            query = tensor._replace(name=tensor.name.replace("k_proj", "q_proj"))
            alike = _normal_rows(query, seed, first, rows, gain / np.sqrt(tensor.shape[1]))
            values = np.float32(0.8) * alike + np.float32(0.6) * values
        yield _rows(tensor, first, to_bf16(values))


def _runs(ids: list) -> Iterator[tuple]:
    """Consecutive ids as (first, count)."""
    first = previous = None
    for token in ids:
        if previous is not None and token == previous + 1:
            previous = token
            continue
        if first is not None:
            yield first, previous - first + 1
        first = previous = token
    yield first, previous - first + 1


def _vocabulary_matrix(d: Dims, tensor: Tensor, seed: int) -> Iterator[tuple]:
    is_head = "lm_head" in tensor.name
    spread = 2.0 / np.sqrt(d.hidden) if is_head else EMBEDDING_SPREAD
    for first, rows in _runs(head_ids(d, seed) if is_head else embedded_ids(d, seed)):
        yield _rows(tensor, first, to_bf16(_normal_rows(tensor, seed, first, rows, spread)))


def _router_bias(d: Dims, tensor: Tensor, seed: int) -> np.ndarray:
    rng = stream(seed, tensor.name)
    bias = rng.uniform(-0.1, 0.1, tensor.shape)
    candidates = list(layer_salt(d, seed, tensor.layer).candidates)
    lift = BIAS_LIFT + 0.3 * rng.standard_normal(len(candidates))
    bias[candidates] = np.maximum(lift, BIAS_LEAST)
    return bias.astype("<f4")


def _a_log(d: Dims, tensor: Tensor, seed: int) -> np.ndarray:
    values = np.zeros(tensor.shape, "<f4")          # the padding is zero, as in the release
    values[:d.kda_heads] = stream(seed, tensor.name).uniform(-1, 1, d.kda_heads)
    return values


def _expert_rows(d: Dims, seed: int, layer: int, expert: int, matrix: str) -> tuple:
    """First row, rows and gain; w1 and w3 share rows, for their product is taken."""
    rng = stream(seed, f"salt of layer {layer} expert {expert}")
    unit = int(rng.integers(0, d.moe_intermediate - WIDTH_ROWS + 1))
    latent = int(rng.integers(0, d.latent - LATENT_ROWS + 1))
    if matrix == "w2":
        return latent, LATENT_ROWS, 1.0 / SITU_RMS
    return unit, WIDTH_ROWS, GATE_SPREAD if matrix == "w1" else UP_SPREAD


def _expert_matrix(d: Dims, tensor: Tensor, seed: int) -> Iterator[tuple]:
    _, _, number, matrix, part = tensor.suffix.split(".")
    if int(number) not in layer_salt(d, seed, tensor.layer).candidates:
        return
    first, rows, gain = _expert_rows(d, seed, tensor.layer, int(number), matrix)
    rng, shape = stream(seed, tensor.name), (rows, tensor.shape[1])
    if part == "weight_packed":
        yield _rows(tensor, first, rng.integers(0, 256, shape, dtype=np.uint8))
        return
    live_inputs = WIDTH_ROWS if matrix == "w2" else LATENT_ROWS
    codes = base_scale_code(gain, live_inputs) + rng.choice(GROUP_OCTAVES, shape)
    yield _rows(tensor, first, codes.astype(np.uint8))


def salted_content(d: Dims, seed: int):
    style = Style(twins_at=None)

    def content(tensor: Tensor) -> Iterator[tuple]:
        name = tensor.suffix
        if name.startswith(("vision_tower.", "mm_projector.")):
            return
        if tensor.dtype == "U8":
            yield from _expert_matrix(d, tensor, seed)
        elif name.endswith("e_score_correction_bias"):
            yield 0, _router_bias(d, tensor, seed)
        elif name.endswith("A_log"):
            yield 0, _a_log(d, tensor, seed)
        elif tensor.dtype == "F32" or len(tensor.shape) == 1 or tensor.shape[0] == 1:
            yield 0, make_tensor(d, tensor, style, seed)
        elif tensor.layer is None:
            yield from _vocabulary_matrix(d, tensor, seed)
        else:
            yield from _layer_matrix(d, tensor, seed)
    return content
