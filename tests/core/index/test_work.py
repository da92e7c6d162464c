"""The work of a probe is bounded, in buckets and comparisons rather than in seconds."""

import numpy as np
import pytest

from dedup_service.core.index import BlockIndex, Layout, WorkCounters
from tests.core.index.streams import hot, one_half, uniform


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
    """Each radius reads the buckets of the seed layout that its tolerances require, and no others."""
    index = BlockIndex(radius, layout="seed")
    index.insert_many(np.arange(1000), uniform(1000, 1))
    assert work_of(index, uniform(50, 2)) == WorkCounters(
        probes=50, buckets=50 * buckets, entries=pytest.approx(0, abs=900)
    )


@pytest.mark.parametrize(("radius", "lines"), [(0, 1), (1, 2), (2, 18), (3, 34)])
def test_lines_probed(radius: int, lines: int) -> None:
    """Each radius reads the lines of halves that its tolerances require: of 65,536 buckets 16 are near."""
    index = BlockIndex(radius)
    index.insert_many(np.arange(1000), uniform(1000, 1))
    work = work_of(index, uniform(50, 2))
    assert (work.probes, work.buckets) == (50, 50 * lines)


def test_entries_scanned_on_even_load() -> None:
    """On evenly spread fingerprints a probe at radius 3 compares four buckets of average length."""
    index = BlockIndex(3, layout="seed")
    index.insert_many(np.arange(100_000), uniform(100_000, 1))
    work = work_of(index, uniform(2000, 2))
    assert work.entries / work.probes < 1.2 * 4 * 100_000 / 65_536


@pytest.mark.parametrize("size", [100_000, 600_000])
def test_lines_read_on_even_load(size: int) -> None:
    """At radius 3 a probe of halves reads two buckets for each bit of a bucket's number, and few further lines."""
    index = BlockIndex(3)
    index.insert_many(np.arange(size), uniform(size, 1))
    work = work_of(index, uniform(2000, 2))
    assert work.buckets / work.probes < 1.3 * 2 * (1 + np.log2(max(size / 4.5, 65_536)))


@pytest.mark.parametrize(("radius", "bound"), [(3, 100), (7, 1200)])
def test_second_level_bounds_a_hot_block(radius: int, bound: int) -> None:
    """A block that 20,000 pages share costs hundreds of comparisons; without a second level, 20,000."""
    stored, probes = hot(20_000, 1), hot(200, 2)
    split, whole = BlockIndex(radius, layout="seed"), BlockIndex(radius, layout="seed", min_split=None)
    for index in (split, whole):
        index.insert_many(np.arange(len(stored)), stored)
    work = work_of(split, probes)
    assert work.entries / work.probes < bound
    assert work_of(whole, probes).entries / work.probes >= 20_000
    assert split.statistics().split_buckets == 1
    assert split.statistics().largest_bucket < 50
    assert whole.statistics().largest_bucket == 20_000


@pytest.mark.parametrize("half", [0, 1])
def test_refined_tables_bound_a_hot_half(half: int) -> None:
    """A half that 50,000 pages share costs hundreds of lines; without refined tables, 8,000 lines."""
    stored, probes = np.unique(one_half(50_000, 1, half)), one_half(100, 2, half)
    split, whole = BlockIndex(3), BlockIndex(3, min_split=None)
    for index in (split, whole):
        index.insert_many(np.arange(len(stored)), stored)
    work, without = work_of(split, probes), work_of(whole, probes)
    assert work.buckets / work.probes < 700
    assert work.entries / work.probes < 1000
    assert without.entries / without.probes >= 49_000
    assert split.statistics().split_buckets >= 1
    assert split.statistics().largest_bucket <= 54
    assert whole.statistics().split_buckets == 0


@pytest.mark.parametrize("block", range(4))
def test_a_hot_block_of_16_bits_is_bounded(block: int) -> None:
    """A block that a fifth of 500,000 pages share costs a probe some thousand comparisons at most."""
    stored = np.concatenate([uniform(400_000, 1), hot(100_000, 2, block)])
    index = BlockIndex(3)
    index.insert_many(np.arange(len(stored)), stored)
    work = work_of(index, hot(500, 3, block))
    assert work.entries / work.probes < 2000
    assert work.buckets / work.probes < 1500


@pytest.mark.parametrize("layout", ["seed", "compact"])
def test_small_buckets_are_not_split(layout: Layout) -> None:
    """A small index splits no bucket, however far above the average it is."""
    index = BlockIndex(3, layout=layout)
    index.insert_many(np.arange(40), hot(40, 1))
    assert index.statistics().split_buckets == 0


@pytest.mark.parametrize(("layout", "bound"), [("seed", 250), ("compact", 130)])
def test_memory_follows_the_entries(layout: Layout, bound: int) -> None:
    """A hundred thousand entries take a bounded room each, also after all were replaced."""
    index = BlockIndex(3, layout=layout)
    stored = uniform(100_000, 1)
    index.insert_many(np.arange(len(stored)), stored)
    size = index.statistics().bytes
    assert size / len(index) < bound
    for sequence, fingerprint in enumerate(stored.tolist()):
        index.remove(sequence, fingerprint)
        index.insert(sequence, fingerprint ^ 0xF00F_F00F_F00F_F00F)
    assert index.statistics().bytes <= 1.5 * size
    assert len(index) == 100_000


def test_memory_after_removing_half_and_adding_as_many() -> None:
    """A million entries take a bounded number of bytes for a row, before and after half were replaced."""
    index = BlockIndex(3)
    stored, later = uniform(1_000_000, 1), uniform(500_000, 2)
    index.insert_many(np.arange(len(stored)), stored)
    size = index.statistics().bytes
    assert size / len(stored) < 37
    for begin in range(0, len(later), 50_000):
        gone = slice(2 * begin, 2 * begin + 100_000, 2)
        index.remove_many(np.arange(gone.start, gone.stop, 2), stored[gone])
        index.insert_many(np.arange(gone.start, gone.stop, 2), later[begin : begin + 50_000])
    assert index.statistics().bytes <= 1.02 * size
    assert len(index) == 1_000_000
