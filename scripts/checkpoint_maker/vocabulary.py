# SPDX-License-Identifier: Apache-2.0
"""tiktoken.model and tokenizer_config.json with any number of ranks.

The ranks are the 256 single bytes in GPT-2 order, then merges learnt from a paragraph of
English, then (when more are wanted) all pairs of bytes, then pairs with a third byte. Every
token of more than one byte is the concatenation of two tokens of lower rank.
"""

import base64
import collections
import itertools
import json

from .model import ADDED_TOKENS

SAMPLE_TEXT = """
The quick brown fox jumps over the lazy dog, and then it goes back to the river where the other
animals are waiting for something to happen. There are a lot of things that we do not know about
the world, but we can learn more about them when we read and write and think. She said that the
children were going to the market with their mother, because they wanted to buy some bread and
some milk for the morning. In the beginning there was nothing at all; in the end there will be
everything that anyone could ever have wanted. What is the time? It is time to go. Please write
a short story about a small town by the sea, where an old man is looking at the light of the
moon on the water. The capital of France is Paris, and the capital of Italy is Rome. One of the
most important questions is how long a thing should take, and whether it should be done at all.
You would have to ask someone else for that, since I have never been there before. Hello, world!
int main(void) { return 0; } for (int i = 0; i < n; i++) { sum += values[i]; } if (error) return;
"""

# Offset from the first added id, spelling. Other slots are reserved and unnamed.
NAMED_SLOTS = {
    0: "[BOS]", 1: "[EOS]", 2: "<|end_of_msg|>", 3: "<|open|>", 4: "<|close|>", 5: "<|sep|>",
    6: "[start_header_id]", 7: "[end_header_id]", 9: "[EOT]", 18: "<|media_begin|>",
    19: "<|media_content|>", 20: "<|media_end|>", 21: "<|media_pad|>", 65: "<osagent_mode>",
    254: "[UNK]", 255: "[PAD]",
}
BOS, END_OF_MSG, MEDIA_PAD, PAD = 0, 2, 21, 255
NOT_SPECIAL = {3, 4, 5}


def single_bytes() -> list:
    order = [*range(33, 127), *range(161, 173), *range(174, 256),
             *range(0, 33), *range(127, 161), 173]
    return [bytes([value]) for value in order]


def _merge(word: tuple, pair: tuple) -> tuple:
    merged, at = [], 0
    while at < len(word):
        if word[at:at + 2] == pair:
            merged.append(pair[0] + pair[1])
            at += 2
        else:
            merged.append(word[at])
            at += 1
    return tuple(merged)


def learnt_merges(text: str, limit: int) -> list:
    """Byte pair encoding: the most frequent pair first, ties by its bytes."""
    words = collections.Counter(
        tuple(bytes([value]) for value in (" " + word).encode()) for word in text.split())
    merges = []
    while len(merges) < limit:
        pairs = collections.Counter()
        for word, count in words.items():
            for pair in itertools.pairwise(word):
                pairs[pair] += count
        if not pairs:
            break
        best = min(pairs, key=lambda pair: (-pairs[pair], pair))
        merges.append(best[0] + best[1])
        words = collections.Counter({_merge(word, best): n for word, n in words.items()})
    return merges


def make_ranks(count: int) -> list:
    """The first `count` tokens, as bytes, in the order of their rank."""
    singles = single_bytes()
    pairs = [first + second for first, second in itertools.product(singles, repeat=2)]
    triples = (pair + last for pair, last in itertools.product(pairs, singles))
    ranks = dict.fromkeys(singles)
    candidates = itertools.chain(learnt_merges(SAMPLE_TEXT, count), pairs, triples)
    while len(ranks) < count:
        ranks.setdefault(next(candidates))
    return list(ranks)


def tiktoken_model(ranks: list) -> bytes:
    return b"".join(base64.b64encode(token) + b" %d\n" % rank
                    for rank, token in enumerate(ranks))


def tokenizer_config(first_added: int) -> str:
    assert max(NAMED_SLOTS) < ADDED_TOKENS
    decoder = {
        str(first_added + slot): {
            "content": spelling, "lstrip": False, "normalized": False, "rstrip": False,
            "single_word": False, "special": slot not in NOT_SPECIAL}
        for slot, spelling in NAMED_SLOTS.items()}
    return json.dumps({
        "added_tokens_decoder": decoder,
        "additional_special_tokens": [],
        "auto_map": {"AutoTokenizer": ["tokenization_kimi.TikTokenTokenizer", None]},
        "bos_token": "[BOS]",
        "clean_up_tokenization_spaces": False,
        "eos_token": "[EOS]",
        "extra_special_tokens": {},
        "model_max_length": 1000000000000000019884624838656,
        "pad_token": "[PAD]",
        "tokenizer_class": "TikTokenTokenizer",
        "unk_token": "[UNK]",
    }, indent=2) + "\n"
