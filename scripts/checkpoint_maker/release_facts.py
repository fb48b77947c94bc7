# SPDX-License-Identifier: Apache-2.0
"""Sizes of the released checkpoint, which full-scale shards must reproduce to the byte."""

from .model import Dims
from .shards import Shard, encode_header

# (file bytes, header bytes without the length prefix)
DENSE_KDA = (2_341_216_112, 2_920)
KDA_LOW, KDA_HIGH = (16_990_911_504, 818_696), (16_990_916_912, 824_104)    # layers to 9, from 10
MLA_LOW, MLA_HIGH = (16_567_501_776, 817_608), (16_567_507_176, 823_008)
AFTER_LAYERS = [(4_697_664_072, 576), (92_289_328, 296), (802_448_352, 19_416)]

TENSORS = 497_220
DATA_BYTES = 1_560_860_324_864
FILE_BYTES = 1_560_936_091_448


def _layer_sizes(d: Dims, layer: int) -> tuple:
    if layer == 0:
        return DENSE_KDA
    if d.is_mla(layer):
        return MLA_LOW if layer < 10 else MLA_HIGH
    return KDA_LOW if layer < 10 else KDA_HIGH


def _shard_sizes(shard: Shard) -> tuple:
    header_bytes = len(encode_header(shard))
    return header_bytes + shard.data_bytes, header_bytes - 8


def check_released_sizes(d: Dims, shards: list) -> None:
    """Raise ValueError unless each shard, vision included, has the size of the released one."""
    expected = [_layer_sizes(d, layer) for layer in range(d.layers)] + AFTER_LAYERS
    found = [_shard_sizes(shard) for shard in shards]
    for shard, have, want in zip(shards, found, expected):
        if have != want:
            raise ValueError(f"{shard.name}: file and header have {have} bytes, not {want}")
    totals = (sum(len(shard.tensors) for shard in shards),
              sum(shard.data_bytes for shard in shards), sum(size for size, _ in found))
    if totals != (TENSORS, DATA_BYTES, FILE_BYTES):
        raise ValueError(f"tensors, data bytes and file bytes are {totals}")
