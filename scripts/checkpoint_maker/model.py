# SPDX-License-Identifier: Apache-2.0
"""What a checkpoint holds: its dimensions, and every tensor's name, dtype and shape."""

import dataclasses
import math
from typing import Iterator, NamedTuple, Optional

TEXT = "language_model.model."
LM_HEAD = "language_model.lm_head.weight"
ADDED_TOKENS = 256
MXFP4_GROUP = 32
ITEM_BYTES = {"F32": 4, "BF16": 2, "U8": 1}


class Tensor(NamedTuple):
    """One entry of a safetensors header. `layer` is None outside the layers."""

    name: str
    dtype: str
    shape: tuple
    layer: Optional[int] = None

    @property
    def bytes(self) -> int:
        return math.prod(self.shape) * ITEM_BYTES[self.dtype]

    @property
    def suffix(self) -> str:
        """The name inside its layer ("self_attn.q_proj.weight"), or the whole name."""
        return self.name if self.layer is None else self.name.split(".", 4)[4]


@dataclasses.dataclass(frozen=True)
class Vision:
    """The parts of the vision tower that shape its tensors. They are only ever skipped."""

    hidden: int
    qkv: int
    intermediate: int
    blocks: int
    patch: int
    grid: int


@dataclasses.dataclass(frozen=True)
class Dims:
    """Dimensions of the text model, in the words of config.json."""

    hidden: int
    layers: int
    ranks: int                  # lines of tiktoken.model; the vocabulary adds ADDED_TOKENS
    intermediate: int           # dense MLP of layer 0
    experts: int
    topk: int
    shared_experts: int
    latent: int
    moe_intermediate: int
    kda_heads: int
    kda_head_dim: int
    a_log: int                  # entries of A_log, more than kda_heads: the rest is padding
    mla_heads: int
    q_lora: int
    kv_lora: int
    nope: int
    rope: int
    v_head: int
    res_block: int              # attn_res_block_size
    mla_layers: tuple           # 0-based
    vision: Vision
    conv: int = 4
    routed_scale: float = 1.0

    @property
    def vocab(self) -> int:
        return self.ranks + ADDED_TOKENS

    @property
    def kda_width(self) -> int:
        return self.kda_heads * self.kda_head_dim

    @property
    def shared_width(self) -> int:
        return self.shared_experts * self.moe_intermediate

    def is_mla(self, layer: int) -> bool:
        return layer in self.mla_layers


def _kda_tensors(d: Dims) -> Iterator[tuple]:
    for name in ("q_proj", "k_proj", "v_proj", "g_proj"):
        yield f"{name}.weight", "BF16", (d.kda_width, d.hidden)
    yield "o_proj.weight", "BF16", (d.hidden, d.kda_width)
    for name in ("q_conv1d", "k_conv1d", "v_conv1d"):
        yield f"{name}.weight", "F32", (d.kda_width, 1, d.conv)
    yield "f_a_proj.weight", "BF16", (d.kda_head_dim, d.hidden)
    yield "f_b_proj.weight", "BF16", (d.kda_width, d.kda_head_dim)
    yield "b_proj.weight", "BF16", (d.kda_heads, d.hidden)
    yield "A_log", "F32", (d.a_log,)
    yield "dt_bias", "F32", (d.kda_width,)
    yield "o_norm.weight", "F32", (d.kda_head_dim,)


def _mla_tensors(d: Dims) -> Iterator[tuple]:
    yield "q_a_proj.weight", "BF16", (d.q_lora, d.hidden)
    yield "q_a_layernorm.weight", "BF16", (d.q_lora,)
    yield "q_b_proj.weight", "BF16", (d.mla_heads * (d.nope + d.rope), d.q_lora)
    yield "kv_a_proj_with_mqa.weight", "BF16", (d.kv_lora + d.rope, d.hidden)
    yield "kv_a_layernorm.weight", "BF16", (d.kv_lora,)
    yield "kv_b_proj.weight", "BF16", (d.mla_heads * (d.nope + d.v_head), d.kv_lora)
    yield "g_proj.weight", "BF16", (d.mla_heads * d.v_head, d.hidden)
    yield "o_proj.weight", "BF16", (d.hidden, d.mla_heads * d.v_head)


