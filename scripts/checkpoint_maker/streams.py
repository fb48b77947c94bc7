# SPDX-License-Identifier: Apache-2.0
"""Random streams that depend on a seed and a name alone, never on the order of use.

numpy may change what a distribution makes of a stream; it has not from 1.17 to 2.x.
"""

import hashlib

import numpy as np


def _key(seed: int, name: str) -> int:
    return int.from_bytes(hashlib.sha256(f"{seed}/{name}".encode()).digest()[:16], "little")


def stream(seed: int, name: str) -> np.random.Generator:
    return np.random.Generator(np.random.Philox(key=_key(seed, name)))


def bulk_stream(seed: int, name: str) -> np.random.BitGenerator:
    """Raw random words, several times as fast."""
    return np.random.SFC64(_key(seed, name))


def to_bf16(values: np.ndarray) -> np.ndarray:
    """The nearest bfloat16 of finite float32 values (ties to even), as uint16 bits."""
    bits = np.ascontiguousarray(values, dtype=np.float32).view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype("<u2")
