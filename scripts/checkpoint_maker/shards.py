# SPDX-License-Identifier: Apache-2.0
"""How tensors are spread over safetensors files, and the writing of those files."""

import json
import os
import pathlib
from typing import Callable, Iterable, NamedTuple, Optional

from . import model
from .model import Dims, Tensor
from .streams import stream

DTYPE_ORDER = {"F32": 0, "BF16": 1, "U8": 2}
INDEX_NAME = "model.safetensors.index.json"


class Shard(NamedTuple):
    name: str
    tensors: list                       # in the order of their data
    header_order: list                  # in the order of their header entries
    metadata: Optional[dict] = None

    @property
    def data_bytes(self) -> int:
        return sum(tensor.bytes for tensor in self.tensors)


def released_order(tensors: Iterable[Tensor]) -> list:
    return sorted(tensors, key=lambda tensor: (DTYPE_ORDER[tensor.dtype], tensor.name))


def _numbered(groups: list, metadata: Optional[dict] = None) -> list:
    return [Shard(f"model-{number:05d}-of-{len(groups):06d}.safetensors", tensors, tensors,
                  metadata)
            for number, tensors in enumerate(groups, 1)]


def _groups(d: Dims, with_vision: bool) -> list:
    """The tensors of each released shard: layers, top level, projector, vision tower."""
    groups = [model.layer_tensors(d, layer) for layer in range(d.layers)]
    groups.append(model.top_tensors(d))
    if with_vision:
        groups += [model.projector_tensors(d), model.vision_tensors(d)]
    return [released_order(group) for group in groups]


def _cut(layer_group: list) -> list:
    """Cut one layer in two, inside an expert: on odd layers between its w1 and its w2, on even
    layers between the nibbles and the scales of its w2. A dense layer is cut in the middle."""
    layer = layer_group[0].layer
    last_kept = "w1.weight_scale" if layer % 2 else "w2.weight_packed"
    ends = [at + 1 for at, tensor in enumerate(layer_group) if tensor.name.endswith(last_kept)]
    end = ends[len(ends) // 2] if ends else len(layer_group) // 2
    return [layer_group[:end], layer_group[end:]]


def released_layout(d: Dims, with_vision: bool, _seed: int) -> list:
    return _numbered(_groups(d, with_vision))


def single_layout(d: Dims, with_vision: bool, _seed: int) -> list:
    tensors = released_order(sum(_groups(d, with_vision), []))
    return [Shard("model.safetensors", tensors, tensors)]


def split_layout(d: Dims, with_vision: bool, _seed: int) -> list:
    halves = []
    for group in _groups(d, with_vision):
        halves += _cut(group) if group[0].layer is not None else [group]
    return _numbered(halves)


def shuffled_layout(d: Dims, with_vision: bool, seed: int) -> list:
    """Any tensor in any shard, data in random order, header entries in another random order."""
    tensors = sum(_groups(d, with_vision), [])
    rng = stream(seed, "layout shuffled")
    shard_count = max(2, d.layers // 2)
    homes = rng.integers(0, shard_count, len(tensors))
    shards = []
    for number in range(shard_count):
        mine = [tensor for tensor, home in zip(tensors, homes) if home == number]
        name = f"model-{number + 1:05d}-of-{shard_count:06d}.safetensors"
        orders = [[mine[at] for at in rng.permutation(len(mine))] for _ in range(2)]
        shards.append(Shard(name, *orders, {"format": "pt"}))
    return shards


LAYOUTS = {"released": released_layout, "single": single_layout, "split": split_layout,
           "shuffled": shuffled_layout}


def encode_header(shard: Shard) -> bytes:
    """The length prefix and the JSON, padded with spaces to a multiple of 8."""
    entries, at = {}, 0
    for tensor in shard.tensors:
        shape = ",".join(map(str, tensor.shape))
        entries[tensor.name] = (f'"{tensor.name}":{{"dtype":"{tensor.dtype}","shape":[{shape}],'
                                f'"data_offsets":[{at},{at + tensor.bytes}]}}')
        at += tensor.bytes
    parts = [entries[tensor.name] for tensor in shard.header_order]
    if shard.metadata is not None:
        parts.insert(0, '"__metadata__":' + json.dumps(shard.metadata, separators=(",", ":")))
    text = ("{" + ",".join(parts) + "}").encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text


def _write_all(fd: int, data, file_offset: int) -> None:
    view = memoryview(data).cast("B")
    while view:
        written = os.pwrite(fd, view, file_offset)
        view, file_offset = view[written:], file_offset + written


def write_shard(directory: pathlib.Path, shard: Shard, content: Callable) -> tuple:
    """Write one file; what `content` leaves out stays a hole. Returns (file bytes, real bytes)."""
    header = encode_header(shard)
    file_bytes = len(header) + shard.data_bytes
    fd = os.open(directory / shard.name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
    try:
        os.ftruncate(fd, file_bytes)
        _write_all(fd, header, 0)
        at, real_bytes = len(header), 0
        for tensor in shard.tensors:
            for offset, data in content(tensor):
                assert 0 <= offset and offset + data.nbytes <= tensor.bytes, tensor.name
                _write_all(fd, data, at + offset)
                real_bytes += data.nbytes
            at += tensor.bytes
    finally:
        os.close(fd)
    return file_bytes, real_bytes


def index_json(shards: list) -> str:
    weight_map = {tensor.name: shard.name for shard in shards for tensor in shard.tensors}
    index = {"metadata": {"total_size": sum(shard.data_bytes for shard in shards)},
             "weight_map": dict(sorted(weight_map.items()))}
    return json.dumps(index, indent=2)
