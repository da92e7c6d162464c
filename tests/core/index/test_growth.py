"""Growth of the compact layout: exact at every size, and no insertion that pays for all."""

import copy
import pickle

import numpy as np
import pytest

from dedup_service.core.errors import ConfigurationError
from dedup_service.core.index import BlockIndex
from dedup_service.core.index.block_compact import MAX_ROW
from tests.core.index.streams import hot, one_half, uniform

FIRST_SPLIT = 65_536 * 18 // 4
"""Entries at which a table of the compact layout splits its first bucket."""


def brute_force(stored: np.ndarray, probe: np.uint64, radius: int) -> list[tuple[int, int]]:
    """Return (distance, sequence) of every stored fingerprint within the radius, sorted."""
    distances = np.bitwise_count(stored ^ probe)
    near = np.flatnonzero(distances <= radius)
    return sorted(zip(distances[near].tolist(), near.tolist(), strict=True))


def near_copies(stored: np.ndarray, count: int, seed: int) -> np.ndarray:
    """Return stored fingerprints with up to five bits flipped."""
    generator = np.random.default_rng(seed)
    chosen = stored[generator.integers(0, len(stored), count)]
    for _ in range(5):
        chosen = chosen ^ np.where(generator.random(count) < 0.6, 1 << generator.integers(0, 64, count, np.uint64), 0)
    return chosen.astype(np.uint64)


@pytest.mark.parametrize("radius", range(4))
def test_exact_while_buckets_are_split(radius: int) -> None:
    """Around the first splits and at twice as many entries, probes find what brute force finds."""
    stored = np.concatenate([uniform(FIRST_SPLIT - 400, 1), one_half(200, 2, 0), hot(200, 3), uniform(300_000, 4)])
    index = BlockIndex(radius)
    done = 0
    for size in (FIRST_SPLIT - 600, FIRST_SPLIT - 1, FIRST_SPLIT + 1, FIRST_SPLIT + 700, 2 * FIRST_SPLIT, len(stored)):
        index.insert_many(np.arange(done, size), stored[done:size])
        done = size
        probes = near_copies(stored[:size], 60, size)
        found = index.probe_many(probes)
        for number, probe in enumerate(probes):
            pairs = zip(found[number].distances.tolist(), found[number].sequences.tolist(), strict=True)
            assert list(pairs) == brute_force(stored[:size], probe, radius)


@pytest.mark.parametrize("half", [0, 1])
def test_exact_while_hot_tables_grow(half: int) -> None:
    """Hundreds of thousands of fingerprints with one half are found as by brute force, also after half are gone."""
    stored = np.unique(np.concatenate([one_half(400_000, 1, half), uniform(50_000, 2)]))
    index = BlockIndex(3)
    index.insert_many(np.arange(len(stored)), stored)
    gone = np.arange(0, len(stored), 2)
    index.remove_many(gone, stored[gone])
    probes = near_copies(stored, 60, 3)
    found = index.probe_many(probes)
    for number, probe in enumerate(probes):
        expected = [(distance, at) for distance, at in brute_force(stored, probe, 3) if at % 2]
        assert list(zip(found[number].distances.tolist(), found[number].sequences.tolist(), strict=True)) == expected


def test_a_reserved_index_is_the_same() -> None:
    """Prepared for what is inserted, for less or for more, it finds what brute force finds; then it grows on."""
    stored = np.concatenate([uniform(FIRST_SPLIT * 2, 1), one_half(2000, 2, 0), hot(200, 3), uniform(200_000, 4)])
    grown = BlockIndex(3)
    grown.insert_many(np.arange(len(stored)), stored)
    for expected in (0, FIRST_SPLIT * 2, len(stored) * 2):
        index = BlockIndex(3)
        index.reserve(expected)
        index.insert_many(np.arange(len(stored)), stored)
        probes = near_copies(stored, 60, expected)
        found = index.probe_many(probes)
        for number, probe in enumerate(probes):
            pairs = zip(found[number].distances.tolist(), found[number].sequences.tolist(), strict=True)
            assert list(pairs) == brute_force(stored, probe, 3)
        if expected <= len(stored):
            assert index.statistics().bytes < 1.02 * grown.statistics().bytes
        index.remove_many(np.arange(len(stored)), stored)
        assert len(index) == 0


def test_growth_moves_no_memory() -> None:
    """From 300,000 to a million entries, memory grows in proportion at every step: nothing is held twice."""
    index = BlockIndex(3)
    stored = uniform(1_000_000, 1)
    index.insert_many(np.arange(300_000), stored[:300_000])
    before = index.statistics().bytes
    for begin in range(300_000, 1_000_000, 10_000):
        index.insert_many(np.arange(begin, begin + 10_000), stored[begin : begin + 10_000])
        after = index.statistics().bytes
        assert after - before < 10_000 * 48
        before = after


def test_an_index_is_not_copied() -> None:
    """A copy or a pickle is refused: it would write to the memory of the first one."""
    index = BlockIndex(3)
    for make in (copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="cannot be copied"):
            make(index)


def test_a_late_second_level_moves_a_bounded_bucket() -> None:
    """However high the bound is set, a crowded bucket gets its second level while it is small, and stays exact."""
    index, stored = BlockIndex(3, min_split=100_000), np.unique(one_half(20_000, 1, 0))
    index.insert_many(np.arange(len(stored)), stored)
    assert index.statistics().split_buckets == 1
    probe = np.uint64(int(stored[77]) ^ 1 << 40)
    pairs = index.probe(int(probe))
    assert list(zip(pairs.distances.tolist(), pairs.sequences.tolist(), strict=True)) == brute_force(stored, probe, 3)


def test_rows_outside_are_refused() -> None:
    """The largest row number is accepted, the next one is refused by every call."""
    index = BlockIndex(3)
    index.insert(MAX_ROW, 1)
    assert index.probe(1).sequences.tolist() == [MAX_ROW]
    with pytest.raises(ConfigurationError, match="does not fit"):
        index.insert(MAX_ROW + 1, 1)
    with pytest.raises(ConfigurationError, match="the largest row number"):
        index.insert_many(np.array([MAX_ROW + 1]), np.array([1], np.uint64))


def test_the_compact_layout_is_refused_above_radius_3() -> None:
    """The message names the bound and the layout that serves the radius."""
    with pytest.raises(ConfigurationError, match="up to radius 3, not 4; choose the layout seed"):
        BlockIndex(4, layout="compact")
