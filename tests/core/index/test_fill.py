"""An index that is filled at once has the answers of one into which the same entries were inserted."""

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dedup_service.core.errors import ConfigurationError, StateError
from dedup_service.core.index import BlockIndex, Layout
from tests.core.index.streams import agree, fingerprints, hot, one_half, pairs_of, uniform
from tests.oracle.index import BruteForceIndex

ROUND = 1 << 10
"""Entries after which the tables are filled at the latest, if fewer are expected."""


def fill(index: BlockIndex, rows: npt.NDArray[np.int64], stored: npt.NDArray[np.uint64], piece: int = 700) -> None:
    """Fill an index in several pieces and rounds."""
    pieces = ((rows[at : at + piece], stored[at : at + piece]) for at in range(0, len(rows), piece))
    index.fill(ROUND, pieces)


def crawl() -> npt.NDArray[np.uint64]:
    """Return fingerprints with hot buckets in each half, and identical ones that are far apart."""
    stored = [uniform(3000, 1), hot(2000, 2), hot(2000, 3, block=2), one_half(900, 4, 0), one_half(900, 5, 1)]
    stored += [uniform(3000, 1)[::3], np.repeat(uniform(5, 6), 300), one_half(900, 4, 0)[::2], uniform(3000, 1)[::7]]
    return np.concatenate(stored)


@pytest.mark.parametrize(
    ("radius", "layout"), [(0, "compact"), (1, "compact"), (2, "compact"), (3, "compact"), (5, "seed")]
)
def test_a_filled_index_is_exact(radius: int, layout: Layout) -> None:
    """With crowds, hot buckets and several rounds, also after removals and insertions."""
    stored = crawl()
    numbers = np.random.default_rng(7).permutation(len(stored))
    index = BlockIndex(radius, layout=layout)
    oracle = BruteForceIndex(radius)
    inserted = BlockIndex(radius, layout=layout)
    fill(index, numbers, stored)
    inserted.insert_many(numbers, stored)
    oracle.entries.update(zip(numbers.tolist(), stored.tolist(), strict=True))
    probes = (stored[::611] ^ np.uint64(1 << 40)).tolist() + stored[1::611].tolist()
    agree(index, oracle, probes)
    assert index.statistics().fingerprints == inserted.statistics().fingerprints
    for first in (0, 1):
        index.remove_many(numbers[first::3], stored[first::3])
        oracle.entries.difference_update(zip(numbers[first::3].tolist(), stored[first::3].tolist(), strict=True))
        agree(index, oracle, probes)
    index.insert_many(numbers[::3], stored[::3])
    oracle.entries.update(zip(numbers[::3].tolist(), stored[::3].tolist(), strict=True))
    agree(index, oracle, probes)


@settings(max_examples=30, deadline=None)
@given(
    stored=st.lists(fingerprints(), max_size=300),
    repeated=st.integers(1, 9),
    radius=st.integers(0, 3),
    min_split=st.sampled_from([6, 48, None]),
    before=st.integers(0, 50),
)
def test_any_fingerprints(stored: list[int], repeated: int, radius: int, min_split: int | None, before: int) -> None:
    """Whatever is identical or shares a half, and whatever was inserted before."""
    index, oracle = BlockIndex(radius, min_split=min_split), BruteForceIndex(radius)
    entries = list(enumerate(stored * repeated))
    oracle.entries.update(entries)
    for row, fingerprint in entries[:before]:
        index.insert(row, fingerprint)
    left = entries[before:]
    fill(index, np.array([row for row, _ in left], np.int64), np.array([one for _, one in left], np.uint64))
    agree(index, oracle, [fingerprint ^ (1 << 33) for fingerprint in stored[:5]] + stored[5:10])
    for row, fingerprint in entries[::2]:
        index.remove(row, fingerprint)
        oracle.remove(row, fingerprint)
    agree(index, oracle, stored[:5])


def test_the_smallest_rows_of_a_filled_crowd() -> None:
    """A limit returns the smallest rows of a fingerprint, in whatever order they came."""
    index = BlockIndex(3)
    fill(index, np.random.default_rng(1).permutation(5000), np.full(5000, 42, np.uint64))
    found = index.probe_many(np.array([43], np.uint64), most_identical=3)[0]
    assert pairs_of(found) == [(1, 0), (1, 1), (1, 2)]


def test_more_entries_than_expected() -> None:
    """The number of entries is a hint: buckets are split as by insertion."""
    stored = uniform(400_000, 3)
    index = BlockIndex(3)
    index.fill(10, [(np.arange(len(stored)), stored)])
    assert index.statistics().entries == len(stored)
    assert index.statistics().buckets > len(stored) // 5
    found = index.probe_many(stored[::100])
    assert set(range(0, len(stored), 100)) <= set(found.sequences.tolist())


def test_an_entry_that_comes_twice() -> None:
    """It is refused: the index is then of no use."""
    with pytest.raises(StateError, match="already"):
        BlockIndex(3).fill(2, [(np.array([1, 1]), np.array([5, 5], np.uint64))])


def test_rows_are_checked() -> None:
    """A row that is negative, or too large, is refused."""
    with pytest.raises(ConfigurationError, match="negative"):
        BlockIndex(3).fill(1, [(np.array([-1]), np.array([5], np.uint64))])