def _mlp_tensors(width: int, hidden: int) -> Iterator[tuple]:
    yield "gate_proj.weight", "BF16", (width, hidden)
    yield "up_proj.weight", "BF16", (width, hidden)
    yield "down_proj.weight", "BF16", (hidden, width)


def _mxfp4_tensors(name: str, rows: int, cols: int) -> Iterator[tuple]:
    yield f"{name}.weight_packed", "U8", (rows, cols // 2)
    yield f"{name}.weight_scale", "U8", (rows, cols // MXFP4_GROUP)


def _moe_tensors(d: Dims) -> Iterator[tuple]:
    yield "gate.weight", "BF16", (d.experts, d.hidden)
    yield "gate.e_score_correction_bias", "F32", (d.experts,)
    yield "routed_expert_down_proj.weight", "BF16", (d.latent, d.hidden)
    yield "routed_expert_up_proj.weight", "BF16", (d.hidden, d.latent)
    yield "routed_expert_norm.weight", "BF16", (d.latent,)
    for name, dtype, shape in _mlp_tensors(d.shared_width, d.hidden):
        yield f"shared_experts.{name}", dtype, shape
    for expert in range(d.experts):
        yield from _mxfp4_tensors(f"experts.{expert}.w1", d.moe_intermediate, d.latent)
        yield from _mxfp4_tensors(f"experts.{expert}.w3", d.moe_intermediate, d.latent)
        yield from _mxfp4_tensors(f"experts.{expert}.w2", d.latent, d.moe_intermediate)


def _layer_parts(d: Dims, layer: int) -> Iterator[tuple]:
    for name in ("input_layernorm", "post_attention_layernorm",
                 "self_attention_res_norm", "mlp_res_norm"):
        yield f"{name}.weight", "BF16", (d.hidden,)
    for name in ("self_attention_res_proj", "mlp_res_proj"):
        yield f"{name}.weight", "BF16", (1, d.hidden)
    mixer = _mla_tensors(d) if d.is_mla(layer) else _kda_tensors(d)
    mlp = _mlp_tensors(d.intermediate, d.hidden) if layer == 0 else _moe_tensors(d)
    mlp_name = "mlp" if layer == 0 else "block_sparse_moe"
    yield from ((f"self_attn.{name}", dtype, shape) for name, dtype, shape in mixer)
    yield from ((f"{mlp_name}.{name}", dtype, shape) for name, dtype, shape in mlp)


def layer_tensors(d: Dims, layer: int) -> list:
    prefix = f"{TEXT}layers.{layer}."
    return [Tensor(prefix + name, dtype, shape, layer)
            for name, dtype, shape in _layer_parts(d, layer)]


def top_tensors(d: Dims) -> list:
    return [Tensor(f"{TEXT}embed_tokens.weight", "BF16", (d.vocab, d.hidden)),
            Tensor(LM_HEAD, "BF16", (d.vocab, d.hidden)),
            Tensor(f"{TEXT}norm.weight", "BF16", (d.hidden,)),
            Tensor(f"{TEXT}output_attn_res_norm.weight", "BF16", (d.hidden,)),
            Tensor(f"{TEXT}output_attn_res_proj.weight", "BF16", (1, d.hidden))]


def projector_tensors(d: Dims) -> list:
    merged = d.vision.hidden * 4            # 2x2 patches become one
    return [Tensor("mm_projector.proj.0.weight", "BF16", (merged, merged)),
            Tensor("mm_projector.proj.2.weight", "BF16", (d.hidden, merged)),
            Tensor("mm_projector.post_norm.weight", "BF16", (d.hidden,))]


def vision_tensors(d: Dims) -> list:
    v = d.vision
    parts = [("patch_embed.proj", (v.hidden, 3, v.patch, v.patch)),
             ("patch_embed.pos_emb", (v.grid, v.grid, v.hidden)),
             ("encoder.final_layernorm", (v.hidden,))]
    for block in range(v.blocks):
        at = f"encoder.blocks.{block}."
        parts += [(at + "norm0", (v.hidden,)), (at + "norm1", (v.hidden,)),
                  (at + "wqkv", (3 * v.qkv, v.hidden)), (at + "wo", (v.hidden, v.qkv)),
                  (at + "mlp.fc0", (v.intermediate, v.hidden)),
                  (at + "mlp.fc1", (v.hidden, v.intermediate))]
    return [Tensor(f"vision_tower.{name}.weight", "BF16", shape) for name, shape in parts]
