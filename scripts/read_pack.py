#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Read packs: a second reader, written from docs/format.md alone.

  dump      every field of every structure, as JSON; keys are the field names of the document
  check     everything the document demands, one problem a line: "file offset: message"
  tensor    the source bytes of one tensor of the checkpoint, from the stored form
  compare   every source tensor, byte for byte, with the safetensors shards it came from

Exit status 0, or 65 if anything is wrong with the pack (or it differs from the checkpoint);
1 and 2 for wrong use.

XXH3-128 and zstd come from the modules xxhash and zstandard (Debian: python3-xxhash,
python3-zstandard), or else from the programs xxhsum and zstd.  Whatever looks at weights (tensor,
compare, and check without --quick) needs numpy.
"""

import argparse
import hashlib
import json
import math
import os
import re
import struct
import subprocess
import sys

try:
    import numpy as np
except ImportError:
    np = None
try:
    import xxhash
except ImportError:
    xxhash = None
try:
    import zstandard
except ImportError:
    zstandard = None

EXIT_BAD = 65
MIB = 1 << 20
PIECE_BYTES = 8 * MIB                   # read and decode about this much at a time
MAGIC = b"\x89K3P\r\n\x1a\n"
SUPERBLOCK_BYTES = 4096
FIRST_EXTENT = EXTENT_ALIGN = 2 * MIB
BLOCK_BYTES = 8 * MIB
PAGE = 4096
TOP_LEVEL = 0xFFFFFFFF
INDEX, TRUNK, EXPERTS = PACK_FILES = ("k3.index", "k3.trunk", "k3.experts")

(MODEL_SPEC, TRUNK_EXTENTS, TRUNK_TENSORS, TRUNK_DIGESTS, EXPERT_LAYOUT, EXPERT_DIGESTS, FILES,
 SHARDS, TRUNK_SOURCES, EXPERT_SOURCES) = range(1, 11)
SECTION_NAMES = ("MODEL_SPEC TRUNK_EXTENTS TRUNK_TENSORS TRUNK_DIGESTS EXPERT_LAYOUT EXPERT_DIGESTS"
                 " FILES SHARDS TRUNK_SOURCES EXPERT_SOURCES").split()
SECTIONS_IN = {INDEX: tuple(range(1, 11)), TRUNK: (1, 2, 3, 4, 7), EXPERTS: (1, 5, 6)}
COMPRESSED = {FILES, SHARDS, TRUNK_SOURCES, EXPERT_SOURCES}
LARGE = {TRUNK_DIGESTS, EXPERT_DIGESTS, TRUNK_SOURCES, EXPERT_SOURCES}
PACK_ID_SECTIONS = range(1, 8)

FILE_NAMES = ("config.json", "generation_config.json", "tiktoken.model", "tokenizer_config.json",
              "LICENSE")
FILES_REQUIRED = ("config.json", "tiktoken.model", "tokenizer_config.json")
EXPERT_PARTS = [(matrix, part) for matrix in ("w1", "w2", "w3")
                for part in ("weight_packed", "weight_scale")]
LAYER_PREFIX = "language_model.model.layers."
KDA, MLA = 0, 1
F32, TAPS, B16, ROWS = 1, 2, 3, 4
ENCODINGS = {"F32": F32, "TAPS": TAPS, "B16": B16, "ROWS": ROWS}
DTYPES = {"BF16": 1, "F32": 2}
DTYPE_BYTES = {1: 2, 2: 4}
DTYPE_NAMES = {number: name for name, number in DTYPES.items()}

# The table of section 7.2: role, where, source name, rows, cols, encoding, then what differs from
# a BF16 source of the shape rows x cols (or of the plain length, for 1 x n).
ROLE_TABLE = """
 1 all   self_attention_res_norm.weight 1 E F32
 2 all   self_attention_res_proj.weight 1 E F32 shape=1,E
 3 all   input_layernorm.weight 1 E F32
 4 KDA   self_attn.q_proj.weight W E B16
 5 KDA   self_attn.k_proj.weight W E B16
 6 KDA   self_attn.v_proj.weight W E B16
 7 KDA   self_attn.g_proj.weight W E B16
 8 KDA   self_attn.f_a_proj.weight D E B16
 9 KDA   self_attn.b_proj.weight H E B16
