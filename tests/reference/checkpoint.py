# SPDX-License-Identifier: Apache-2.0
"""Read a Kimi K3 checkpoint folder: config.json and any number of safetensors shards.

Tensors are found by name, in whatever shard they are, and read when they are used.  All values
come out as float64; widening BF16, F32 and MXFP4 is exact.

A checkpoint may have the released dimensions (1.56 TB) and consist almost entirely of holes.
Matrix therefore asks the file system where there is data (SEEK_DATA, SEEK_HOLE), reads only rows
that contain some, and keeps only their columns that are not zero.  Rows and columns left out are
zero, so products are those of the whole matrix.
"""

import errno
import json
import math
import os
import struct

import numpy as np

from faults import check_fault

ITEM_BYTES = {"BF16": 2, "F32": 4, "U8": 1}
HEADER_BYTES_MAX = 64 << 20
PANEL_VALUES_MAX = 4 << 20            # values decoded at a time: 32 MiB of float64
KEPT_BYTES_MAX = 6 << 30              # decoded panels kept for the next use
SKIPPED_PREFIXES = ("vision_tower.", "mm_projector.")

# MXFP4 (OCP Microscaling v1.0, E2M1 elements): bit 3 is the sign.
FP4 = np.array([0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0,
                -0.0, -0.5, -1.0, -1.5, -2.0, -3.0, -4.0, -6.0])
MXFP4_GROUP = 32


class CheckpointError(Exception):
    """The folder is not a checkpoint this reader accepts."""


# ---- value formats ------------------------------------------------------------------------------

def decode_bf16(raw):
    """BF16 bits as u16, any shape -> float64: the upper half of a float32."""
    return (raw.astype(np.uint32) << np.uint32(16)).view(np.float32).astype(np.float64)


