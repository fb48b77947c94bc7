# SPDX-License-Identifier: Apache-2.0
"""Random weights by the gigabyte: the large tensors are random bits and one table look-up.

Values are spread as in weights.py, without the special cases that expose misreadings.
"""

import functools
import math
import statistics
from typing import Iterator

import numpy as np

from .model import ITEM_BYTES, MXFP4_GROUP, Dims, Tensor
from .streams import bulk_stream, to_bf16
from .weights import (GROUP_OCTAVES, Style, base_scale_code, expert_gain, make_tensor,
                      matrix_spread)

BULK_ELEMENTS = 1 << 20             # smaller tensors come from weights.py
CHUNK_ELEMENTS = 1 << 22
LOOKUP_ELEMENTS = 1 << 17           # at a time: numpy makes 64-bit copies of the positions


@functools.lru_cache(maxsize=1)
def _normal_quantiles() -> np.ndarray:
    quantile = statistics.NormalDist().inv_cdf
    return np.array([quantile((at + 0.5) / 65536) for at in range(65536)], np.float32)


def _random(rng: np.random.BitGenerator, elements: int, dtype: str) -> np.ndarray:
    words = rng.random_raw(-(-elements * np.dtype(dtype).itemsize // 8)).astype("<u8", copy=False)
    return words.view(dtype)[:elements]


def _bf16(rng, elements: int, table: np.ndarray) -> np.ndarray:
    positions = _random(rng, elements, "<u2")
    values = np.empty(elements, "<u2")
    for at in range(0, elements, LOOKUP_ELEMENTS):
        part = slice(at, at + LOOKUP_ELEMENTS)
        values[part] = table.take(positions[part], mode="wrap")
    return values


def _scales(d: Dims, tensor: Tensor, style: Style) -> np.ndarray:
    """A table of 256 codes: random bytes choose one of the octaves."""
    matrix = tensor.name.split(".")[-2]
    gain = expert_gain(d, matrix, tensor.layer, style)
    base = base_scale_code(gain, tensor.shape[1] * MXFP4_GROUP)
    return np.resize(base + np.array(GROUP_OCTAVES), 256).astype(np.uint8)


def _chunks(tensor: Tensor) -> Iterator[tuple]:
    elements = math.prod(tensor.shape)
    for first in range(0, elements, CHUNK_ELEMENTS):
        yield first * ITEM_BYTES[tensor.dtype], min(CHUNK_ELEMENTS, elements - first)


def _bulk(d: Dims, tensor: Tensor, style: Style, seed: int) -> Iterator[tuple]:
    rng = bulk_stream(seed, tensor.name)
    if tensor.dtype == "BF16":
        table = to_bf16(_normal_quantiles() * np.float32(matrix_spread(tensor, style)))
        for offset, elements in _chunks(tensor):
            yield offset, _bf16(rng, elements, table)
    elif tensor.name.endswith("weight_packed"):
        for offset, elements in _chunks(tensor):
            yield offset, _random(rng, elements, "u1")
    else:
        table = _scales(d, tensor, style)
        for offset, elements in _chunks(tensor):
            yield offset, table[_random(rng, elements, "u1")]


def bulk_content(d: Dims, seed: int):
    style = Style(twins_at=None)

    def content(tensor: Tensor) -> Iterator[tuple]:
        if tensor.dtype == "U8" or math.prod(tensor.shape) >= BULK_ELEMENTS:
            yield from _bulk(d, tensor, style, seed)
        else:
            yield 0, make_tensor(d, tensor, style, seed)
    return content
