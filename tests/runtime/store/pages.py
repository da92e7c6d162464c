"""Pages for stores, made from a seed."""

import random

from dedup_service._native import Entry, StoreLabel

LABEL = StoreLabel("a log", "a space")


def pages(seed: int, count: int, first: int = 0, largest: int = 600) -> list[Entry]:
    """Return `count` settled pages whose sequences begin at `first`, with up to `largest` bytes of evidence each."""
    return [stored_page(seed, sequence, largest) for sequence in range(first, first + count)]


def stored_page(seed: int, sequence: int, largest: int = 600) -> Entry:
    """Return a settled page; some have no fingerprint or hash."""
    chosen = random.Random(f"{seed} {sequence}")
    words, body, body_hash, url, text_hash = (chosen.getrandbits(64) for _ in range(5))
    return Entry(
        sequence,
        chosen.choice([None, words]),
        chosen.choice([None, body]),
        body_hash,
        url,
        chosen.choice([True, False]),
        chosen.randbytes(chosen.randint(40, largest)),
        chosen.choice([None, text_hash]),
        chosen.getrandbits(32),
        chosen.getrandbits(40),
        chosen.randbytes(chosen.randint(0, 99)),
        settled=True,
    )