10 KDA   self_attn.q_conv1d.weight t W TAPS dtype=F32 shape=W,1,t
11 KDA   self_attn.k_conv1d.weight t W TAPS dtype=F32 shape=W,1,t
12 KDA   self_attn.v_conv1d.weight t W TAPS dtype=F32 shape=W,1,t
13 KDA   self_attn.f_b_proj.weight W D B16
14 KDA   self_attn.A_log 1 n F32 dtype=F32
15 KDA   self_attn.dt_bias 1 W F32 dtype=F32
16 KDA   self_attn.o_norm.weight 1 D F32 dtype=F32
17 MLA   self_attn.q_a_proj.weight Q E B16
18 MLA   self_attn.kv_a_proj_with_mqa.weight R+dr E B16
22 MLA   self_attn.g_proj.weight A*dv E B16
21 MLA   self_attn.q_a_layernorm.weight 1 Q F32
23 MLA   self_attn.kv_a_layernorm.weight 1 R F32
24 MLA   self_attn.q_b_proj.weight A*(dn+dr) Q B16
19 MLA   self_attn.kv_b_proj.weight R dn B16 shape=A*(dn+dv),R
20 MLA   self_attn.kv_b_proj.weight dv R B16 shape=A*(dn+dv),R
25 KDA   self_attn.o_proj.weight E W B16
25 MLA   self_attn.o_proj.weight E A*dv B16
26 all   mlp_res_norm.weight 1 E F32
27 all   mlp_res_proj.weight 1 E F32 shape=1,E
28 all   post_attention_layernorm.weight 1 E F32
29 dense mlp.gate_proj.weight I E B16
30 dense mlp.up_proj.weight I E B16
31 dense mlp.down_proj.weight E I B16
32 MoE   block_sparse_moe.gate.weight N E B16
33 MoE   block_sparse_moe.gate.e_score_correction_bias 1 N F32 dtype=F32
34 MoE   block_sparse_moe.routed_expert_down_proj.weight Z E B16
35 MoE   block_sparse_moe.shared_experts.gate_proj.weight J E B16
36 MoE   block_sparse_moe.shared_experts.up_proj.weight J E B16
37 MoE   block_sparse_moe.shared_experts.down_proj.weight E J B16
38 MoE   block_sparse_moe.routed_expert_norm.weight 1 Z F32
39 MoE   block_sparse_moe.routed_expert_up_proj.weight E Z B16
40 top   language_model.model.output_attn_res_norm.weight 1 E F32
41 top   language_model.model.output_attn_res_proj.weight 1 E F32 shape=1,E
42 top   language_model.model.norm.weight 1 E F32
43 top   language_model.lm_head.weight V E B16
44 top   language_model.model.embed_tokens.weight V E ROWS
"""
ROLES = [line.split() for line in ROLE_TABLE.strip().splitlines()]
ROLE_A_LOG, ROLE_KEYS, ROLE_VALUES = 14, 19, 20
A_LOG_MAX = 65536


def round_up(value, unit):
    return -(-value // unit) * unit


# ---------------------------------------------------------------------------------------------
# Digests, zstd, structures of fixed size.


class Digest:
    """XXH3-128 of a stream."""

    def __init__(self):
        if xxhash:
            self.state = xxhash.xxh3_128()
        else:
            self.child = subprocess.Popen(["xxhsum", "-H2", "-"], stdin=subprocess.PIPE,
                                          stdout=subprocess.PIPE)

    def update(self, data):
        self.state.update(data) if xxhash else self.child.stdin.write(data)

    def hex(self):
        if xxhash:
            return self.state.hexdigest()
        return self.child.communicate()[0].split()[0].decode()


def digest_of(data):
    digest = Digest()
    digest.update(data)
    return digest.hex()


class Damage(Exception):
    """Something that makes it impossible to read on in a structure; at is an offset in a file."""

    def __init__(self, file, at, message):
        super().__init__(message)
        self.file, self.at = file, at


class BadFrame(Exception):
    pass


def frame_shape(data):
    """(bytes of the first zstd frame, its content size or None), by RFC 8878."""
    try:
        if data[:4] != b"\x28\xb5\x2f\xfd":
            raise BadFrame("not a zstd frame")
        flags = data[4]
        single, checksum = flags >> 5 & 1, flags >> 2 & 1
        at = 5 + (not single) + (0, 1, 2, 4)[flags & 3]
        width = (single, 2, 4, 8)[flags >> 6]
        size = int.from_bytes(data[at:at + width], "little") + (256 if width == 2 else 0)
        at += width
        last = False
        while not last:
            header = data[at] | data[at + 1] << 8 | data[at + 2] << 16
            last, kind = header & 1, header >> 1 & 3
            at += 3 + (1 if kind == 1 else header >> 3)
        return at + 4 * checksum, size if width else None
    except IndexError:
        raise BadFrame("the zstd frame is cut short") from None


def decompress(data, raw_bytes):
    length, size = frame_shape(data)
    if length != len(data):
        raise BadFrame(f"the zstd frame has {length} bytes, not all {len(data)} stored ones")
    if size != raw_bytes:
        raise BadFrame(f"the zstd frame states the content size {size}, not {raw_bytes}")
    if zstandard:
        try:
            raw = zstandard.ZstdDecompressor().decompress(data) if size else b""
        except zstandard.ZstdError as error:
            raise BadFrame(f"zstd: {error}") from None
    else:
        run = subprocess.run(["zstd", "-dcq"], input=data, capture_output=True, check=False)
        if run.returncode:
            raise BadFrame("zstd: " + run.stderr.decode(errors="replace").strip())
        raw = run.stdout
    if len(raw) != raw_bytes:
        raise BadFrame(f"the zstd frame has {len(raw)} bytes of content, not {raw_bytes}")
    return raw


class Layout:
    """A structure of fixed size: "name:code ..." with the codes of struct, and 16D for a digest."""

    def __init__(self, text):
        self.fields, self.offsets, at = [], {}, 0
        for field in text.split():
            name, code = field.split(":")
            size = struct.calcsize("<" + code.replace("D", "s"))
            self.fields.append((name, code, at, size))
            self.offsets[name] = at
            at += size
        self.size = at

    def parse(self, data, at=0):
        values = {}
        for name, code, offset, size in self.fields:
            if name == "spare":
                continue
            value, = struct.unpack_from("<" + code.replace("D", "s"), data, at + offset)
            values[name] = value.hex() if isinstance(value, bytes) else value
        return values

    def dirty_spares(self, data, at=0):
        return [offset for name, _, offset, size in self.fields
                if name == "spare" and any(data[at + offset:at + offset + size])]


SUPERBLOCK = Layout(
    "magic:8s version_major:H version_minor:H feature_incompat:I feature_compat:I file_kind:I"
    " pack_id:16D file_bytes:Q section_table_offset:Q section_count:I spare:4s"
    " section_table_digest:16D data_offset:Q data_end:Q writer:32s spare:3952s"
    " superblock_digest:16D")
SECTION = Layout("kind:I flags:I offset:Q stored_bytes:Q raw_bytes:Q stored_digest:16D spare:16s")
SPEC_COUNTS = (
    "layers hidden vocab kda_heads kda_head_dim conv_taps mla_heads q_lora_rank kv_lora_rank"
    " qk_nope_head_dim qk_rope_head_dim v_head_dim dense_layers dense_intermediate experts"
    " experts_per_token shared_experts latent expert_intermediate attn_res_block_layers").split()
SPEC_IDS = ("bos_id", "eos_id", "pad_id")
SPEC_FLOATS = ("rms_norm_eps", "situ_beta", "situ_linear_beta", "gate_lower_bound",
               "routed_scaling_factor")
SPEC = Layout(" ".join([*(f"{name}:I" for name in (*SPEC_COUNTS, *SPEC_IDS)), "spare:20s",
                        *(f"{name}:d" for name in SPEC_FLOATS), "spare:8s max_positions:Q",
                        "spare:88s"]))
EXTENT = Layout("layer:I tensor_first:I tensor_count:I block_first:I file_offset:Q used_bytes:Q")
TENSOR = Layout("layer:I role:H encoding:H source_dtype:H spare:2s matrix_count:I rows:I cols:I"
                " file_offset:Q stored_bytes:Q extent:I source:I spare:16s")
EXPERT_FIELDS = Layout("first_layer:I layer_count:I expert_count:I spare:4s data_offset:Q stride:Q"
                       " used_bytes:Q w2_offset:Q spare:16s")
FILE_HEAD = Layout("name_length:I content_length:Q")
SHARD_HEAD = Layout("name_length:I flags:I file_bytes:Q digest:16D sha256:32s")
SOURCE_HEAD = Layout("name_length:I dtype:H ndim:H")
SOURCE_TAIL = Layout("shard:I offset:Q bytes:Q digest:16D")
EXPERT_SOURCE = Layout("shard:I spare:4s offset:Q bytes:Q digest:16D")
SPEC_MAX = {"layers": 1024, "vocab": 1 << 22, "experts": 65535}
SPEC_MIN = {"dense_layers": 0}


# ---------------------------------------------------------------------------------------------
# What a model spec implies.


def dimensions(spec):
    """The symbols of section 7.2, but for n."""
    heads, width = spec["kda_heads"], spec["kda_heads"] * spec["kda_head_dim"]
    mla, dn, dr = spec["mla_heads"], spec["qk_nope_head_dim"], spec["qk_rope_head_dim"]
    dv, rank = spec["v_head_dim"], spec["kv_lora_rank"]
    return {"1": 1, "H": heads, "D": spec["kda_head_dim"], "W": width, "A": mla, "dn": dn,
            "dr": dr, "dv": dv, "R": rank, "Q": spec["q_lora_rank"], "E": spec["hidden"],
            "Z": spec["latent"], "V": spec["vocab"], "N": spec["experts"],
            "I": spec["dense_intermediate"], "t": spec["conv_taps"],
            "J": spec["shared_experts"] * spec["expert_intermediate"],
            "R+dr": rank + dr, "A*dv": mla * dv, "A*(dn+dr)": mla * (dn + dr),
            "A*(dn+dv)": mla * (dn + dv)}


def layer_groups(spec, layer):
    """The words of the column "where" that hold for a layer."""
    if layer == TOP_LEVEL:
        return {"top"}
    return {"all", "MLA" if spec["layer_kinds"][layer] == MLA else "KDA",
            "dense" if layer < spec["dense_layers"] else "MoE"}


def stored_size(encoding, matrices, rows, cols):
    if encoding == B16:
        return matrices * round_up(rows, 16) * round_up(cols, 128) * 2
    return {F32: 4 * cols, TAPS: 4 * rows * cols, ROWS: 2 * rows * cols}[encoding]


class TrunkPlan:
    """Extents, tensors and sources as a model spec implies them.

    a_log_length(i) gives n for tensor i.  sources[i]["tensors"] are the tensors made of source i.
    """

    def __init__(self, spec, a_log_length):
        self.spec, self.extents, self.tensors, self.sources = spec, [], [], []
        self.a_log_length = a_log_length
        self.blocks, self.end = 0, FIRST_EXTENT
        symbols = dimensions(spec)
        for layer in (*range(spec["layers"]), TOP_LEVEL):
            self.add_extent(layer, symbols)

    def add_extent(self, layer, symbols):
        first, start = len(self.tensors), round_up(self.end, EXTENT_ALIGN)
        at, groups = start, layer_groups(self.spec, layer)
        for role in ROLES:
            if role[1] in groups:
                at = self.add_tensor(layer, role, symbols, round_up(at, PAGE))
        used = round_up(at - start, PAGE)
        self.extents.append({
            "layer": layer, "tensor_first": first, "tensor_count": len(self.tensors) - first,
            "block_first": self.blocks, "file_offset": start, "used_bytes": used})
        self.blocks += -(-used // BLOCK_BYTES)
        self.end = start + used

    def add_tensor(self, layer, columns, symbols, at):
        number, _, name, rows, cols, encoding, *rest = columns
        role, encoding = int(number), ENCODINGS[encoding]
        if role == ROLE_A_LOG:
            symbols = {**symbols, "n": self.a_log_length(len(self.tensors))}
        changes = dict(item.split("=") for item in rest)
        shape = changes.get("shape", cols if rows == "1" else f"{rows},{cols}").split(",")
        shape, dtype = [symbols[s] for s in shape], DTYPES[changes.get("dtype", "BF16")]
        rows, cols = symbols[rows], symbols[cols]
        matrices = symbols["A"] if role in (ROLE_KEYS, ROLE_VALUES) else 1
        size = stored_size(encoding, matrices, rows, cols)
        if role != ROLE_VALUES:
            name = name if layer == TOP_LEVEL else f"{LAYER_PREFIX}{layer}.{name}"
            self.sources.append({"name": name, "dtype": dtype, "ndim": len(shape), "shape": shape,
                                 "bytes": math.prod(shape) * DTYPE_BYTES[dtype], "tensors": []})
        self.sources[-1]["tensors"].append(len(self.tensors))
        self.tensors.append({
            "layer": layer, "role": role, "encoding": encoding, "source_dtype": dtype,
            "matrix_count": matrices, "rows": rows, "cols": cols, "file_offset": at,
            "stored_bytes": size, "extent": len(self.extents), "source": len(self.sources) - 1})
        return at + size


def m4_size(rows, cols):
    return round_up(rows, 16) * round_up(cols, 128) * 17 // 32


class ExpertPlan:
    """EXPERT_LAYOUT and the matrices of an expert as a model spec implies them."""

    def __init__(self, spec):
        wide, latent = spec["expert_intermediate"], spec["latent"]
        self.shapes = {"w1": (wide, latent), "w2": (latent, wide), "w3": (wide, latent)}
        self.pair_bytes = 2 * m4_size(wide, latent)
        self.w2_bytes = m4_size(latent, wide)
        w2_offset = round_up(self.pair_bytes, PAGE)
        used = round_up(w2_offset + self.w2_bytes, PAGE)
        self.fields = {
            "first_layer": spec["dense_layers"],
            "layer_count": spec["layers"] - spec["dense_layers"], "expert_count": spec["experts"],
            "data_offset": FIRST_EXTENT, "used_bytes": used, "w2_offset": w2_offset,
            "stride": round_up(used, 64 << 10 if used < MIB else EXTENT_ALIGN)}
        self.count = self.fields["layer_count"] * spec["experts"]
        self.end = self.offset(self.count - 1) + used if self.count else FIRST_EXTENT

    def offset(self, expert):
        return self.fields["data_offset"] + expert * self.fields["stride"]

    def part_shape(self, part):
        matrix, what = EXPERT_PARTS[part]
        rows, cols = self.shapes[matrix]
        return [rows, cols // (2 if what == "weight_packed" else 32)]

    def name(self, expert, part):
        layer, number = divmod(expert, self.fields["expert_count"])
        return (f"{LAYER_PREFIX}{self.fields['first_layer'] + layer}.block_sparse_moe.experts."
                f"{number}.{'.'.join(EXPERT_PARTS[part])}")

    def find(self, name):
        """(expert, part) of a source name, or None."""
        match = re.fullmatch(re.escape(LAYER_PREFIX) + r"(\d{1,5})\.block_sparse_moe\.experts\."
                             r"(\d{1,6})\.(w[123])\.(weight_packed|weight_scale)", name)
        if not match:
            return None
        layer, number = int(match[1]) - self.fields["first_layer"], int(match[2])
        expert, part = (layer * self.fields["expert_count"] + number,
                        EXPERT_PARTS.index((match[3], match[4])))
        known = 0 <= expert < self.count and self.name(expert, part) == name
        return (expert, part) if known else None


# ---------------------------------------------------------------------------------------------
# The files, their superblocks and sections.


class Report:
    """Problems, printed as they are found."""

    def __init__(self, stream):
        self.stream, self.count = stream, 0

    def add(self, file, at, message):
        self.count += 1
        print(f"{file} {at}: {message}", file=self.stream)

    def damage(self, error):
        self.add(error.file, error.at, str(error))

    def match(self, file, at, what, layout, found, expected):
        """Report each field that is not as expected."""
        for name in layout.offsets:
            if name in expected and found[name] != expected[name]:
                self.add(file, at + layout.offsets[name],
                         f"{what}: {name} is {found[name]}, must be {expected[name]}")

    def spares(self, file, at, what, layout, data, start=0):
        for offset in layout.dirty_spares(data, start):
            self.add(file, at + offset, f"{what}: spare bytes are not zero")


class PackFile:
    def __init__(self, directory, name):
        self.name, self.superblock, self.sections, self.fd = name, None, [], None
        try:
            self.fd = os.open(os.path.join(directory, name), os.O_RDONLY)
            self.size = os.fstat(self.fd).st_size
        except OSError as error:
            raise Damage(name, 0, f"cannot be opened: {error.strerror}") from None

    def __del__(self):
        if self.fd is not None:
            os.close(self.fd)

    def read(self, at, count):
        if at + count > self.size:
            raise Damage(self.name, at, f"{count} bytes from here reach beyond the end of the file,"
                                        f" {self.size}")
        pieces = []
        while count:
            try:
                piece = os.pread(self.fd, min(count, 1 << 30), at)
            except OSError as error:
                raise Damage(self.name, at, f"cannot be read: {error.strerror}") from None
            if not piece:
                raise Damage(self.name, at, "the file shrank while it was read")
            pieces.append(piece)
            at, count = at + len(piece), count - len(piece)
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def read_superblock(self):
        if self.size < SUPERBLOCK_BYTES:
            raise Damage(self.name, 0, f"has {self.size} bytes, fewer than a superblock")
        data = self.read(0, SUPERBLOCK_BYTES)
        fields = SUPERBLOCK.parse(data)
        if data[:8] != MAGIC:
            raise Damage(self.name, 0, "the magic is wrong: not a file of a pack")
        if fields["version_major"] != 1:
            raise Damage(self.name, 8, f"unsupported version {fields['version_major']}")
        if fields["superblock_digest"] != digest_of(data[:4080]):
            raise Damage(self.name, 4080, "superblock_digest is wrong")
        fields["writer"] = data[96:128].rstrip(b"\0").decode("ascii", "backslashreplace")
        self.superblock = fields
        return data

    def read_section_table(self):
        block = self.superblock
        at, count = block["section_table_offset"], block["section_count"]
        if not 1 <= count <= 32:
            raise Damage(self.name, 56, f"section_count is {count}, must be 1..32")
        data = self.read(at, SECTION.size * count)
        if digest_of(data) != block["section_table_digest"]:
            raise Damage(self.name, at, "the section table's digest is wrong")
        self.sections = [SECTION.parse(data, i * SECTION.size) for i in range(count)]
        return data


def check_superblock(file, report):
    data, block = file.read_superblock(), file.superblock
    unknown = [bit for bit in range(32) if block["feature_incompat"] >> bit & 1]
    for bit in unknown:
        report.add(file.name, 12, f"unsupported: unknown bit {bit} of feature_incompat")
    report.spares(file.name, 0, "superblock", SUPERBLOCK, data)
    end = block["section_table_offset"] + SECTION.size * block["section_count"]
    report.match(file.name, 0, "superblock", SUPERBLOCK, block, {
        "file_kind": PACK_FILES.index(file.name) + 1, "file_bytes": file.size,
        "data_offset": 0 if file.name == INDEX else FIRST_EXTENT})
    if block["section_table_offset"] % 64:
        report.add(file.name, 48, "section_table_offset is not a multiple of 64")
    if end != file.size:
        report.add(file.name, 48, f"the section table ends at {end}, the file at {file.size}")
    if unknown:
        raise Damage(file.name, 12, "not read any further")


def check_zero(file, start, end, what, report):
    while start < end:
        count = min(end - start, PIECE_BYTES)
        data = file.read(start, count)
        if data.count(0) != count:
            first = start + len(data) - len(data.lstrip(b"\0"))
            report.add(file.name, first, f"{what} is not zero")
            return
        start += count


def check_section(file, at, entry, report):
    """The raw bytes of a section, or None if it is damaged."""
    kind, before = entry["kind"], report.count
    name = SECTION_NAMES[kind - 1] if 1 <= kind <= 10 else f"section of kind {kind}"
    size, raw_bytes = entry["stored_bytes"], entry["raw_bytes"]
    limit = 1 << 30 if kind in LARGE else 64 * MIB
    if entry["flags"] != (kind in COMPRESSED):
        report.add(file.name, at + 4, f"{name}: flags are {entry['flags']}, must be"
                                      f" {int(kind in COMPRESSED)}")
    if raw_bytes > limit:
        report.add(file.name, at + 24, f"{name}: raw_bytes {raw_bytes} is above {limit}")
        return None
    if not entry["flags"] & 1 and size != raw_bytes:
        report.add(file.name, at + 24, f"{name}: raw_bytes and stored_bytes differ")
    if size > 2 * limit:
        report.add(file.name, at + 16, f"{name}: {size} stored bytes are too many")
        return None
    stored = file.read(entry["offset"], size)
    if digest_of(stored) != entry["stored_digest"]:
        report.add(file.name, entry["offset"], f"{name}: the digest is wrong")
    if report.count > before:
        return None
    if entry["flags"]:
        try:
            return decompress(stored, raw_bytes)
        except BadFrame as error:
            report.add(file.name, entry["offset"], f"{name}: {error}")
            return None
    return stored


def check_section_order(file, report):
    """Kinds, places and the padding between sections."""
    table, block = file.superblock["section_table_offset"], file.superblock
    kinds = [entry["kind"] for entry in file.sections]
    if kinds != list(SECTIONS_IN[file.name]):
        report.add(file.name, table, f"the kinds of section are {kinds}, must be"
                                     f" {list(SECTIONS_IN[file.name])}")
    end = SUPERBLOCK_BYTES if file.name == INDEX else round_up(block["data_end"], PAGE)
    for i, entry in enumerate(file.sections):
        at = table + i * SECTION.size
        expected = round_up(end, 64) if i else end
        report.match(file.name, at, f"section table entry {i}", SECTION, entry,
                     {"offset": expected})
        if i and entry["offset"] == expected:
            check_zero(file, end, expected, "padding before a section", report)
        end = entry["offset"] + entry["stored_bytes"]
    if round_up(end, 64) != table:
        report.add(file.name, 48, f"section_table_offset is {table}, must be {round_up(end, 64)}")
    else:
        check_zero(file, end, table, "padding before the section table", report)
    if file.sections and block["data_end"] > file.sections[0]["offset"]:
        report.add(file.name, 88, "data_end is beyond the first section")


# ---------------------------------------------------------------------------------------------
# A pack: everything but extents, read and checked.


class Cursor:
    """Unaligned integers and bytes, one after the other."""

    def __init__(self, data, file, at, what):
        self.data, self.at, self.place, self.what = data, 0, (file, at), what

    def damage(self, message):
        return Damage(*self.place, f"{self.what}: {message}")

    def take(self, count):
        if count > len(self.data) - self.at:
            raise self.damage("a record reaches beyond the end")
        self.at += count
        return self.data[self.at - count:self.at]

    def parse(self, layout):
        return layout.parse(self.take(layout.size))

    def number(self, code="I"):
        return struct.unpack("<" + code, self.take(struct.calcsize("<" + code)))[0]

    def text(self, count):
        return self.take(count).decode("utf-8", "backslashreplace")

    def finish(self):
        if self.at != len(self.data):
            raise self.damage(f"{len(self.data) - self.at} bytes follow the last record")


class Pack:
    """raw[kind] are the bytes of a section, where[kind] its file and offset there."""

    def __init__(self, directory, report):
        self.report, self.files, self.raw, self.where = report, {}, {}, {}
        self.digests, self.trunk, self.experts = {}, None, None
        self.parsed = {}                # model_spec, trunk_extents, ...: what dump prints
        for name in PACK_FILES:
            self.attempt(self.open_file, directory, name)
        self.check_pack_id()
        for step in (self.read_spec, self.read_trunk, self.read_experts, self.read_files,
                     self.read_shards, self.read_trunk_sources, self.read_expert_sources):
            self.attempt(step)

    def attempt(self, step, *arguments):
        try:
            return step(*arguments)
        except Damage as error:
            self.report.damage(error)
            return None

    def open_file(self, directory, name):
        file = self.files[name] = PackFile(directory, name)
        check_superblock(file, self.report)
        data, table = file.read_section_table(), file.superblock["section_table_offset"]
        for i in range(len(file.sections)):
            self.report.spares(name, table + i * SECTION.size, f"section table entry {i}", SECTION,
                               data, i * SECTION.size)
        self.attempt(check_section_order, file, self.report)
        for i, entry in enumerate(file.sections):
            raw = self.attempt(check_section, file, table + i * SECTION.size, entry, self.report)
            if raw is not None and entry["kind"] in SECTIONS_IN[name]:
                self.keep_section(file, entry, raw)

    def keep_section(self, file, entry, raw):
        kind = entry["kind"]
        if kind not in self.raw:
            self.raw[kind], self.where[kind] = raw, (file.name, entry["offset"])
            self.digests[kind] = (entry["stored_digest"], entry["stored_bytes"])
        elif self.digests[kind] != (entry["stored_digest"], entry["stored_bytes"]):
            self.report.add(file.name, entry["offset"], f"{SECTION_NAMES[kind - 1]} differs from"
                                                        f" the copy in {self.where[kind][0]}")

    def check_pack_id(self):
        blocks = {name: file.superblock for name, file in self.files.items() if file.superblock}
        expected = {block["pack_id"] for block in blocks.values()}
        if all(kind in self.raw for kind in PACK_ID_SECTIONS):
            records = (struct.pack("<I", kind) + bytes.fromhex(digest_of(self.raw[kind]))
                       for kind in PACK_ID_SECTIONS)
            expected = {digest_of(b"".join(records))}
        elif len(expected) == 1:
            return
        for name, block in blocks.items():
            if len(expected) > 1:
                self.report.add(name, 24, f"pack_id {block['pack_id']}: the files' ids differ")
            elif block["pack_id"] not in expected:
                self.report.add(name, 24, f"pack_id is {block['pack_id']}, must be {min(expected)}")

    def at(self, kind, offset=0):
        """File and offset in it of a byte of a section (of the section, if it is compressed)."""
        file, start = self.where[kind]
        return file, start + (0 if kind in COMPRESSED else offset)

    def need(self, kind):
        if kind not in self.raw:
            raise Damage(INDEX, 0, f"no readable section {SECTION_NAMES[kind - 1]}")
        return self.raw[kind]

    def cursor(self, kind):
        return Cursor(self.need(kind), *self.at(kind), SECTION_NAMES[kind - 1])

    def check_length(self, kind, expected):
        if len(self.need(kind)) != expected:
            self.report.add(*self.at(kind), f"{SECTION_NAMES[kind - 1]} has {len(self.raw[kind])}"
                                            f" bytes, must have {expected}")

    def check_data_end(self, name, expected):
        file = self.files.get(name)
        if file and file.superblock:
            self.report.match(name, 0, "superblock", SUPERBLOCK, file.superblock,
                              {"data_end": expected})

    # Section 6.

    def read_spec(self):
        data = self.need(MODEL_SPEC)
        if len(data) < SPEC.size:
            raise Damage(*self.at(MODEL_SPEC), "MODEL_SPEC is too short")
        spec = SPEC.parse(data)
        spec["layer_kinds"] = list(data[SPEC.size:])
        self.parsed["model_spec"] = spec
        self.report.spares(*self.at(MODEL_SPEC), "MODEL_SPEC", SPEC, data)
        self.check_length(MODEL_SPEC, SPEC.size + spec["layers"])
        before = self.report.count
        self.check_spec(spec)
        if self.report.count == before and len(spec["layer_kinds"]) == spec["layers"]:
            self.trunk = TrunkPlan(spec, self.a_log_length)
            self.experts = ExpertPlan(spec)
            self.check_data_end(INDEX, 0)
            self.check_data_end(TRUNK, self.trunk.end)
            self.check_data_end(EXPERTS, self.experts.end)

    def check_spec(self, spec):
        def wrong(name, message):
            self.report.add(*self.at(MODEL_SPEC, SPEC.offsets.get(name, SPEC.size)),
                            f"MODEL_SPEC: {name} {message}")

        for name in SPEC_COUNTS:
            low, high = SPEC_MIN.get(name, 1), SPEC_MAX.get(name, 1 << 20)
            if not low <= spec[name] <= high:
                wrong(name, f"is {spec[name]}, must be {low}..{high}")
        for name in SPEC_FLOATS:
            if not math.isfinite(spec[name]):
                wrong(name, "is not finite")
        for name, other in (("dense_layers", "layers"), ("experts_per_token", "experts")):
            if spec[name] > spec[other]:
                wrong(name, f"is {spec[name]}, more than {other}")
        for name in ("latent", "expert_intermediate"):
            if spec[name] % 32:
                wrong(name, f"is {spec[name]}, not a multiple of 32")
        if set(spec["layer_kinds"]) - {KDA, MLA}:
            wrong("layer_kinds", "has a value other than 0 and 1")

    def a_log_length(self, tensor):
        """The free number in the trunk's layout: read from TRUNK_TENSORS if it is possible."""
        low, raw = self.parsed["model_spec"]["kda_heads"], self.raw.get(TRUNK_TENSORS, b"")
        if (tensor + 1) * TENSOR.size > len(raw):
            return low
        length = TENSOR.parse(raw, tensor * TENSOR.size)["cols"]
        return length if low <= length <= A_LOG_MAX else low

    # Section 7.

    def read_trunk(self):
        extents = self.read_array(TRUNK_EXTENTS, EXTENT, "trunk_extents")
        tensors = self.read_array(TRUNK_TENSORS, TENSOR, "trunk_tensors")
        digests = self.need(TRUNK_DIGESTS)
        self.parsed["trunk_digests"] = [digests[i:i + 16].hex()
                                        for i in range(0, len(digests), 16)]
        if not self.trunk:
            return
        self.match_array(TRUNK_EXTENTS, EXTENT, extents, self.trunk.extents)
        self.match_array(TRUNK_TENSORS, TENSOR, tensors, self.trunk.tensors)
        self.check_length(TRUNK_DIGESTS, 16 * self.trunk.blocks)

    def read_array(self, kind, layout, key):
        data, what = self.need(kind), SECTION_NAMES[kind - 1]
        items = []
        for at in range(0, len(data) - layout.size + 1, layout.size):
            items.append(layout.parse(data, at))
            self.report.spares(*self.at(kind, at), f"{what}[{at // layout.size}]", layout, data, at)
        self.parsed[key] = items
        return items

    def match_array(self, kind, layout, found, expected):
        self.check_length(kind, layout.size * len(expected))
        for i, (item, plan) in enumerate(zip(found, expected)):
            self.report.match(*self.at(kind, i * layout.size), f"{SECTION_NAMES[kind - 1]}[{i}]",
                              layout, item, plan)

    # Section 8.

    def read_experts(self):
        layout = self.read_array(EXPERT_LAYOUT, EXPERT_FIELDS, "expert_layout")
        self.parsed["expert_layout"] = layout[0] if layout else None
        digests = self.need(EXPERT_DIGESTS)
        self.parsed["expert_digests"] = digests
        if self.experts:
            self.match_array(EXPERT_LAYOUT, EXPERT_FIELDS, layout, [self.experts.fields])
            self.check_length(EXPERT_DIGESTS, 16 * self.experts.count)

    # Section 9.

    def read_files(self):
        cursor, files = self.cursor(FILES), []
        self.parsed["files"], self.contents = files, {}
        for _ in range(cursor.number()):
            head = cursor.parse(FILE_HEAD)
            name = cursor.text(head["name_length"])
            content = cursor.take(head["content_length"])
            files.append({"name": name, "content_length": len(content),
                          "digest": digest_of(content)})
            self.contents[name] = content
        cursor.finish()
        names = [file["name"] for file in files]
        if names != [name for name in FILE_NAMES if name in names]:
            raise cursor.damage(f"the files are {names}, must be some of {list(FILE_NAMES)} in"
                                " this order")
        for name in FILES_REQUIRED:
            if name not in names:
                self.report.add(*cursor.place, f"FILES: {name} is missing")

    def read_shards(self):
        cursor = self.cursor(SHARDS)
        shards, names = [], []
        for i in range(cursor.number()):
            head = cursor.parse(SHARD_HEAD)
            names.append(cursor.take(head.pop("name_length")))
            shards.append({"name": names[-1].decode("utf-8", "backslashreplace"), **head})
            if head["flags"] > 1:
                self.report.add(*cursor.place, f"SHARDS[{i}]: unknown flags {head['flags']}")
            if not head["flags"] & 1 and head["sha256"] != "00" * 32:
                self.report.add(*cursor.place, f"SHARDS[{i}]: a SHA-256 that is not known")
            if names[-1] in (b"", b".", b"..") or b"/" in names[-1] or b"\0" in names[-1]:
                self.report.add(*cursor.place, f"SHARDS[{i}]: not a file name")
        cursor.finish()
        self.parsed["shards"] = shards
        if names != sorted(set(names)):
            self.report.add(*cursor.place, "SHARDS: names do not ascend strictly")

    def check_span(self, kind, what, source):
        """A source lies inside its shard."""
        shards = self.parsed.get("shards")
        if shards is None:
            return
        if source["shard"] >= len(shards):
            self.report.add(*self.at(kind), f"{what}: shard {source['shard']} of {len(shards)}")
        elif source["offset"] + source["bytes"] > shards[source["shard"]]["file_bytes"]:
            self.report.add(*self.at(kind), f"{what}: reaches beyond the end of its shard")

    def read_trunk_sources(self):
        cursor, sources = self.cursor(TRUNK_SOURCES), []
        for i in range(cursor.number()):
            head = cursor.parse(SOURCE_HEAD)
            if not 1 <= head["ndim"] <= 3:
                raise cursor.damage(f"[{i}]: ndim is {head['ndim']}, must be 1..3")
            length = head.pop("name_length")
            shape = [cursor.number("Q") for _ in range(head["ndim"])]
            tail = cursor.parse(SOURCE_TAIL)
            sources.append({"name": cursor.text(length), **head, "shape": shape, **tail})
            self.check_span(TRUNK_SOURCES, f"TRUNK_SOURCES[{i}]", sources[-1])
        cursor.finish()
        self.parsed["trunk_sources"] = sources
        if not self.trunk:
            return
        if len(sources) != len(self.trunk.sources):
            self.report.add(*cursor.place, f"TRUNK_SOURCES has {len(sources)} records, must have"
                                           f" {len(self.trunk.sources)}")
        for i, (found, plan) in enumerate(zip(sources, self.trunk.sources)):
            for field in ("name", "dtype", "ndim", "shape", "bytes"):
                if found[field] != plan[field]:
                    self.report.add(*cursor.place, f"TRUNK_SOURCES[{i}]: {field} is {found[field]},"
                                                   f" must be {plan[field]}")

    def read_expert_sources(self):
        data = self.need(EXPERT_SOURCES)
        self.parsed["expert_sources"] = data
        if not self.experts:
            return
        self.check_length(EXPERT_SOURCES, self.experts.count * 6 * EXPERT_SOURCE.size)
        sizes = [math.prod(self.experts.part_shape(part)) for part in range(6)]
        for i in range(len(data) // EXPERT_SOURCE.size):
            what, source = f"EXPERT_SOURCES[{i}]", self.expert_source(i)
            self.report.spares(*self.at(EXPERT_SOURCES), what, EXPERT_SOURCE, data,
                               i * EXPERT_SOURCE.size)
            if source["bytes"] != sizes[i % 6]:
                self.report.add(*self.at(EXPERT_SOURCES), f"{what}: bytes is {source['bytes']},"
                                                          f" must be {sizes[i % 6]}")
            self.check_span(EXPERT_SOURCES, what, source)

    def expert_source(self, i):
        data = self.parsed["expert_sources"]
        if (i + 1) * EXPERT_SOURCE.size > len(data):
            return None
        return EXPERT_SOURCE.parse(data, i * EXPERT_SOURCE.size)

    # The source bytes of tensors.

    def trunk_bytes(self, source):
        """The bytes of a trunk source, in pieces; problems of the stored form are reported."""
        plan = self.trunk.sources[source]
        file = self.files[TRUNK]
        stored = [StoredTensor(file, self.trunk.tensors[i], self.report) for i in plan["tensors"]]
        if len(stored) == 2:
            return keys_and_values(*stored)
        return stored[0].source_bytes(self.trunk.spec["kda_heads"])

    def expert_extent(self, expert):
        file = self.files[EXPERTS]
        return file.read(self.experts.offset(expert), self.experts.fields["used_bytes"])

    def expert_bytes(self, expert, extent):
        """The six parts of an expert, in the order of EXPERT_PARTS."""
        return expert_parts(self.experts, extent, lambda at, message: self.report.add(
            EXPERTS, self.experts.offset(expert) + at, message))


# ---------------------------------------------------------------------------------------------
# The inverse of the encodings.


class StoredTensor:
    def __init__(self, file, fields, report):
        self.file, self.fields, self.report = file, fields, report
        self.rows, self.cols = fields["rows"], fields["cols"]
        self.line = round_up(self.cols, 128)

    def wrong(self, at, message):
        self.report.add(self.file.name, at, f"layer {self.fields['layer']} role"
                                            f" {self.fields['role']}: {message}")

    def source_bytes(self, kda_heads):
        encoding = self.fields["encoding"]
        if encoding == B16:
            return (rows.tobytes() for rows in self.tiles(0))
        if encoding == ROWS:
            return self.plain_rows()
        return self.floats(kda_heads)

    def array(self, at, count, dtype):
        return np.frombuffer(self.file.read(at, count), dtype)

    def check_bf16(self, at, values):
        if (values & 0x7F80 == 0x7F80).any():
            self.wrong(at, "a weight is not finite")

    def tiles(self, matrix, whole=False):
        """Rows of a B16 matrix, some tiles at a time (all, if whole)."""
        tile_bytes, count = 32 * self.line, -(-self.rows // 16)
        start = self.fields["file_offset"] + matrix * count * tile_bytes
        step = count if whole else max(1, PIECE_BYTES // tile_bytes)
        for first in range(0, count, step):
            tiles, at = min(step, count - first), start + first * tile_bytes
            pairs = self.array(at, tiles * tile_bytes, "<u2").reshape(tiles, self.line // 2, 16, 2)
            values = pairs.transpose(0, 2, 1, 3).reshape(tiles * 16, self.line)
            rows = min(self.rows - first * 16, tiles * 16)
            if values[rows:].any() or values[:, self.cols:].any():
                self.wrong(at, "padding rows or columns are not zero")
            self.check_bf16(at, values[:rows, :self.cols])
            yield values[:rows, :self.cols]

    def plain_rows(self):
        at, end = self.fields["file_offset"], self.fields["stored_bytes"]
        end += at
        while at < end:
            values = self.array(at, min(PIECE_BYTES, end - at), "<u2")
            self.check_bf16(at, values)
            at += values.nbytes
            yield values.tobytes()

    def floats(self, kda_heads):
        at = self.fields["file_offset"]
        bits = self.array(at, self.fields["stored_bytes"], "<u4")
        used = bits[:kda_heads] if self.fields["role"] == ROLE_A_LOG else bits
        if (used & 0x7F800000 == 0x7F800000).any():
            self.wrong(at, "a weight is not finite")
        if self.fields["encoding"] == TAPS:
            bits = bits.reshape(self.rows, self.cols).T
        if self.fields["source_dtype"] == DTYPES["BF16"]:
            if (bits & 0xFFFF).any():
                self.wrong(at, "a float is not a widened BF16")
            bits = (bits >> 16).astype("<u2")
        yield bits.tobytes()


def keys_and_values(keys, values):
    """kv_b_proj: per head the rows of the (transposed) keys, then those of the values."""
    for head in range(keys.fields["matrix_count"]):
        for key in keys.tiles(head, whole=True):
            yield key.T.tobytes()
        for value in values.tiles(head, whole=True):
            yield value.tobytes()


def expert_parts(plan, extent, wrong):
    data = np.frombuffer(extent, np.uint8)
    w2_offset = plan.fields["w2_offset"]
    w2_end = w2_offset + plan.w2_bytes
    for start, end in ((plan.pair_bytes, w2_offset), (w2_end, len(data))):
        if data[start:end].any():
            wrong(start, "padding in the extent is not zero")
    wide, latent = plan.shapes["w1"]
    pair = data[:plan.pair_bytes].reshape(-(-wide // 16), 2, -1)
    stored = {"w1": (0, pair[:, 0]), "w2": (w2_offset, data[w2_offset:w2_end]),
              "w3": (0, pair[:, 1])}
    parts = []
    for matrix, (at, tiles) in stored.items():
        rows, cols = plan.shapes[matrix]
        lines = tiles.reshape(-(-rows // 16), -(-cols // 128), 17, 64)
        parts += m4_parts(lines, rows, cols, lambda text: wrong(at, f"{matrix}: {text}"))
    return parts


def m4_parts(lines, rows, cols, wrong):
    """The packed nibbles and the scales of an M4 matrix; lines is [tile][128 columns][line][64]."""
    tiles, blocks = lines.shape[:2]
    scales = lines[:, :, 0].reshape(tiles, blocks, 4, 16).transpose(0, 3, 1, 2)
    scales = scales.reshape(tiles * 16, blocks * 4)
    packed = lines[:, :, 1:].reshape(tiles, blocks, 16, 16, 4).transpose(0, 3, 1, 2, 4)
    packed = packed.reshape(tiles * 16, blocks * 64)
    for array, used in ((scales, cols // 32), (packed, cols // 2)):
        if array[rows:].any() or array[:, used:].any():
            wrong("padding rows or columns are not zero")
    scales, packed = scales[:rows, :cols // 32], packed[:rows, :cols // 2]
    if (scales >= 253).any():
        wrong("a scale code is above 252")
    magnitudes = (packed & 0x77).reshape(rows, cols // 32, 16).any(axis=2)
    if (magnitudes & (scales == 0)).any():
        wrong("a group with scale code 0 has weights that are not zero")
    return packed.tobytes(), scales.tobytes()


# ---------------------------------------------------------------------------------------------
# The commands.


def check_trunk(pack):
    file, digests = pack.files.get(TRUNK), pack.raw.get(TRUNK_DIGESTS, b"")
    if not (file and pack.trunk):
        return
    for extent in pack.trunk.extents:
        pack.attempt(check_blocks, file, extent, digests, pack.report)
        pack.attempt(check_tensor_padding, file, extent, pack)
    recorded = pack.parsed.get("trunk_sources", [])
    for i, source in enumerate(pack.trunk.sources):
        digest = pack.attempt(stream_digest, pack.trunk_bytes(i))
        if digest and i < len(recorded) and digest != recorded[i]["digest"]:
            at = pack.trunk.tensors[source["tensors"][0]]["file_offset"]
            pack.report.add(TRUNK, at, f"{source['name']}: the source's digest is {digest},"
                                       f" recorded is {recorded[i]['digest']}")


def check_blocks(file, extent, digests, report):
    for first in range(0, extent["used_bytes"], BLOCK_BYTES):
        number, at = extent["block_first"] + first // BLOCK_BYTES, extent["file_offset"] + first
        data = file.read(at, min(BLOCK_BYTES, extent["used_bytes"] - first))
        if digests and digests[16 * number:16 * number + 16].hex() != digest_of(data):
            report.add(file.name, at, f"block {number}: the digest is wrong")


def check_tensor_padding(file, extent, pack):
    first, count = extent["tensor_first"], extent["tensor_count"]
    tensors = pack.trunk.tensors[first:first + count]
    starts = [tensor["file_offset"] for tensor in tensors[1:]]
    for tensor, end in zip(tensors, (*starts, extent["file_offset"] + extent["used_bytes"])):
        check_zero(file, tensor["file_offset"] + tensor["stored_bytes"], end,
                   "padding after a tensor", pack.report)


def stream_digest(pieces):
    digest = Digest()
    for piece in pieces:
        digest.update(piece)
    return digest.hex()


def check_experts(pack):
    if EXPERTS in pack.files and pack.experts:
        for expert in range(pack.experts.count):
            if pack.experts.offset(expert) >= pack.files[EXPERTS].size:
                pack.report.add(EXPERTS, pack.experts.offset(expert),
                                f"expert {expert} and those behind it are beyond the end")
                return
            pack.attempt(check_expert, pack, expert)


def check_expert(pack, expert):
    extent, digests = pack.expert_extent(expert), pack.raw.get(EXPERT_DIGESTS)
    at = pack.experts.offset(expert)
    if digests and digests[16 * expert:16 * expert + 16].hex() != digest_of(extent):
        pack.report.add(EXPERTS, at, f"expert {expert}: the digest is wrong")
    parts = pack.expert_bytes(expert, extent)
    for part, data in enumerate(parts if "expert_sources" in pack.parsed else []):
        source = pack.expert_source(expert * 6 + part)
        if source and source["digest"] != digest_of(data):
            pack.report.add(EXPERTS, at, f"{pack.experts.name(expert, part)}: the source's digest"
                                         f" is {digest_of(data)}, recorded is {source['digest']}")


def command_check(options):
    report = Report(sys.stdout)
    try:
        pack = Pack(options.pack, report)
        if not options.quick:
            check_trunk(pack)
            check_experts(pack)
    except Exception as error:          # whatever the damage: a line of output, not a traceback
        report.add(INDEX, 0, f"checking stopped: {type(error).__name__}: {error}")
    return report.count


def command_dump(options):
    report = Report(sys.stderr)
    pack = Pack(options.pack, report)
    parsed = pack.parsed
    digests, sources = parsed.get("expert_digests"), parsed.get("expert_sources")
    if digests is not None:
        parsed["expert_digests"] = [digests[i:i + 16].hex() for i in range(0, len(digests), 16)]
    if sources is not None:
        parsed["expert_sources"] = [EXPERT_SOURCE.parse(sources, i * EXPERT_SOURCE.size)
                                    for i in range(len(sources) // EXPERT_SOURCE.size)]
    json.dump({"superblocks": {name: file.superblock for name, file in pack.files.items()},
               "section_tables": {name: file.sections for name, file in pack.files.items()},
               **parsed}, sys.stdout, indent=1)
    print()
    return report.count


def command_tensor(options):
    report = Report(sys.stderr)
    pack = Pack(options.pack, report)
    if report.count:
        return report.count
    pieces, recorded = find_tensor(pack, options.name)
    if pieces is None:
        sys.exit(f"{options.name}: the pack has no such tensor")
    if options.out:
        with open(options.out, "wb") as out:
            found = write_pieces(pieces, out)
    else:
        found = write_pieces(pieces, None if options.digest else sys.stdout.buffer)
    if options.digest:
        print(found)
    if found != recorded:
        report.add(options.name, 0, f"the digest is {found}, recorded is {recorded}")
    return report.count


def write_pieces(pieces, out):
    """Write them, if out is a stream; return their digest."""
    digest = Digest()
    for piece in pieces:
        digest.update(piece)
        if out:
            out.write(piece)
    return digest.hex()


def find_tensor(pack, name):
    for i, source in enumerate(pack.parsed["trunk_sources"]):
        if source["name"] == name:
            return pack.trunk_bytes(i), source["digest"]
    place = pack.experts.find(name)
    if not place:
        return None, None
    expert, part = place
    parts = pack.expert_bytes(expert, pack.expert_extent(expert))
    return [parts[part]], pack.expert_source(expert * 6 + part)["digest"]


class Shard(PackFile):
    """A safetensors file; tensors[name] = (dtype, shape, offset in the file, bytes)."""

    HEADER_MAX = 128 * MIB

    def __init__(self, directory, name):
        super().__init__(directory, name)
        length, = struct.unpack("<Q", self.read(0, 8))
        if length > self.HEADER_MAX:
            raise Damage(name, 0, f"a header of {length} bytes")
        try:
            header = json.loads(self.read(8, length))
            header.pop("__metadata__", None)
            self.tensors = {key: self.place(item, 8 + length) for key, item in header.items()}
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise Damage(name, 8, f"the header cannot be read: {error}") from None

    @staticmethod
    def place(item, data_start):
        start, end = item["data_offsets"]
        return item["dtype"], item["shape"], data_start + start, end - start


class Comparison:
    def __init__(self, pack, directory):
        self.pack, self.report, self.directory = pack, pack.report, directory
        self.tensors = self.bytes = 0
        self.shards, self.found = {}, {}
        for name in sorted(os.listdir(directory)):
            if name.endswith(".safetensors"):
                pack.attempt(self.open_shard, name)

    def open_shard(self, name):
        shard = self.shards[name] = Shard(self.directory, name)
        for tensor in shard.tensors:
            if tensor in self.found:
                self.report.add(name, 0, f"{tensor} is also in {self.found[tensor].name}")
            self.found[tensor] = shard

    def check_files(self):
        for name in FILE_NAMES:
            try:
                with open(os.path.join(self.directory, name), "rb") as stream:
                    content = stream.read()
            except FileNotFoundError:
                content = None
            if content != self.pack.contents.get(name):
                self.report.add(*self.pack.at(FILES), f"{name} is not that of the checkpoint")

    def check_shards(self):
        for record in self.pack.parsed["shards"]:
            shard = self.shards.get(record["name"])
            if not shard:
                self.report.add(record["name"], 0, "the checkpoint has no such shard")
            else:
                self.pack.attempt(self.check_shard, shard, record)

    def check_shard(self, shard, record):
        if shard.size != record["file_bytes"]:
            self.report.add(shard.name, 0, f"has {shard.size} bytes, recorded are"
                                           f" {record['file_bytes']}")
        digest, sha256 = Digest(), hashlib.sha256()
        for at in range(0, shard.size, PIECE_BYTES):
            data = shard.read(at, min(PIECE_BYTES, shard.size - at))
            digest.update(data)
            if record["flags"] & 1:
                sha256.update(data)
        if digest.hex() != record["digest"]:
            self.report.add(shard.name, 0, "the recorded digest is another")
        if record["flags"] & 1 and sha256.hexdigest() != record["sha256"]:
            self.report.add(shard.name, 0, "the recorded SHA-256 is another")

    def check_source(self, name, dtype, shape, source, pieces):
        shard = self.found.pop(name, None)
        self.tensors += 1
        if not shard:
            self.report.add(INDEX, 0, f"{name} is not in the checkpoint")
            return
        place = shard.tensors[name]
        recorded = (dtype, shape, source["offset"], source["bytes"])
        if place != recorded or shard.name != self.pack.parsed["shards"][source["shard"]]["name"]:
            self.report.add(shard.name, place[2], f"{name} is {place}, recorded is {recorded} in"
                                                  f" shard {source['shard']}")
        digest, at = Digest(), place[2]
        for piece in pieces:
            data = shard.read(at, len(piece))
            digest.update(data)
            if data != piece:
                at += next(i for i, (a, b) in enumerate(zip(data, piece)) if a != b)
                self.report.add(shard.name, at, f"{name} differs from the pack here")
                return
            at += len(piece)
            self.bytes += len(piece)
        if at != place[2] + place[3]:
            self.report.add(shard.name, at, f"{name} has another size in the pack")
        if digest.hex() != source["digest"]:
            self.report.add(shard.name, place[2], f"{name}: the recorded digest is another")

    def check_sources(self):
        pack = self.pack
        for i, source in enumerate(pack.parsed["trunk_sources"]):
            pack.attempt(self.check_source, source["name"], DTYPE_NAMES[source["dtype"]],
                         source["shape"], source, pack.trunk_bytes(i))
        for expert in range(pack.experts.count):
            pack.attempt(self.check_expert, expert)
        for name, shard in self.found.items():
            if name.startswith("language_model."):
                self.report.add(shard.name, shard.tensors[name][2], f"{name} is not in the pack")

    def check_expert(self, expert):
        plan = self.pack.experts
        parts = self.pack.expert_bytes(expert, self.pack.expert_extent(expert))
        for part, data in enumerate(parts):
            self.check_source(plan.name(expert, part), "U8", plan.part_shape(part),
                              self.pack.expert_source(expert * 6 + part), [data])


def command_compare(options):
    report = Report(sys.stdout)
    pack = Pack(options.pack, report)
    if report.count:
        return report.count
    comparison = Comparison(pack, options.checkpoint)
    comparison.check_files()
    comparison.check_shards()
    comparison.check_sources()
    print(f"{comparison.tensors} tensors, {comparison.bytes} equal bytes, {len(comparison.shards)}"
          f" shards: {report.count} problems")
    return report.count


def parse_arguments(arguments):
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    def command(name, function, text):
        sub = commands.add_parser(name, help=text, description=text)
        sub.add_argument("pack", metavar="PACK_DIR", help="folder with k3.index and its two files")
        sub.set_defaults(run=function)
        return sub

    command("dump", command_dump, "Print every field of every structure as one JSON object.")
    check = command("check", command_check, "Print every problem of the pack, one a line.")
    check.add_argument("--quick", action="store_true",
                       help="leave out the extents: the weights, their padding and their digests")
    tensor = command("tensor", command_tensor,
                     "Write the source bytes of one tensor to the standard output.")
    tensor.add_argument("name", metavar="NAME", help="as in the checkpoint")
    tensor.add_argument("--out", metavar="FILE", help="write them here instead")
    tensor.add_argument("--digest", action="store_true",
                        help="print their XXH3-128 (and write them only where --out says)")
    compare = command("compare", command_compare,
                      "Compare every tensor with those of a checkpoint, byte for byte.")
    compare.add_argument("checkpoint", metavar="CHECKPOINT_DIR", help="folder with the shards")
    return parser.parse_args(arguments)


def main(arguments=None):
    options = parse_arguments(arguments)
    weights = options.command in ("tensor", "compare") or (options.command == "check"
                                                           and not options.quick)
    if weights and np is None:
        sys.exit("this needs numpy (check --quick does not)")
    try:
        return EXIT_BAD if options.run(options) else 0
    except Damage as error:
        print(f"{error.file} {error.at}: {error}", file=sys.stderr)
    except OSError as error:
        print(f"read_pack.py: {error}", file=sys.stderr)
    return EXIT_BAD


if __name__ == "__main__":
    sys.exit(main())
