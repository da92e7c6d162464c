"""The block index beside the two alternatives that the sources name, at k = 3 on uniform fingerprints.

Probe all: each of the 43,745 variants of a fingerprint within 3 bits is looked up among the stored ones. Store all:
each stored fingerprint brings its 43,745 variants, and a probe is one look-up. Both are given the leanest table there
is, a sorted array with binary search, and the block index is asked one probe at a time as they are.

Source: SimHash principle notes and the Art of Programming notes; Manku, Jain, Das Sarma, WWW 2007, section 3.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import numpy.typing as npt

from benchmarks.index import near, uniform, warm_up
from benchmarks.quality.world import SEED, Workspace
from dedup_service.core.index import BlockIndex

__all__ = ["VARIANTS", "Alternative", "compute", "masks"]

RADIUS = 3
VARIANTS = 43_745
SIZES = (1_000, 100_000, 1_000_000)
MAX_STORED = 1_000
"""Entries up to which storing all variants fits in memory here: 350 MB."""
ASKED = 200

Words = npt.NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class Alternative:
    """One design at one size: µs a probe, and bytes an entry; found: of the probes, with an answer. asked: probes."""

    name: str
    entries: int
    us_a_probe: float
    bytes_an_entry: float
    found: int
    asked: int


def compute(world: Workspace) -> list[Alternative]:
    """Return every design at every size it can take; the data plays no part."""
    del world
    warm_up(RADIUS)
    flips = masks(RADIUS)
    rows: list[Alternative] = []
    for size in SIZES:
        rows += _rows(size, flips)
    return rows


def _rows(size: int, flips: Words) -> list[Alternative]:
    stored = uniform(size, SEED)
    asked = near(stored, 10 * ASKED, RADIUS)[::10]  # each a stored one with up to 3 bits flipped
    index = BlockIndex(RADIUS)
    index.insert_many(np.arange(size), stored)
    table = np.sort(stored)

    def in_blocks(value: np.uint64) -> bool:
        return len(index.probe(int(value)).sequences) > 0

    def in_table(value: np.uint64) -> bool:
        return _any_in(table, value ^ flips)

    rows = [
        _row("block index, 4 × 16", size, asked, in_blocks, index.statistics().bytes),
        _row("probe all variants", size, asked, in_table, table.nbytes),
    ]
    if size <= MAX_STORED:
        every = np.sort((stored[:, None] ^ flips[None, :]).ravel())
        rows.append(
            _row("store all variants", size, asked, lambda value: _any_in(every, np.array([value])), every.nbytes)
        )
    return rows


def masks(radius: int) -> Words:
    """Return every way to flip up to `radius` of 64 bits: uint64[43,745] for 3."""
    ways = (bits for count in range(radius + 1) for bits in combinations(range(64), count))
    return np.array([sum(1 << bit for bit in bits) for bits in ways], np.uint64)


def _any_in(table: Words, values: Words) -> bool:
    places = np.searchsorted(table, values)
    return bool((table[np.minimum(places, len(table) - 1)] == values).any())


def _row(name: str, size: int, asked: Words, probe: Callable[[np.uint64], bool], size_bytes: int) -> Alternative:
    probe(asked[0])
    begin = time.process_time()
    found = sum(probe(value) for value in asked)
    spent = time.process_time() - begin
    return Alternative(name, size, spent * 1e6 / len(asked), size_bytes / size, found, len(asked))
