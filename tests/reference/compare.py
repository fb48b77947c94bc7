#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Compare logits: print max|A-B| / max|B| and say by the exit status whether it is acceptable.

Exit status 0 if the figure is at most --gate; with --at-least X, if it is X or more (to show that
a fault is visible).  1 otherwise, and always when the two cannot be compared: shapes differ, or B
is empty, zero or not finite.  A that is not finite counts as infinitely far from B.
"""

import argparse
import math
import sys

import numpy as np


def relative_difference(a, b):
    """max|a-b| / max|b| as float; ValueError if the arrays cannot be compared."""
    if a.shape != b.shape:
        raise ValueError(f"shapes differ: {list(a.shape)} and {list(b.shape)}")
    if a.size == 0:
        raise ValueError("there is nothing to compare")
    a, b = a.astype(np.float64), b.astype(np.float64)
    if not np.isfinite(b).all():
        raise ValueError("the second array has a value that is not finite")
    scale = np.abs(b).max()
    if scale == 0:
        raise ValueError("the second array is zero everywhere")
    if not np.isfinite(a).all():
        return math.inf
    return float(np.abs(a - b).max() / scale)


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("a", metavar="A.npy")
    parser.add_argument("b", metavar="B.npy", help="the one to trust")
    parser.add_argument("--gate", type=float, default=3e-5, help="largest allowed (%(default)s)")
    parser.add_argument("--at-least", type=float, metavar="X", help="smallest allowed, no gate")
    arguments = parser.parse_args(argv)
    try:
        figure = relative_difference(np.load(arguments.a), np.load(arguments.b))
    except (OSError, ValueError) as failure:
        print(f"compare: {failure}", file=sys.stderr)
        return 1
    print(f"{figure:.3e}")
    if arguments.at_least is not None:
        return 0 if figure >= arguments.at_least else 1
    return 0 if figure <= arguments.gate else 1


if __name__ == "__main__":
    sys.exit(main())
