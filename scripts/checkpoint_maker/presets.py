# SPDX-License-Identifier: Apache-2.0
"""The presets: dimensions and what their weights hold."""

import dataclasses
from typing import Callable, NamedTuple

from .bulk import bulk_content
from .model import ADDED_TOKENS, Dims, Vision
from .salt import salted_content
from .weights import Style, dense_content


class Preset(NamedTuple):
    dims: Dims
    content: Callable           # seed -> (tensor -> iterator of (byte offset, array))
    layout: str                 # the default
    wants_vision: bool = True


def mla_layers(layers: int) -> tuple:
    """The release's rule: every fourth layer, and the last."""
    return tuple(layer for layer in range(layers) if layer % 4 == 3 or layer == layers - 1)


SMALL_VISION = Vision(hidden=6, qkv=10, intermediate=14, blocks=2, patch=2, grid=4)

# No two dimensions equal; none a multiple of 16 but the MXFP4 widths and their multiples.
TINY = Dims(
    hidden=83, layers=11, ranks=597, intermediate=149, experts=14, topk=5, shared_experts=2,
    latent=64, moe_intermediate=96, kda_heads=6, kda_head_dim=13, a_log=8, mla_heads=10,
    q_lora=37, kv_lora=23, nope=12, rope=7, v_head=9, res_block=3, mla_layers=(3, 7, 9, 10),
    vision=SMALL_VISION, routed_scale=2.5)

# Some dimensions fill tiles of 16 rows and 128 columns, some do not.
MID = Dims(
    hidden=512, layers=17, ranks=2000, intermediate=1100, experts=24, topk=7, shared_experts=2,
    latent=256, moe_intermediate=160, kda_heads=6, kda_head_dim=64, a_log=16, mla_heads=7,
    q_lora=200, kv_lora=128, nope=48, rope=24, v_head=40, res_block=5,
    mla_layers=(3, 7, 11, 15, 16), vision=SMALL_VISION)

DEEP = Dims(
    hidden=96, layers=93, ranks=456, intermediate=200, experts=16, topk=5, shared_experts=2,
    latent=64, moe_intermediate=32, kda_heads=4, kda_head_dim=20, a_log=6, mla_heads=5,
    q_lora=40, kv_lora=24, nope=12, rope=6, v_head=14, res_block=12, mla_layers=mla_layers(93),
    vision=SMALL_VISION)

FUZZ = Dims(
    hidden=8, layers=3, ranks=272, intermediate=12, experts=3, topk=2, shared_experts=1,
    latent=32, moe_intermediate=32, kda_heads=2, kda_head_dim=4, a_log=3, mla_heads=2, q_lora=6,
    kv_lora=5, nope=4, rope=2, v_head=3, res_block=2, mla_layers=(2,),
    vision=Vision(hidden=2, qkv=2, intermediate=2, blocks=1, patch=1, grid=1))

RELEASED = Dims(
    hidden=7168, layers=93, ranks=163584, intermediate=33792, experts=896, topk=16,
    shared_experts=2, latent=3584, moe_intermediate=3072, kda_heads=96, kda_head_dim=128,
    a_log=128, mla_heads=96, q_lora=1536, kv_lora=512, nope=128, rope=64, v_head=128,
    res_block=12, mla_layers=mla_layers(93),
    vision=Vision(hidden=1024, qkv=1536, intermediate=4096, blocks=27, patch=14, grid=64))


def _dense(dims: Dims, style: Style) -> Callable:
    return lambda seed: dense_content(dims, style, seed)


def _wide(layers: int, experts: int, vocab: int) -> Preset:
    dims = dataclasses.replace(RELEASED, layers=layers, experts=experts,
                               topk=min(RELEASED.topk, experts), ranks=vocab - ADDED_TOKENS,
                               mla_layers=mla_layers(layers))
    return Preset(dims, lambda seed: bulk_content(dims, seed), "released", False)


NAMES = ("tiny", "mid", "deep", "fuzz", "wide", "sparse-full")


def make_preset(name: str, layers: int, experts: int, vocab: int) -> Preset:
    """`layers`, `experts` and `vocab` are used by "wide" alone."""
    if name == "tiny":
        return Preset(TINY, _dense(TINY, Style(faint_expert_layer=5)), "released")
    if name == "mid":
        return Preset(MID, _dense(MID, Style(faint_expert_layer=9)), "released")
    if name == "deep":
        style = Style(contested_every=8, contested_at=1, twins_every=24, faint_expert_layer=20)
        return Preset(DEEP, _dense(DEEP, style), "released")
    if name == "fuzz":
        return Preset(FUZZ, _dense(FUZZ, Style(twins_at=None)), "single")
    if name == "wide":
        return _wide(layers, experts, vocab)
    assert name == "sparse-full"
    return Preset(RELEASED, lambda seed: salted_content(RELEASED, seed), "released")