def decode_mxfp4(packed, scales, fault=None):
    """packed u8 [R, C/2], scales u8 [R, C/32] -> float64 [R, C].

    value[r][c] = FP4[nibble] * 2^(scale - 127); byte k of a row holds column 2k in its LOW nibble
    and column 2k+1 in its high one; scale g covers columns 32g..32g+31.  Scale codes 253..255 are
    refused, and code 0 unless every nibble of its group is 0 or 8 (plus or minus zero).
    """
    row_count, packed_columns = packed.shape
    columns = 2 * packed_columns
    if columns % MXFP4_GROUP or scales.shape != (row_count, columns // MXFP4_GROUP):
        raise CheckpointError(f"MXFP4: {packed.shape} packed does not fit {scales.shape} scales")
    if (scales >= 253).any():
        raise CheckpointError("MXFP4: scale code 253, 254 or 255")
    if (scales == 0).any():
        nonzero = ((packed & 0x77) != 0).reshape(row_count, -1, MXFP4_GROUP // 2).any(axis=2)
        if (nonzero & (scales == 0)).any():
            raise CheckpointError("MXFP4: scale code 0 on a group that is not zero")

    low, high = packed & 0x0F, packed >> 4
    if fault == "nibble-order":
        low, high = high, low
    if fault == "scale-index":
        scales = np.roll(scales, -1, axis=1 if scales.shape[1] > 1 else 0)
    nibbles = np.stack([low, high], axis=2).reshape(row_count, -1, MXFP4_GROUP)
    exponents = scales.astype(np.int32) - 127
    return np.ldexp(FP4[nibbles], exponents[:, :, None]).reshape(row_count, columns)


# ---- shards and tensors -------------------------------------------------------------------------

class Tensor:
    """One tensor of a shard: where its bytes are, and how to read them."""

    __slots__ = ("fd", "dtype", "shape", "offset", "byte_count")

    def __init__(self, fd, dtype, shape, offset, byte_count):
        self.fd = fd                  # of the shard
        self.dtype = dtype            # "BF16", "F32" or "U8"
        self.shape = shape            # tuple
        self.offset = offset          # in the file
        self.byte_count = byte_count

    def row_bytes(self):
        """Bytes of one index of the first axis."""
        return math.prod(self.shape[1:]) * ITEM_BYTES[self.dtype]

    def read_rows(self, first, end):
        """Rows [first, end) as they are stored: u16 for BF16, float32 or u8, [end-first, ...]."""
        want = (end - first) * self.row_bytes()
        at = self.offset + first * self.row_bytes()
        pieces = []
        while want:
            piece = os.pread(self.fd, min(want, 1 << 30), at)
            if not piece:
                raise CheckpointError(f"file ends at offset {at}, inside a tensor")
            pieces.append(piece)
            at += len(piece)
            want -= len(piece)
        stored = {"BF16": "<u2", "F32": "<f4", "U8": "u1"}[self.dtype]
        return np.frombuffer(b"".join(pieces), dtype=stored).reshape(end - first, *self.shape[1:])

    def read_values(self, first, end):
        """Rows [first, end) as float64; for BF16 and F32."""
        raw = self.read_rows(first, end)
        if self.dtype == "U8":
            raise CheckpointError("a U8 tensor has no values without its scales")
        return decode_bf16(raw) if self.dtype == "BF16" else raw.astype(np.float64)

    def data_ranges(self):
        """Byte ranges (begin, end) within the tensor that the file system holds data for."""
        at, end = self.offset, self.offset + self.byte_count
        ranges = []
        while at < end:
            try:
                begin = os.lseek(self.fd, at, os.SEEK_DATA)
            except OSError as failure:
                if failure.errno == errno.ENXIO:      # nothing but a hole up to the end of file
                    break
                raise
            if begin >= end:
                break
            at = os.lseek(self.fd, begin, os.SEEK_HOLE)
            ranges.append((begin - self.offset, min(at, end) - self.offset))
        return ranges


def _no_duplicates(pairs):
    members = dict(pairs)
    if len(members) != len(pairs):
        raise CheckpointError("a JSON object has the same name twice")
    return members


def read_shard_header(path, fd, shapes):
    """Yield (name, Tensor) of a shard: u64 length H, H bytes of JSON, then the data section.

    shapes is a dict that lets equal shapes share one tuple: there are half a million of them.
    """
    file_bytes = os.fstat(fd).st_size
    prefix = os.pread(fd, 8, 0)
    if len(prefix) < 8:
        raise CheckpointError(f"'{path}' is shorter than 8 bytes")
    (header_bytes,) = struct.unpack("<Q", prefix)
    if header_bytes > min(file_bytes - 8, HEADER_BYTES_MAX):
        raise CheckpointError(f"'{path}': a header of {header_bytes} bytes does not fit")
    header = json.loads(os.pread(fd, header_bytes, 8), object_pairs_hook=_no_duplicates)
    data_start = 8 + header_bytes
    occupied = []
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        begin, end = entry["data_offsets"]
        occupied.append((begin, end, name))
        if name.startswith(SKIPPED_PREFIXES):
            continue
        shape = tuple(entry["shape"])
        shape = shapes.setdefault(shape, shape)
        dtype = next((known for known in ITEM_BYTES if known == entry["dtype"]), None)
        if dtype is None:
            raise CheckpointError(f"'{name}' has dtype {entry['dtype']}")
        if end - begin != math.prod(shape) * ITEM_BYTES[dtype]:
            raise CheckpointError(f"'{name}': {end - begin} bytes for {dtype} {list(shape)}")
        yield name, Tensor(fd, dtype, shape, data_start + begin, end - begin)
    occupied.sort()
    reached = 0
    for begin, end, name in occupied:
        if begin < reached or end < begin or data_start + end > file_bytes:
            raise CheckpointError(f"'{path}': '{name}' overlaps a tensor or leaves the file")
        reached = end


# ---- matrices -----------------------------------------------------------------------------------

class Panel:
    """Some rows of a matrix, with the columns in which any of them may be nonzero."""

    __slots__ = ("rows", "columns", "values")

    def __init__(self, rows, columns, values):
        self.rows = rows              # index array
        self.columns = columns        # index array, or None for all columns
        self.values = values          # float64 [len(rows), len(columns)]

    def inputs(self, x):
        """The columns of x [..., in] that the panel multiplies."""
        return x if self.columns is None else x[..., self.columns]


class KeptBytes:
    """How many bytes of decoded panels may still be kept in memory."""

    def __init__(self, limit):
        self.left = limit


class Matrix:
    """W [out, in]: y[o] = sum_i W[o][i] * x[i].  Subclasses say how rows are stored."""

    def __init__(self, out_size, in_size, kept_bytes, one_panel=False, transposed=False):
        self.out_size = out_size
        self.in_size = in_size
        self._kept_bytes = kept_bytes
        self._panel_rows = out_size if one_panel else max(1, PANEL_VALUES_MAX // in_size)
        self._transposed = transposed
        self._kept = None

    def read_rows(self, first, end):
        """Rows [first, end) as float64 [end-first, in]."""
        raise NotImplementedError

    def nonempty_ranges(self):
        """Byte ranges with data, and the bytes of a row: from the tensor that holds the values."""
        raise NotImplementedError

    def apply(self, x):
        """x [T, in] -> [T, out]."""
        y = np.zeros((x.shape[0], self.out_size))
        for panel in self.panels():
            y[:, panel.rows] = panel.inputs(x) @ panel.values.T
        return y

    def panels(self):
        """Yield panels that cover every nonzero value once; keep them if there is room."""
        if self._kept is not None:
            yield from self._kept
            return
        kept, size = [], 0
        for panel in self._decode():
            size += panel.values.nbytes
            if kept is not None and size <= self._kept_bytes.left:
                kept.append(panel)
            else:
                kept = None
            yield panel
        if kept is not None and self._kept is None:
            self._kept_bytes.left -= size
            self._kept = kept

    def _decode(self):
        if self._transposed:
            flat = self.read_rows(0, self.out_size).reshape(self.in_size, self.out_size)
            yield Panel(np.arange(self.out_size), None, np.ascontiguousarray(flat.T))
            return
        ranges, row_bytes = self.nonempty_ranges()
        data_bytes = sum(end - begin for begin, end in ranges)
        if 2 * data_bytes >= self.out_size * row_bytes:
            spans, is_sparse = [(0, self.out_size)], False
        else:
            spans, is_sparse = _row_spans(ranges, row_bytes), True
        for group in _grouped(spans, self._panel_rows):
            rows = np.concatenate([np.arange(first, end) for first, end in group])
            values = np.concatenate([self.read_rows(first, end) for first, end in group])
            columns = None
            if is_sparse:
                columns = np.flatnonzero(values.any(axis=0))
                values = np.ascontiguousarray(values[:, columns])
            yield Panel(rows, columns, values)


def _row_spans(ranges, row_bytes):
    """Byte ranges in ascending order -> disjoint row spans [first, end) that contain them."""
    spans = []
    for begin, end in ranges:
        first, last = begin // row_bytes, (end - 1) // row_bytes
        if spans and first <= spans[-1][1]:
            spans[-1] = (spans[-1][0], max(spans[-1][1], last + 1))
        else:
            spans.append((first, last + 1))
    return spans


def _grouped(spans, rows_max):
    """Cut and collect row spans into groups of at most rows_max rows."""
    group, room = [], rows_max
    for first, end in spans:
        while first < end:
            take = min(end - first, room)
            group.append((first, first + take))
            first += take
            room -= take
            if room == 0:
                yield group
                group, room = [], rows_max
    if group:
        yield group


class PlainMatrix(Matrix):
    """A matrix stored as BF16 or F32."""

    def __init__(self, tensor, *args, **kwargs):
        super().__init__(*tensor.shape, *args, **kwargs)
        self._tensor = tensor

    def read_rows(self, first, end):
        return self._tensor.read_values(first, end)

    def nonempty_ranges(self):
        return self._tensor.data_ranges(), self._tensor.row_bytes()


class Mxfp4Matrix(Matrix):
    """A matrix stored as packed nibbles and scales.

    Where the nibbles are a hole the values are zero whatever the scales say; those scales are
    neither read nor checked.
    """

    def __init__(self, packed, scales, fault, *args, **kwargs):
        super().__init__(packed.shape[0], 2 * packed.shape[1], *args, **kwargs)
        self._packed = packed
        self._scales = scales
        self._fault = fault

    def read_rows(self, first, end):
        return decode_mxfp4(self._packed.read_rows(first, end),
                            self._scales.read_rows(first, end), self._fault)

    def nonempty_ranges(self):
        return self._packed.data_ranges(), self._packed.row_bytes()


# ---- the folder ---------------------------------------------------------------------------------

class Checkpoint:
    """A checkpoint folder: .config is the parsed config.json, weights are found by name."""

    def __init__(self, folder, fault=None):
        self.fault = check_fault(fault)
        self._fds = []
        with open(os.path.join(folder, "config.json"), "rb") as file:
            self.config = json.load(file, object_pairs_hook=_no_duplicates)
        self._tensors = {}
        self._matrices = {}
        self._kept_bytes = KeptBytes(KEPT_BYTES_MAX)
        shapes = {}
        names = sorted(name for name in os.listdir(folder) if name.endswith(".safetensors"))
        if not names:
            raise CheckpointError(f"'{folder}' has no *.safetensors file")
        for name in names:
            path = os.path.join(folder, name)
            fd = os.open(path, os.O_RDONLY)
            self._fds.append(fd)
            for tensor_name, tensor in read_shard_header(path, fd, shapes):
                if tensor_name in self._tensors:
                    raise CheckpointError(f"'{tensor_name}' is in two shards")
                self._tensors[tensor_name] = tensor
        self._has_square = fault == "transposed-square" and self._find_square()

    def close(self):
        """Close the shards; nothing can be read afterwards."""
        for fd in self._fds:
            os.close(fd)
        self._fds = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def __contains__(self, name):
        return name in self._tensors

    def tensor(self, name):
        """The Tensor called name; CheckpointError if there is none."""
        if name not in self._tensors:
            raise CheckpointError(f"there is no tensor '{name}'")
        return self._tensors[name]

    def vector(self, name, shape):
        """A small BF16 or F32 tensor of exactly this shape, whole, as float64."""
        tensor = self.tensor(name)
        if tensor.shape != tuple(shape):
            raise CheckpointError(f"'{name}' has shape {list(tensor.shape)}, not {list(shape)}")
        return tensor.read_values(0, tensor.shape[0])

    def matrix(self, name, out_size, in_size, one_panel=False):
        """The matrix '<name>.weight', or '<name>.weight_packed' and '.weight_scale' (MXFP4)."""
        if name not in self._matrices:
            matrix = self._open_matrix(name, out_size, in_size, one_panel)
            if (matrix.out_size, matrix.in_size) != (out_size, in_size):
                raise CheckpointError(f"'{name}' has shape [{matrix.out_size}, {matrix.in_size}],"
                                      f" not [{out_size}, {in_size}]")
            self._matrices[name] = matrix
        return self._matrices[name]

    def _open_matrix(self, name, out_size, in_size, one_panel):
        transposed = self.fault == "transposed-square" and (
            out_size == in_size or (not self._has_square and name.endswith(".self_attn.o_proj")))
        if name + ".weight_packed" in self._tensors:
            packed = self.tensor(name + ".weight_packed")
            scales = self.tensor(name + ".weight_scale")
            if len(packed.shape) != 2 or packed.dtype != "U8" or scales.dtype != "U8" \
                    or scales.shape != (packed.shape[0], 2 * packed.shape[1] // MXFP4_GROUP):
                raise CheckpointError(f"'{name}': packed and scale tensors do not fit")
            return Mxfp4Matrix(packed, scales, self.fault, self._kept_bytes, one_panel, transposed)
        tensor = self.tensor(name + ".weight")
        if len(tensor.shape) != 2:
            raise CheckpointError(f"'{name}.weight' is no matrix")
        return PlainMatrix(tensor, self._kept_bytes, one_panel, transposed)

    def _find_square(self):
        """Whether any matrix, other than the embedding table (used by row), is square."""
        for name, tensor in self._tensors.items():
            if len(tensor.shape) == 2 and not name.endswith("embed_tokens.weight"):
                columns = tensor.shape[1] * (2 if name.endswith(".weight_packed") else 1)
                if tensor.shape[0] == columns and not name.endswith(".weight_scale"):
                    return True
        return False
