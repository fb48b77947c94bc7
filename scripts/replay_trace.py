#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Replays a trace of expert requests through caches of several sizes and policies.

usage: replay_trace.py TRACE [--gb 8,16,32,...] [--as-recorded] [--warm N]

TRACE holds little-endian int32 pairs (layer, expert) in the order of the requests: for each pass,
layer by layer, the top-k experts of each of its tokens. A recording that processed its prefix anew
at every step (each pass a token longer than the last) is turned into what a decoder without that
habit would ask for: the last pass, token by token. --as-recorded keeps the passes, each expert of a
layer asked for once per pass, as k3infer does in prefill.

For each memory size the number of expert slots is what k3infer would plan at full scale (trunk
first, experts only after that; docs/memory.md). Printed per policy: hit rate, and gigabytes of
experts read per step (token or pass). Policies:
  lru      least recently used goes first
  cyclic   the same where it was not used for more than a step; else the most recently used, whose
           layer comes round last: what k3infer does
  layered  the first layers keep 16 experts each, or every layer its share, least recently used
           first; where slots are fewer than one token's requests, lru never hits and this does
  freq-N   least frequently used goes first, uses halving in weight every N steps
  belady   the one whose next use is farthest goes first: no policy can do better
"""

import argparse
import collections
import heapq
import math
import sys

import numpy

EXPERT_BYTES = 17_547_264
SLOT_BYTES = 9 << 21
TRUNK_BYTES = 111.25e9
FIXED_BYTES = 1.2e9     # program, states and latents at a context of 1024, window, working memory


def slots_of(gigabytes: float, total: int) -> int:
    spare = gigabytes * 1e9 * (1 - 1 / 512) - FIXED_BYTES - TRUNK_BYTES
    return int(min(total, max(16, spare // SLOT_BYTES)))


def passes_of(pairs, layers, top_k):
    """[pass][layer][token][top_k]: a pass begins where the layer number falls."""
    starts = numpy.flatnonzero(numpy.diff(pairs[:, 0])) + 1
    runs = numpy.split(pairs, starts)
    passes = []
    for run in runs:
        if not passes or run[0, 0] < passes[-1][-1][0]:
            passes.append([])
        passes[-1].append((int(run[0, 0]), run[:, 1].reshape(-1, top_k)))
    for number, each in enumerate(passes):
        if len(each) != layers:
            sys.exit(f"pass {number} has {len(each)} layers, not {layers}")
    return passes


def steps_as_recorded(passes):
    return [[(layer, int(e)) for layer, tokens in each for e in numpy.unique(tokens)]
            for each in passes]


def steps_incremental(passes):
    last = passes[-1]
    for each in passes[:-1]:
        for (_, short), (_, whole) in zip(each, last):
            if (numpy.sort(short, 1) != numpy.sort(whole[:len(short)], 1)).any():
                sys.exit("the passes do not extend one another; use --as-recorded")
    return [[(layer, int(e)) for layer, tokens in last for e in sorted(tokens[t])]
            for t in range(len(last[0][1]))]


def lru(requests, capacity):
    """Yields for each request whether it is a hit."""
    held = collections.OrderedDict()
    for key in requests:
        hit = key in held
        if hit:
            held.move_to_end(key)
        else:
            if len(held) == capacity:
                held.popitem(last=False)
            held[key] = None
        yield hit


def cyclic(step):
    def policy(requests, capacity):
        held, now = collections.OrderedDict(), 0
        for key in requests:
            now += 1
            hit = key in held
            if hit:
                held.move_to_end(key)
            elif len(held) == capacity:
                oldest = next(iter(held))
                held.popitem(last=now - held[oldest] <= step)
            held[key] = now
            yield hit
    return policy


def layered(layers, top_k):
    def policy(requests, capacity):
        share = capacity // layers
        some = capacity // top_k
        held = collections.defaultdict(collections.OrderedDict)
        for key in requests:
            layer = key[0]
            room = share if share >= top_k else (top_k if layer <= some else 0)
            mine = held[layer]
            hit = key in mine
            if hit:
                mine.move_to_end(key)
            elif room > 0:
                if len(mine) == room:
                    mine.popitem(last=False)
                mine[key] = None
            yield hit
    return policy


def frequency(half_life_tokens, per_token):
    """Weights are sums of 2^(time / half-life), kept as logarithms so that they never need aging."""
    def policy(requests, capacity):
        score, heap, held = {}, [], set()
        scale = 1.0 / (half_life_tokens * per_token)
        for now, key in enumerate(requests):
            old = score.get(key)
            new = now * scale
            if old is not None:
                new += math.log2(1 + 2.0 ** (old - new))
            score[key] = new
            hit = key in held
            if not hit:
                if len(held) == capacity:
                    while True:
                        value, victim = heapq.heappop(heap)
                        if victim in held and score[victim] == value:
                            held.remove(victim)
                            break
                held.add(key)
            heapq.heappush(heap, (new, key))
            yield hit
    return policy


def belady(requests, capacity):
    following = [len(requests)] * len(requests)
    last = {}
    for i in range(len(requests) - 1, -1, -1):
        following[i] = last.get(requests[i], len(requests))
        last[requests[i]] = i
    held, heap = {}, []
    for i, key in enumerate(requests):
        hit = key in held
        if not hit and len(held) == capacity:
            while True:
                use, victim = heapq.heappop(heap)
                if held.get(victim) == -use:
                    del held[victim]
                    break
        held[key] = following[i]
        heapq.heappush(heap, (-following[i], key))
        yield hit


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trace")
    parser.add_argument("--gb", default="8,32,96,116,128,160,192,224,256,384,512")
    parser.add_argument("--layers", type=int, default=92, help="layers with experts")
    parser.add_argument("--experts", type=int, default=896, help="of one layer")
    parser.add_argument("--top-k", type=int, default=16)
    parser.add_argument("--as-recorded", action="store_true")
    parser.add_argument("--warm", type=int, default=4, help="steps that are not counted")
    args = parser.parse_args()

    pairs = numpy.fromfile(args.trace, dtype="<i4").reshape(-1, 2)
    passes = passes_of(pairs, args.layers, args.top_k)
    steps = steps_as_recorded(passes) if args.as_recorded else steps_incremental(passes)
    requests = [key for step in steps for key in step]
    skip = sum(len(step) for step in steps[:args.warm])
    if skip >= len(requests):
        sys.exit("the trace is shorter than the warm-up")
    counted = len(steps) - args.warm
    total = args.layers * args.experts
    print(f"{len(pairs)} recorded requests in {len(passes)} passes; replayed: {len(steps)} "
          f"{'passes' if args.as_recorded else 'tokens'}, {len(requests)} requests, "
          f"{len(set(requests))} of {total} experts ever used; counted after {args.warm}")
    mean = len(requests) // len(steps)
    policies = {"lru": lru, "cyclic": cyclic(mean + 2 * args.top_k), "layered": layered(args.layers, args.top_k),
                **{f"freq-{n}": frequency(n, mean) for n in (1, 4, 16)}, "belady": belady}
    print(f"{'GB':>5} {'slots':>6} " + " ".join(f"{name:>17}" for name in policies))
    for gigabytes in (float(word) for word in args.gb.split(",")):
        capacity = slots_of(gigabytes, total)
        cells = []
        for policy in policies.values():
            hits = numpy.fromiter(policy(requests, capacity), dtype=bool)[skip:]
            read = (~hits).sum() / counted * EXPERT_BYTES / 1e9
            cells.append(f"{100 * hits.mean():5.1f} % {read:6.2f} GB")
        print(f"{gigabytes:5.0f} {capacity:6} " + " ".join(f"{cell:>17}" for cell in cells))
    return 0


if __name__ == "__main__":
    sys.exit(main())
