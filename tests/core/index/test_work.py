"""The work of a probe is bounded, in buckets and comparisons rather than in seconds."""

import numpy as np
import pytest

from dedup_service.core.index.block_index import BlockIndex, Layout
from dedup_service.core.index.probe_result import WorkCounters
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
