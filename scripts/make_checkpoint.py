#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Make a synthetic Kimi K3 checkpoint in the released format.

Names, dtypes, shapes, file layout, config and tokenizer files follow the release; dimensions
and weights follow the preset:

  tiny         11 layers, every dimension different, a few MB; weights that expose misreadings
  mid          17 layers, tens of MB; weights as in tiny
  deep         93 layers in the released layer map and 96 shards, toy widths; weights as in tiny
  fuzz         3 layers of the smallest dimensions, for damage tests and as a fuzzing seed
  wide         released widths, few layers and experts, real random data of any size
  sparse-full  released dimensions and shard sizes (1.56 TB), data are holes but for a salt of
               half a gigabyte that a forward pass depends on; 0.75 GB of disk. Prompt ids: those
               below 1024 and multiples of 1111, such as 11,222,3333

The same seed gives the same bytes. A tensor's bytes depend on the preset, the seed and its name,
not on the layout:

  released     a shard per layer, then top level, projector, vision tower
  single       one file
  split        every layer over two shards, cut inside an expert
  shuffled     tensors in random shards and order, header entries in another, with __metadata__
"""

import argparse
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent))

from checkpoint_maker import config, presets, release_facts, shards, vocabulary  # noqa: E402

def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--preset", required=True, choices=presets.NAMES)
    parser.add_argument("--seed", type=int, default=0, help="of all random values (default 0)")
    parser.add_argument("--layout", choices=shards.LAYOUTS,
                        help="default: released; for fuzz: single")
    parser.add_argument("--no-index", action="store_true",
                        help="write no model.safetensors.index.json")
    parser.add_argument("--without-vision", action="store_true",
                        help="leave out the vision tower and its projector (wide has none)")
    parser.add_argument("--force", action="store_true",
                        help="replace the checkpoint that OUT_DIR holds")
    wide = parser.add_argument_group("for wide")
    wide.add_argument("--layers", type=int, default=3, metavar="N",
                      help="layers, at least 2; every fourth and the last are MLA (default 3)")
    wide.add_argument("--experts", type=int, default=32, metavar="N",
                      help="experts per layer (default 32)")
    wide.add_argument("--vocab", type=int, default=163840, metavar="N",
                      help="tokens, the 256 added ones included (default 163840)")
    parser.add_argument("out_dir", metavar="OUT_DIR", type=pathlib.Path)
    arguments = parser.parse_args()
    if arguments.layers < 2 or arguments.experts < 1 or arguments.vocab < 512:
        parser.error("--layers must be at least 2, --experts 1, --vocab 512")
    return arguments


def prepare_directory(out_dir: pathlib.Path, force: bool) -> None:
    out_dir.mkdir(parents=True, exist_ok=True)
    if not any(out_dir.iterdir()):
        return
    if not force:
        sys.exit(f"make_checkpoint.py: '{out_dir}' is not empty (--force replaces a checkpoint)")
    for pattern in ("model*.safetensors", shards.INDEX_NAME, "config.json"):
        for path in out_dir.glob(pattern):
            path.unlink()


def write_tensors(preset: presets.Preset, arguments: argparse.Namespace) -> str:
    layout = shards.LAYOUTS[arguments.layout or preset.layout]
    with_vision = preset.wants_vision and not arguments.without_vision
    plan = layout(preset.dims, with_vision, arguments.seed)
    if preset.dims == presets.RELEASED and layout == shards.released_layout and with_vision:
        release_facts.check_released_sizes(preset.dims, plan)
    content = preset.content(arguments.seed)
    file_bytes = real_bytes = 0
    for shard in plan:
        sizes = shards.write_shard(arguments.out_dir, shard, content)
        file_bytes, real_bytes = file_bytes + sizes[0], real_bytes + sizes[1]
    if not arguments.no_index:
        (arguments.out_dir / shards.INDEX_NAME).write_text(shards.index_json(plan))
    return f"{len(plan)} shards, {file_bytes:,} bytes, {real_bytes:,} of them tensor data on disk"


def write_text_files(preset: presets.Preset, out_dir: pathlib.Path) -> None:
    """config.json comes last: without it the directory is no checkpoint."""
    ranks = vocabulary.make_ranks(preset.dims.ranks)
    (out_dir / "tiktoken.model").write_bytes(vocabulary.tiktoken_model(ranks))
    (out_dir / "tokenizer_config.json").write_text(vocabulary.tokenizer_config(len(ranks)))
    (out_dir / "generation_config.json").write_text(config.generation_config_json(preset.dims))
    (out_dir / "config.json").write_text(config.config_json(preset.dims))


def main() -> None:
    arguments = parse_arguments()
    started = time.monotonic()
    preset = presets.make_preset(arguments.preset, arguments.layers, arguments.experts,
                                 arguments.vocab)
    prepare_directory(arguments.out_dir, arguments.force)
    summary = write_tensors(preset, arguments)
    write_text_files(preset, arguments.out_dir)
    print(f"{arguments.out_dir}: {arguments.preset}, {summary}, "
          f"{time.monotonic() - started:.1f} s")


if __name__ == "__main__":
    main()
