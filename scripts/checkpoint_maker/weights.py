# SPDX-License-Identifier: Apache-2.0
"""Random weights for the small presets, chosen so that a misread checkpoint shows.

Signals keep a size near 1 from layer to layer and the logits stay in single digits. On top of
that some weights are placed where a likely mistake would otherwise be invisible:

  A_log            entries past the heads are NaN, infinite or huge
  faint KDA heads  every third head has queries and keys with a sum of squares near the 1e-6 of
                   the l2 norm, and values near the eps of o_norm
  faint MLA layers every other MLA layer has latents with a mean square near 1e-5, where the eps
                   of the two LoRA norms matters
  faint experts    one MoE layer has an expert sum with a mean square near rms_norm_eps, so that
                   a common factor of the routing weights does not cancel
  twin experts     in some layers router rows and biases come in identical pairs; top-k is odd,
                   so that a pair always straddles the boundary and only the tie rule decides
  queries, keys    alike enough that q.k is far from 0, where o_norm would magnify rounding
  MLP inputs       gates reach past the cap of tanh (beta 4), ups are a fair part of 25
  MXFP4            neighbouring groups differ in scale by up to 8; some groups are all zeros of
                   both signs under scale code 0
"""

import dataclasses
from typing import Iterator, Optional

import numpy as np

from .model import MXFP4_GROUP, Dims, Tensor
from .streams import stream, to_bf16

GATE_SPREAD, UP_SPREAD = 3.0, 6.0
SITU_RMS = 8.0                      # rms of situ(g, u) for g, u normal with those spreads
FP4_RMS = 2.93                      # rms of the 16 FP4 values
GROUP_OCTAVES = (-2, -1, 0, 1)      # scale of a group relative to the matrix's
SCALE_BIAS = 127


@dataclasses.dataclass(frozen=True)
class Style:
    """Choices that differ between presets."""

    contested_every: int = 1            # layers whose router lets the scores decide
    contested_at: int = 0
    twins_every: int = 5                # layers with twin experts
    twins_at: Optional[int] = 2         # None: nowhere
    faint_expert_layer: Optional[int] = None
    branch_gain: float = 0.1            # of what a mixer or an MLP adds to the stream
    head_scale_spread: float = 0.4      # of the lm_head rows: a spread makes clear winners


# What a matrix does to the rms of its input.
GAINS = {
    "self_attn.q_proj": 1.5,
    "self_attn.k_proj": 1.5,
    "self_attn.v_proj": 1.5,
    "self_attn.f_a_proj": 1.0,
    "self_attn.f_b_proj": 1.5,
    "self_attn.b_proj": 1.5,
    "self_attn.q_a_proj": 1.0,
    "self_attn.q_b_proj": 1.5,
    "self_attn.kv_a_proj_with_mqa": 1.0,
    "self_attn.kv_b_proj": 1.2,
    "self_attn.g_proj": 1.5,
    "self_attention_res_proj": 1.5,
    "mlp_res_proj": 1.5,
    "language_model.model.output_attn_res_proj": 1.5,
    "mlp.gate_proj": GATE_SPREAD,
    "mlp.up_proj": UP_SPREAD,
    "block_sparse_moe.gate": 1.5,
    "block_sparse_moe.routed_expert_down_proj": 1.0,
    "block_sparse_moe.shared_experts.gate_proj": GATE_SPREAD,
    "block_sparse_moe.shared_experts.up_proj": UP_SPREAD,
    "language_model.lm_head": 2.0,
}

# Times style.branch_gain. Mixers hand over about 0.5, so they get more.
BRANCH_GAINS = {
    "self_attn.o_proj": 2.0,
    "mlp.down_proj": 1.0 / SITU_RMS,
    "block_sparse_moe.shared_experts.down_proj": 1.0 / SITU_RMS,
    "block_sparse_moe.routed_expert_up_proj": 1.0,
}


def matrix_spread(tensor: Tensor, style: Style) -> float:
    """Standard deviation of a BF16 matrix."""
    name = tensor.suffix.removesuffix(".weight")
    if name.endswith("embed_tokens"):
        return 1.0
    if name.startswith(("vision_tower.", "mm_projector.")):
        return 0.02
    gain = GAINS[name] if name in GAINS else BRANCH_GAINS[name] * style.branch_gain
    return gain / np.sqrt(tensor.shape[1])


