"""The quarters: why nothing is missed, the move to the halves, and memory that is used again."""

from itertools import product

import numpy as np
import pytest

from dedup_service.core.errors import StateError
from dedup_service.core.index import BlockIndex
from dedup_service.core.index.block_quarters import word_radius
from tests.core.index.streams import agree, hot, one_half, pairs_of, uniform
from tests.oracle.index import BruteForceIndex


@pytest.mark.parametrize("radius", range(4))
def test_words_leave_no_gap(radius: int) -> None:
    """However the differing bits are spread over the quarters, a table has an equal one and a word that is near."""
    for bits in product(range(radius + 1), repeat=4):
        if sum(bits) <= radius:
            assert any(bits[table] == 0 and bits[(table + 1) % 4] <= word_radius(radius) for table in range(radius + 1))


@pytest.mark.parametrize("radius", range(4))
def test_every_spread_of_bits_is_found_once(radius: int) -> None:
    """Fingerprints with every number of differing bits in every quarter are found like by brute force, each once."""
    index, oracle, base = BlockIndex(radius), BruteForceIndex(radius), 0x0123_4567_89AB_CDEF
    for number, bits in enumerate(product(range(4), repeat=4)):
        masks = (0, 0x0008, 0x8001, 0x0E00)
        stored = base ^ sum(masks[count] << (16 * quarter) for quarter, count in enumerate(bits))
        index.insert(number, stored)
        oracle.insert(number, stored)
    agree(index, oracle, [base, base ^ 1, base ^ (1 << 63)])


@pytest.mark.parametrize("radius", range(4))
@pytest.mark.parametrize("rows", [False, True])
def test_exact_while_fingerprints_move(radius: int, rows: bool) -> None:
    """Before, during and after the move to the halves, answers and removals are those of brute force."""
    generator = np.random.default_rng(1)
    stored = np.concatenate([uniform(4000, 1), hot(1500, 2), one_half(900, 3, 0), uniform(4000, 1)[::3]])
    stored = stored[generator.permutation(len(stored))]
    index, oracle = BlockIndex(radius, rows=rows, quarters=4000), BruteForceIndex(radius)
    for begin in range(0, len(stored), 150):
        numbers = np.arange(begin, min(begin + 150, len(stored)))
        index.insert_many(numbers, stored[numbers])
        oracle.entries.update(zip(numbers.tolist(), stored[numbers].tolist(), strict=True))
        gone = np.unique(generator.integers(0, len(numbers), 20)) + begin
        index.remove_many(gone, stored[gone])
        oracle.entries.difference_update(zip(gone.tolist(), stored[gone].tolist(), strict=True))
        with pytest.raises(StateError):
            index.remove(int(gone[0]), int(stored[gone[0]]))
        probes = stored[generator.integers(0, begin + 100, 6)] ^ (
            np.uint64(1) << generator.integers(0, 64, 6, np.uint64)
        )
        agree(index, oracle, probes.tolist())
    distinct = {fingerprint for _, fingerprint in oracle.entries}
    assert index.statistics().fingerprints == len(distinct)


def test_a_move_takes_crowds_with_it() -> None:
    """Entries of one fingerprint that come before, during and after the move are one crowd, in order."""
    index = BlockIndex(3, rows=True, quarters=1000)
    for begin in range(0, 4000, 100):
        stored = uniform(100, begin)
        stored[::10] = 42
        index.insert_many(np.arange(begin, begin + 100), stored)
    found = index.probe_many(np.array([43], np.uint64), most_identical=12)[0]
    assert pairs_of(found) == [(1, 10 * number) for number in range(12)]
    assert len(index.probe(42)) == 400
    with pytest.raises(StateError, match="already"):
        index.insert(0, 42)


def test_a_move_advances_with_every_insertion() -> None:
    """Each insertion moves some; after half as many as there were all have moved, and their memory is given back."""
    index, stored = BlockIndex(3, rows=True, quarters=20_000), uniform(40_000, 1)
    index.insert_many(np.arange(20_001), stored[:20_001])
    for at in range(20_001, 32_001, 500):
        index.insert_many(np.arange(at, at + 500), stored[at : at + 500])
        before = index.work().buckets
        index.probe(int(stored[at]))
        assert index.work().buckets - before >= 34
    halves = BlockIndex(3, rows=True, quarters=0)
    halves.insert_many(np.arange(32_001), stored[:32_001])
    assert index.statistics().bytes < 1.05 * halves.statistics().bytes
    work, other = index.work(), halves.work()
    assert index.probe_many(stored[:100]).sequences.tolist() == halves.probe_many(stored[:100]).sequences.tolist()
    assert index.work().buckets - work.buckets == halves.work().buckets - other.buckets


def test_a_refused_batch_changes_nothing_while_fingerprints_move() -> None:
    """An entry that is there already, in the quarters or the halves, undoes its batch."""
    index, stored = BlockIndex(3, rows=True, quarters=300), uniform(1000, 1)
    index.insert_many(np.arange(400), stored[:400])
    for known in (5, 399, 20):
        numbers = np.array([known, *range(500, 520)])
        with pytest.raises(StateError, match=f"sequence {known} "):
            index.insert_many(numbers, stored[numbers])
        assert len(index) == 400
    assert index.probe_many(stored[:400]).sequences.tolist() == list(range(400))


def test_memory_of_removed_entries_is_used_again() -> None:
    """Buckets that grow to many chunks and empty again take no more memory in a second round."""
    index, stored = BlockIndex(3, rows=True), np.unique(hot(400, 1))
    sizes = []
    for _ in range(3):
        index.insert_many(np.arange(len(stored)), stored)
        sizes.append(index.statistics().bytes)
        index.remove_many(np.arange(len(stored)), stored)
    assert sizes[0] == sizes[1] == sizes[2]
    assert len(index.probe(int(stored[0]))) == 0
