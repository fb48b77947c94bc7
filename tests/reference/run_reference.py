#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Run the reference on a checkpoint: feed a prompt, generate greedily, write logits and ids.

Generation takes the largest logit, the lower id on a tie, and does not stop at end tokens.
Generated ids go to stdout, comma separated; progress goes to stderr.
"""

import argparse
import json
import os
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import numpy as np

from checkpoint import Checkpoint, CheckpointError
from faults import FAULTS
from model import MLA_EPS, ConfigError, Model


def parse_ids(text):
    """'1,2,3' -> [1, 2, 3]."""
    return [int(part) for part in text.split(",")]


class ListFaults(argparse.Action):
    """--list-faults: print them and exit, without asking for a checkpoint."""

    def __call__(self, parser, *_):
        width = max(map(len, FAULTS))
        for name, meaning in FAULTS.items():
            print(f"{name:{width}}  {meaning}")
        parser.exit()


def parse_arguments(argv):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("checkpoint", help="folder with config.json and *.safetensors")
    parser.add_argument("--ids", type=parse_ids, required=True, metavar="1,2,3", help="the prompt")
    parser.add_argument("-n", type=int, default=0, metavar="N", help="tokens to generate (0)")
    parser.add_argument("--logits", metavar="OUT.npy",
                        help="float64, one row per sampled position; the last prompt position if"
                             " N is 0")
    parser.add_argument("--all-logits", action="store_true",
                        help="one row per position fed: the prompt, then each generated token"
                             " but the last")
    parser.add_argument("--ids-out", metavar="FILE", help="the generated ids, one line")
    parser.add_argument("--routes", metavar="OUT.json", help="chosen experts per token and layer")
    parser.add_argument("--mla-eps", type=float, default=MLA_EPS, metavar="EPS",
                        help="eps of the two MLA low-rank norms (%(default)s)")
    parser.add_argument("--fault", choices=FAULTS, metavar="NAME", help="commit one misreading")
    parser.add_argument("--list-faults", action=ListFaults, nargs=0, help="print the misreadings")
    arguments = parser.parse_args(argv)
    if arguments.n < 0:
        parser.error("-n must not be negative")
    return arguments


def generate(model, prompt, count, all_logits, on_token=lambda token: None):
    """Return (generated ids, logits [rows, vocab], state).

    rows: max(count, 1); with all_logits, len(prompt) + max(count, 1) - 1.
    """
    state = model.new_state()
    rows = [model.forward(prompt, state, all_logits)]
    generated = []
    while len(generated) < count:
        if generated:
            rows.append(model.forward(generated[-1:], state))
        generated.append(int(np.argmax(rows[-1][-1])))        # the first of equal maxima
        on_token(generated[-1])
    return generated, np.concatenate(rows), state


def write_routes(path, fed, routes):
    """One object per token fed: its id, and by layer the experts and the margin of the choice."""
    tokens = [{"id": token,
               "experts": {str(layer): experts for layer, (experts, _) in route.items()},
               "margin": {str(layer): margin for layer, (_, margin) in route.items()}}
              for token, route in zip(fed, routes)]
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"tokens": tokens}, file)
        file.write("\n")


def main(argv=None):
    arguments = parse_arguments(argv)
    started = time.monotonic()

    def progress(message):
        print(f"run_reference: {time.monotonic() - started:8.2f} s  {message}", file=sys.stderr)

    try:
        with Checkpoint(arguments.checkpoint, arguments.fault) as checkpoint:
            progress("shard headers read")
            model = Model(checkpoint, arguments.mla_eps)
            progress(f"{model.config.layers} layers opened")
            generated, logits, state = generate(
                model, arguments.ids, arguments.n, arguments.all_logits,
                lambda token: progress(f"token {token}"))
    except (CheckpointError, ConfigError, OSError, ValueError) as failure:
        print(f"run_reference: {failure}", file=sys.stderr)
        return 1

    line = ",".join(map(str, generated))
    print(line)
    if arguments.logits:
        np.save(arguments.logits, logits)
    if arguments.ids_out:
        with open(arguments.ids_out, "w", encoding="utf-8") as file:
            file.write(line + "\n")
    if arguments.routes:
        write_routes(arguments.routes, arguments.ids + generated, state.routes)
    progress("done")
    return 0


if __name__ == "__main__":
    sys.exit(main())
