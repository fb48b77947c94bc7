#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Check that a checkpoint exposes misreadings: run the reference right, then with each fault.

Prints how far each fault moves the logits of the last prompt position, max|difference| over
max|logit|, and fails if one moves them by less than ten times the gate that programs are held to.
Prints also how close the right run comes to a discrete change: the smallest margins of its
greedy choices and of its routers (exact ties apart, which the tie rule decides).
"""

import argparse
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import numpy as np

from checkpoint import Checkpoint
from compare import relative_difference
from faults import FAULTS
from model import Model
from run_reference import generate, parse_ids

# Layers of the checkpoint (at most) and its gate.
GATES = ((11, 3e-5), (17, 5e-5), (93, 3e-4))
FACTOR = 10
INVISIBLE = {"no-renormalise"}          # cancelled by routed_expert_norm, wherever eps is small
PROMPT = [11, 222, 33, 104, 5, 6, 7, 8, 260, 100, 2, 50]


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkpoint", metavar="CHECKPOINT")
    parser.add_argument("--ids", type=parse_ids, default=PROMPT, metavar="1,2,3",
                        help="the prompt (twelve ids below 261)")
    parser.add_argument("-n", type=int, default=32, metavar="N",
                        help="greedy steps whose margins are measured (32)")
    parser.add_argument("--gate", type=float, help="default: by the number of layers, "
                        + ", ".join(f"{gate} up to {layers}" for layers, gate in GATES))
    return parser.parse_args()


def last_logits(folder, ids, fault):
    with Checkpoint(folder, fault) as checkpoint:
        model = Model(checkpoint)
        return model.forward(ids, model.new_state())


def distance(wrong, right):
    """max|difference| / max|right|; infinite where the wrong run is not finite."""
    return relative_difference(wrong, right) if np.isfinite(wrong).all() else np.inf


def default_gate(layers):
    return next((gate for limit, gate in GATES if layers <= limit), GATES[-1][1])


def print_margins(arguments):
    """Run right; return the logits after the prompt and the gate."""
    with Checkpoint(arguments.checkpoint) as checkpoint:
        model = Model(checkpoint)
        generated, logits, state = generate(model, arguments.ids, max(arguments.n, 1), False)
        layers = model.config.layers
    top = np.sort(logits, axis=1)[:, -2:]
    greedy = (top[:, 1] - top[:, 0]) / np.abs(logits).max(axis=1)
    margins = [margin for route in state.routes for _, margin in route.values()]
    routers = [margin for margin in margins if margin > 0]
    print(f"logits: rms {logits.std():.3g}, max {np.abs(logits).max():.3g}; "
          f"{len(set(generated))} different ids in {len(generated)} steps")
    print(f"smallest greedy margin   {greedy.min():.1e} of max|logit|")
    print(f"smallest router margin   {min(routers, default=np.inf):.1e} "
          f"({len(margins) - len(routers)} exact ties in {len(margins)} choices)")
    gate = arguments.gate if arguments.gate is not None else default_gate(layers)
    return logits[:1], gate


def main():
    arguments = parse_arguments()
    right, gate = print_margins(arguments)
    print(f"each fault must move the logits by {FACTOR * gate:.1e}, {FACTOR} times the gate")
    failures = 0
    for fault in FAULTS:
        with np.errstate(over="ignore", invalid="ignore"):
            moved = distance(last_logits(arguments.checkpoint, arguments.ids, fault), right)
        is_enough = moved >= FACTOR * gate
        verdict = "" if is_enough else "too little"
        if fault in INVISIBLE:
            verdict = "" if is_enough else "too little, as expected"
        elif not is_enough:
            failures += 1
        print(f"  {fault:24} {moved:9.1e}  {verdict}".rstrip())
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
