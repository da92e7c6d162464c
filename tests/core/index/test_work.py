"""The work of a probe is bounded, in buckets and comparisons rather than in seconds."""

import numpy as np
import pytest

from dedup_service.core.index import BlockIndex, WorkCounters
from tests.core.index.streams import hot, uniform


def work_of(index: BlockIndex, probes: np.ndarray) -> WorkCounters:
    """Return the cost of these probes."""
    before = index.work()
    index.probe_many(probes)
    after = index.work()
    return WorkCounters(
        probes=after.probes - before.probes,
        buckets=after.buckets - before.buckets,
        entries=after.entries - before.entries,
    )


@pytest.mark.parametrize(("radius", "buckets"), [(0, 1), (1, 2), (2, 3), (3, 4), (4, 20), (5, 36), (6, 52), (7, 68)])
def test_buckets_probed(radius: int, buckets: int) -> None:
    """Each radius reads the buckets that its tolerances require, and no others."""
    index = BlockIndex(radius)
    index.insert_many(np.arange(1000), uniform(1000, 1))
    assert work_of(index, uniform(50, 2)) == WorkCounters(
        probes=50, buckets=50 * buckets, entries=pytest.approx(0, abs=900)
    )


def test_entries_scanned_on_even_load() -> None:
    """On evenly spread fingerprints a probe at radius 3 compares four buckets of average length."""
    index = BlockIndex(3)
    index.insert_many(np.arange(100_000), uniform(100_000, 1))
    work = work_of(index, uniform(2000, 2))
    assert work.entries / work.probes < 1.2 * 4 * 100_000 / 65_536


@pytest.mark.parametrize(("radius", "bound"), [(3, 100), (7, 1200)])
def test_second_level_bounds_a_hot_block(radius: int, bound: int) -> None:
    """A block that 20,000 pages share costs hundreds of comparisons; without a second level, 20,000."""
    stored, probes = hot(20_000, 1), hot(200, 2)
    split, whole = BlockIndex(radius), BlockIndex(radius, min_split=None)
    for index in (split, whole):
        index.insert_many(np.arange(len(stored)), stored)
    work = work_of(split, probes)
    assert work.entries / work.probes < bound
    assert work_of(whole, probes).entries / work.probes >= 20_000
    assert split.statistics().split_buckets == 1
    assert split.statistics().largest_bucket < 50
    assert whole.statistics().largest_bucket == 20_000


def test_small_buckets_are_not_split() -> None:
    """A small index splits no bucket, however far above the average it is."""
    index = BlockIndex(3)
    index.insert_many(np.arange(2000), hot(2000, 1))
    assert index.statistics().split_buckets == 0


def test_memory_follows_the_entries() -> None:
    """A hundred thousand entries take at most 250 bytes each, also after all were replaced."""
    index = BlockIndex(3)
    stored = uniform(100_000, 1)
    for sequence, fingerprint in enumerate(stored.tolist()):
        index.insert(sequence, fingerprint)
    size = index.statistics().bytes
    assert size / len(index) < 250
    for sequence, fingerprint in enumerate(stored.tolist()):
        index.remove(sequence, fingerprint)
        index.insert(sequence, fingerprint ^ 0xF00F_F00F_F00F_F00F)
    assert index.statistics().bytes <= 1.5 * size
    assert len(index) == 100_000
