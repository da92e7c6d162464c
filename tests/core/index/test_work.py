"""The work of a probe is bounded, in buckets and comparisons rather than in seconds."""

from operator import sub

import numpy as np
import pytest

from tests.core.index.block_index import BlockIndex, Work
from tests.core.index.streams import hot, one_half, uniform


def work_of(index: BlockIndex, probes: np.ndarray) -> Work:
    """Return the cost of these probes."""
    before = index.work()
    index.probe_many(probes.tolist())
    after = index.work()
    return Work(*map(sub, after, before))


def test_a_probe_reads_four_buckets_on_even_load() -> None:
    """At radius 3: a bucket of each table, with the entries that share its block."""
    index = BlockIndex(3)
    index.insert_many(range(200_000), uniform(200_000, 1).tolist())
    work = work_of(index, uniform(2000, 2))
    assert work.buckets == 4 * work.probes
    assert work.entries / work.probes < 4 * 1.5 * 200_000 / 65_536


@pytest.mark.parametrize(("radius", "bound"), [(3, 100), (7, 1200)])
def test_a_second_level_bounds_a_hot_block(radius: int, bound: int) -> None:
    """A block that 20,000 pages share costs hundreds of comparisons, not 20,000."""
    index = BlockIndex(radius)
    index.insert_many(range(20_000), hot(20_000, 1).tolist())
    work = work_of(index, hot(200, 2))
    assert work.entries / work.probes < bound
    assert index.statistics().split_buckets >= 1
    assert index.statistics().largest_bucket < 5000


@pytest.mark.parametrize("half", [0, 1])
def test_a_second_level_bounds_a_hot_half(half: int) -> None:
    """A half that 50,000 pages share costs hundreds of comparisons, not 50,000."""
    stored, probes = np.unique(one_half(50_000, 1, half)), one_half(100, 2, half)
    index = BlockIndex(3)
    index.insert_many(range(len(stored)), stored.tolist())
    work = work_of(index, probes)
    assert work.buckets / work.probes < 700
    assert work.entries / work.probes < 3000


@pytest.mark.parametrize("block", range(4))
def test_a_hot_block_of_16_bits_is_bounded(block: int) -> None:
    """A block that a fifth of 500,000 pages share costs a probe some thousand comparisons at most."""
    stored = np.concatenate([uniform(400_000, 1), hot(100_000, 2, block)])
    index = BlockIndex(3)
    index.insert_many(range(len(stored)), stored.tolist())
    work = work_of(index, hot(500, 3, block))
    assert work.entries / work.probes < 2000
    assert work.buckets / work.probes < 1500


def test_memory_follows_the_entries() -> None:
    """A hundred thousand entries take a bounded room each, also after all were replaced."""
    index = BlockIndex(3)
    stored = uniform(100_000, 1)
    index.insert_many(range(len(stored)), stored.tolist())
    size = index.statistics().bytes
    assert size / len(index) < 160
    for row, fingerprint in enumerate(stored.tolist()):
        index.remove(row, fingerprint)
        index.insert(row, fingerprint ^ 0xF00F_F00F_F00F_F00F)
    assert index.statistics().bytes <= 1.5 * size
    assert len(index) == 100_000