def _router_kind(style: Style, layer: int) -> str:
    if layer % style.twins_every == style.twins_at:
        return "twins"
    contested = layer % style.contested_every == style.contested_at
    return "contested" if contested else "decided"


def _normal(rng, shape, spread: float) -> np.ndarray:
    return rng.standard_normal(shape, dtype=np.float32) * np.float32(spread)


def _norm_gain(rng, shape) -> np.ndarray:
    return np.maximum(1 + _normal(rng, shape, 0.2), np.float32(0.2))


def _faint_head(head: int) -> bool:
    return head % 3 == 1


def _head_rows(d: Dims, weights: np.ndarray, faint_gain: float) -> np.ndarray:
    """Scale down the rows of the faint heads."""
    heads = weights.reshape(d.kda_heads, d.kda_head_dim, -1)
    for head in range(d.kda_heads):
        if _faint_head(head):
            heads[head] *= np.float32(faint_gain)
    return weights


def _akin(tensor: Tensor, rng, seed: int) -> np.ndarray:
    """Normal values that the query's and the key's tensor of a layer have mostly in common.

    Then q.k of a token is clearly positive. Were it near 0, o_norm would blow up rounding errors.
    """
    common = stream(seed, f"q and k {tensor.layer} {tensor.shape}")
    return 0.9 * _normal(common, tensor.shape, 1.0) + 0.44 * _normal(rng, tensor.shape, 1.0)


def _kda_query_or_key(d: Dims, tensor: Tensor, rng, spread: float, seed: int) -> np.ndarray:
    square_sum = 4e-6
    channel_rms = 2 * np.sqrt(square_sum / d.kda_head_dim)      # silu(x) is x/2 near 0
    gain = spread * np.sqrt(d.hidden)
    return _head_rows(d, _akin(tensor, rng, seed) * np.float32(spread), channel_rms / gain)


def _a_log(d: Dims, tensor: Tensor, rng) -> np.ndarray:
    values = rng.uniform(-1, 1, tensor.shape).astype(np.float32)
    poison = np.array([np.nan, 3e38, -np.inf, np.inf, -3e38], np.float32)
    values[d.kda_heads:] = np.resize(poison, d.a_log - d.kda_heads)
    return values


def _is_faint_mla(d: Dims, tensor: Tensor) -> bool:
    return d.mla_layers.index(tensor.layer) % 2 == 0


def _mla_latent(d: Dims, tensor: Tensor, weights: np.ndarray, rows: int) -> np.ndarray:
    if _is_faint_mla(d, tensor):
        weights[:rows] *= np.float32(2.5e-3)
    return weights


def _twin_pairs(d: Dims, seed: int, layer: int) -> np.ndarray:
    assert d.experts % 2 == 0 and d.topk % 2 == 1
    return stream(seed, f"twins {layer}").permutation(d.experts).reshape(-1, 2)


def _router(d: Dims, tensor: Tensor, weights: np.ndarray, style: Style, seed: int) -> np.ndarray:
    if _router_kind(style, tensor.layer) == "twins":
        pairs = _twin_pairs(d, seed, tensor.layer)
        weights[pairs[:, 1]] = weights[pairs[:, 0]]
    return weights


def _router_bias(d: Dims, tensor: Tensor, rng, style: Style, seed: int) -> np.ndarray:
    bias = _normal(rng, tensor.shape, 0.3)
    kind = _router_kind(style, tensor.layer)
    if kind == "twins":
        pairs = _twin_pairs(d, seed, tensor.layer)
        bias[pairs[:, 1]] = bias[pairs[:, 0]]
    elif kind == "decided":
        bias = rng.uniform(-0.1, 0.1, tensor.shape).astype(np.float32)
        bias[rng.permutation(d.experts)[:d.topk]] += np.float32(1.3)
    return bias


