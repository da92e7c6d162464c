"""The block index compared with the two alternatives in the sources, at k = 3 on uniform fingerprints.

Probe all: each of the 43,745 variants of a fingerprint within 3 bits is looked up among the stored
fingerprints. Store all: the 43,745 variants of each stored fingerprint are stored, and a probe is one
look-up. Both use the most compact table, a sorted array with binary search. All three designs get one probe
at a time.

Source: SimHash principle notes and the Art of Programming notes; Manku, Jain, Das Sarma, WWW 2007, section
3.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import numpy.typing as npt

from benchmarks.index import uniform, warm_up
from benchmarks.quality.workspace import SEED, Workspace
from dedup_service.core.index import BlockIndex

RADIUS = 3
VARIANTS = 43_745
SIZES = (1_000, 100_000, 1_000_000)
MAX_STORED = 1_000
"""Entries up to which all variants are stored: 350 MB."""

PROBES = 200

Words = npt.NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class Alternative:
    """Figures of one design at one size. probes: how many were made; found: how many had an answer."""

    name: str
    entries: int
    us_a_probe: float
    bytes_an_entry: float
    found: int
    probes: int


def compute(workspace: Workspace) -> list[Alternative]:
    """Return every design at every size that it can hold; independent of the evaluation data."""
    del workspace
    warm_up()
    flips = masks(RADIUS)
    rows: list[Alternative] = []
    for size in SIZES:
        rows += _rows(size, flips)
    return rows


def _flipped(stored: Words) -> Words:
    """Return stored fingerprints with up to RADIUS bits flipped: uint64[PROBES]."""
    generator = np.random.default_rng(SEED + 2)
    probes = []
    for _ in range(PROBES):
        flips = generator.choice(64, generator.integers(0, RADIUS + 1), replace=False)
        probes.append(stored[generator.integers(len(stored))] ^ np.uint64(sum(1 << int(bit) for bit in flips)))
    return np.array(probes, np.uint64)


def _rows(size: int, flips: Words) -> list[Alternative]:
    stored = uniform(size, SEED)
    probes = _flipped(stored)
    index = BlockIndex(RADIUS, layout="seed")
    index.insert_many(np.arange(size), stored)
    table = np.sort(stored)

    def in_blocks(value: np.uint64) -> bool:
        return len(index.probe(int(value)).sequences) > 0

    def in_table(value: np.uint64) -> bool:
        return _any_in(table, value ^ flips)

    rows = [
        _row("block index, 4 × 16", size, probes, in_blocks, index.statistics().bytes),
        _row("probe all variants", size, probes, in_table, table.nbytes),
    ]
    if size <= MAX_STORED:
        every = np.sort((stored[:, None] ^ flips[None, :]).ravel())
        rows.append(
            _row("store all variants", size, probes, lambda value: _any_in(every, np.array([value])), every.nbytes)
        )
    return rows


def masks(radius: int) -> Words:
    """Return all masks with up to `radius` of 64 bits set: uint64[43,745] for 3."""
    choices = (bits for count in range(radius + 1) for bits in combinations(range(64), count))
    return np.array([sum(1 << bit for bit in bits) for bits in choices], np.uint64)


def _any_in(table: Words, values: Words) -> bool:
    places = np.searchsorted(table, values)
    return bool((table[np.minimum(places, len(table) - 1)] == values).any())


def _row(name: str, size: int, probes: Words, probe: Callable[[np.uint64], bool], size_bytes: int) -> Alternative:
    probe(probes[0])
    begin = time.process_time()
    found = sum(probe(value) for value in probes)
    spent = time.process_time() - begin
    return Alternative(name, size, spent * 1e6 / len(probes), size_bytes / size, found, len(probes))