def _f32(d: Dims, tensor: Tensor, rng, style: Style, seed: int) -> np.ndarray:
    name = tensor.suffix
    if name.endswith("A_log"):
        return _a_log(d, tensor, rng)
    if name.endswith("dt_bias"):
        return rng.uniform(-5, 1, tensor.shape).astype(np.float32)
    if name.endswith("v_conv1d.weight"):
        return _normal(rng, tensor.shape, 0.5)
    if name.endswith("conv1d.weight"):
        return _akin(tensor, rng, seed) * np.float32(0.5)
    if name.endswith("e_score_correction_bias"):
        return _router_bias(d, tensor, rng, style, seed)
    return _norm_gain(rng, tensor.shape)                        # o_norm


def _bf16(d: Dims, tensor: Tensor, rng, style: Style, seed: int) -> np.ndarray:
    if len(tensor.shape) == 1:
        return _norm_gain(rng, tensor.shape)
    name, spread = tensor.suffix.removesuffix(".weight"), matrix_spread(tensor, style)
    if name in ("self_attn.q_proj", "self_attn.k_proj"):
        return _kda_query_or_key(d, tensor, rng, spread, seed)
    weights = _normal(rng, tensor.shape, spread)
    if name == "self_attn.v_proj":
        return _head_rows(d, weights, 0.02)
    if name == "self_attn.q_a_proj":
        return _mla_latent(d, tensor, weights, d.q_lora)
    if name == "self_attn.kv_a_proj_with_mqa":
        return _mla_latent(d, tensor, weights, d.kv_lora)       # the shared key is not normed
    if name == "block_sparse_moe.gate":
        return _router(d, tensor, weights, style, seed)
    if name == "language_model.lm_head":
        weights *= np.exp(_normal(rng, (tensor.shape[0], 1), style.head_scale_spread))
    return weights


def expert_gain(d: Dims, matrix: str, layer: int, style: Style) -> float:
    if matrix in ("w1", "w3"):
        return GATE_SPREAD if matrix == "w1" else UP_SPREAD
    sum_rms = 2.5e-3 if layer == style.faint_expert_layer else 0.5
    return sum_rms * np.sqrt(d.topk) / SITU_RMS


def base_scale_code(gain: float, cols: int) -> int:
    """The E8M0 code that gives a matrix of random nibbles about this gain."""
    return SCALE_BIAS + round(np.log2(gain / np.sqrt(cols) / FP4_RMS))


def mxfp4_zero_groups(seed: int, matrix: str, groups: tuple) -> np.ndarray:
    """Which groups of a matrix are zero, by the matrix's name: one in 64."""
    return stream(seed, f"zero groups {matrix}").integers(0, 64, groups) == 0


def _packed(tensor: Tensor, rng, seed: int) -> np.ndarray:
    rows, row_bytes = tensor.shape
    group_bytes = MXFP4_GROUP // 2
    packed = rng.integers(0, 256, (rows, row_bytes // group_bytes, group_bytes), dtype=np.uint8)
    matrix = tensor.name.removesuffix(".weight_packed")
    packed[mxfp4_zero_groups(seed, matrix, packed.shape[:2])] &= 0x88
    return packed


def _scales(d: Dims, tensor: Tensor, rng, style: Style, seed: int) -> np.ndarray:
    matrix = tensor.name.removesuffix(".weight_scale")
    gain = expert_gain(d, matrix.rsplit(".", 1)[1], tensor.layer, style)
    codes = (base_scale_code(gain, tensor.shape[1] * MXFP4_GROUP)
             + rng.choice(GROUP_OCTAVES, tensor.shape)).astype(np.uint8)
    codes[mxfp4_zero_groups(seed, matrix, tensor.shape)] = 0
    return codes


def make_tensor(d: Dims, tensor: Tensor, style: Style, seed: int) -> np.ndarray:
    """All elements of a tensor, as the bytes on disk want them."""
    rng = stream(seed, tensor.name)
    if tensor.dtype == "F32":
        return _f32(d, tensor, rng, style, seed).astype("<f4")
    if tensor.dtype == "BF16":
        return to_bf16(_bf16(d, tensor, rng, style, seed))
    if tensor.name.endswith("weight_packed"):
        return _packed(tensor, rng, seed)
    return _scales(d, tensor, rng, style, seed)


def dense_content(d: Dims, style: Style, seed: int):
    def content(tensor: Tensor) -> Iterator[tuple]:
        yield 0, make_tensor(d, tensor, style, seed)
    return content
