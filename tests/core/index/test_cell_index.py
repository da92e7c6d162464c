"""The cell index, against dictionaries and sets (`tests.oracle.plain_cells`)."""

import random
from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from dedup_service.core.errors import ConfigurationError
from dedup_service.core.evidence.keys import PARTS
from dedup_service.core.index.cell_index import EMPTY_PART, SIEVE_BYTES, CellRows
from tests.core.index.cells import Cells
from tests.oracle.plain_cells import PlainCells, keys_of

SLOTS = [1, 2, 8, 64]
ALL_SIEVES = bytes(SIEVE_BYTES)


@dataclass(frozen=True)
class Page:
    """What the index is told of a page."""

    keys: bytes
    sieve: bytes = ALL_SIEVES


def packed(rows: list[list[int]], levels: int) -> bytes:
    """Keys as bytes: rows of some parts, filled up with zeros."""
    keys = np.zeros((PARTS, levels), "<u4")
    for part, row in enumerate(rows):
        keys[part, : len(row)] = row
    return keys.tobytes()


SIEVES = [ALL_SIEVES, b"\xff" * 6 + bytes(10), b"\xff" * 7 + bytes(9), b"\xff" * 16]
"""Some pass each other, some do not."""


def pages(levels: int) -> st.SearchStrategy[Page]:
    """Pages with few different keys, so that cells crowd; some parts have none."""
    return st.integers(0, 999).map(lambda seed: _page(seed, levels))


@cache
def _page(seed: int, levels: int) -> Page:
    chosen = random.Random(seed)
    rows = [sorted(chosen.sample(range(1, 7), chosen.randint(0, levels))) for _ in range(chosen.choice([1, PARTS]))]
    return Page(packed(rows, levels), chosen.choice(SIEVES))


class Pair:
    """The index under test beside the plain one, with the paths that callers keep."""

    def __init__(self, slots: int, levels: int) -> None:
        self.slots, self.levels = slots, levels
        self.index, self.plain = Cells(slots=slots, levels=levels), PlainCells(slots)
        self.live: dict[int, tuple[int, Page, bytes]] = {}

    def insert(self, ordinal: int, page: Page) -> None:
        """Store a page; its sequence is larger than its ordinal, as in a log with gaps."""
        sequence = 3 * ordinal + 1
        path = self.index.insert(sequence, ordinal, page.keys, page.sieve)
        self.plain.insert(sequence, ordinal, keys_of(page.keys, self.levels), page.sieve)
        self.live[sequence] = (ordinal, page, path)

    def remove(self, sequence: int) -> None:
        """Remove a page."""
        ordinal, _, path = self.live.pop(sequence)
        assert self.index.remove(sequence, ordinal, path)
        self.plain.remove(sequence)

    def expected(self, page: Page) -> list[int]:
        """What a probe must find."""
        return sorted(self.plain.probe(keys_of(page.keys, self.levels), page.sieve))

    def restored(self, order: list[int]) -> Cells:
        """An index with the live pages put back by their paths, in this order."""
        index = Cells(slots=self.slots, levels=self.levels)
        live = [(sequence, *self.live[sequence]) for sequence in order]
        index.restore(
            np.array([sequence for sequence, *_ in live], np.uint32),
            np.array([ordinal for _, ordinal, *_ in live], np.int64),
            np.frombuffer(b"".join(page.sieve for _, _, page, _ in live), np.uint64).reshape(-1, 2).copy(),
            b"".join(path for *_, path in live),
        )
        return index


def _keys_at(path: bytes) -> list[int]:
    """How many keys of each part a path has."""
    return [level + 1 if level < EMPTY_PART else level - EMPTY_PART for level in path[:PARTS]]


def found_by(index: Cells, page: Page) -> list[int]:
    """What a probe finds."""
    return index.probe(page.keys, page.sieve)[0].tolist()


def counts(index: Cells) -> tuple[int, int, int]:
    """The counters without the bytes, which depend on growth."""
    sizes = index.statistics()
    return sizes.entries, sizes.cells, sizes.overflowed


class History(RuleBasedStateMachine):
    """Any history of insertions, removals and restores."""

    @initialize(slots=st.sampled_from(SLOTS), levels=st.integers(1, 4))
    def begin(self, slots: int, levels: int) -> None:
        self.pair = Pair(slots, levels)
        self.ordinal = 0

    @rule(data=st.data(), skipped=st.integers(0, 2), count=st.integers(1, 8))
    def insert(self, data: st.DataObject, skipped: int, count: int) -> None:
        for _ in range(count):
            self.ordinal += 1 + skipped
            self.pair.insert(self.ordinal, data.draw(pages(self.pair.levels)))

    @precondition(lambda self: self.pair.live)
    @rule(data=st.data())
    def remove(self, data: st.DataObject) -> None:
        self.pair.remove(data.draw(st.sampled_from(sorted(self.pair.live))))

    @rule(data=st.data())
    def continue_from_the_live_entries(self, data: st.DataObject) -> None:
        self.pair.index = self.pair.restored(data.draw(st.permutations(sorted(self.pair.live))))

    @precondition(lambda self: self.pair.live)
    @rule(data=st.data(), byte=st.integers(1, 255))
    def refuse_a_wrong_path(self, data: st.DataObject, byte: int) -> None:
        """Another sequence, another level, another key under which it would be stored."""
        sequence = data.draw(st.sampled_from(sorted(self.pair.live)))
        ordinal, _, path = self.pair.live[sequence]
        before = self.pair.index.statistics()
        ends = [PARTS + 4 * sum(_keys_at(path)[: part + 1]) - 4 for part in range(PARTS) if path[part] < EMPTY_PART]
        for at in [*range(PARTS), *ends]:
            wrong = path[:at] + bytes([path[at] ^ byte]) + path[at + 1 :]
            if PARTS + 4 * sum(_keys_at(wrong)) != len(path) or at >= PARTS:
                assert not self.pair.index.remove(sequence, ordinal, wrong)
        if ends:
            assert not self.pair.index.remove(sequence + 1, ordinal, path)
        assert self.pair.index.statistics() == before

    @rule(data=st.data())
    def probe(self, data: st.DataObject) -> None:
        page = data.draw(pages(self.pair.levels))
        assert found_by(self.pair.index, page) == self.pair.expected(page)

    @invariant()
    def counters_are_those_of_the_sets(self) -> None:
        if hasattr(self, "pair"):
            assert counts(self.pair.index) == self.pair.plain.counts()


History.TestCase.settings = settings(max_examples=40, stateful_step_count=30, deadline=None)
TestHistory = History.TestCase


def filled(slots: int, levels: int, some: list[Page], removed: list[int]) -> Pair:
    """A pair after insertions and some removals."""
    pair = Pair(slots, levels)
    for ordinal, page in enumerate(some):
        pair.insert(ordinal, page)
    for number in removed:
        if pair.live:
            pair.remove(sorted(pair.live)[number % len(pair.live)])
    return pair


@given(st.sampled_from(SLOTS), st.lists(pages(4), max_size=40), st.lists(st.integers(0, 99), max_size=20), st.data())
def test_live_entries_put_back_give_the_same_index(
    slots: int, some: list[Page], removed: list[int], data: st.DataObject
) -> None:
    """In any order, also after removals; and later insertions and removals go the same way."""
    pair = filled(slots, 4, some, removed)
    again = pair.restored(data.draw(st.permutations(sorted(pair.live))))
    later = data.draw(st.lists(pages(4), max_size=6))
    assert counts(again) == counts(pair.index)
    for number, page in enumerate(later, len(some)):
        assert found_by(again, page) == found_by(pair.index, page)
        path = again.insert(3 * number + 1, number, page.keys, page.sieve)
        pair.insert(number, page)
        assert path == pair.live[3 * number + 1][2]
    for sequence in sorted(pair.live):
        assert again.remove(sequence, pair.live[sequence][0], pair.live[sequence][2])
        pair.remove(sequence)
    assert counts(again) == counts(pair.index) == (0, 0, 0)


def random_pages(count: int, levels: int, keys: int, seed: int) -> list[Page]:
    """Many pages: random keys up to `keys`, of which the small ones are common."""
    rng = np.random.default_rng(seed)
    drawn = (rng.random((count, PARTS, levels)) ** 3 * keys).astype(np.uint32) + 1
    sieves = rng.integers(0, 256, (count, SIEVE_BYTES), np.uint8) & 7  # near each other
    found = []
    for number in range(count):
        rows = [sorted(set(row)) for row in drawn[number].tolist()]
        found.append(Page(packed(rows, levels), sieves[number].tobytes()))
    return found


@pytest.mark.parametrize(("slots", "levels", "keys"), [(8, 8, 2_000), (2, 3, 100_000), (64, 1, 50)])
def test_a_grown_index_finds_what_sets_find(slots: int, levels: int, keys: int) -> None:
    """Thousands of entries: the tables grow many times, and a third of the entries goes away again."""
    some = random_pages(3_000, levels, keys, slots)
    pair = filled(slots, levels, some[:2_800], [])
    memory = pair.index.statistics().bytes
    for sequence in sorted(pair.live)[::3]:
        pair.remove(sequence)
    assert memory > CellRows(slots=slots, levels=levels).statistics().bytes
    assert counts(pair.index) == pair.plain.counts()
    again = pair.restored(sorted(pair.live, key=lambda sequence: sequence * 7919 % 10_007))
    assert counts(again) == counts(pair.index)
    for page in [*some[::40], *some[2_800:]]:
        expected = pair.expected(page)
        assert found_by(pair.index, page) == found_by(again, page) == expected


@pytest.mark.parametrize("slots", [1, 8, 64])
@pytest.mark.parametrize("template", [2, 4, 8])
def test_a_common_key_costs_one_entry_a_slot(slots: int, template: int) -> None:
    """A template takes the first keys of a part: a probe looks at a bounded number of entries, the own page among them.

    With all eight keys taken by the template a later page is in no cell: it is counted, and not found.
    """
    index = Cells(slots=slots)
    rng = np.random.default_rng(2)
    keys = np.zeros((1_500, PARTS, 8), "<u4")
    keys[:, :, :template] = np.arange(1, template + 1)
    keys[:, :, template:] = np.sort(rng.integers(1_000, 1 << 32, (1_500, PARTS, 8 - template), np.uint32))
    some = [Page(row.tobytes()) for row in keys]
    for number, page in enumerate(some):
        index.insert(number, number, page.keys, page.sieve)
    for number in (0, 700, 1_499):
        found, looked_at = index.probe(some[number].keys, ALL_SIEVES)
        assert (number in found.tolist()) == (template < 8 or number < 8 * slots)
        assert looked_at <= (template + 1) * slots + 1
    assert len(index) == (1_500 if template < 8 else 8 * slots)
    assert index.statistics().overflowed == PARTS * template * slots


def test_the_sieve_lets_53_differing_bits_through() -> None:
    """58% of 128 bits must be equal; how many entries the keys led to is counted before the sieve."""
    for differing, expected in ((53, [7]), (54, [])):
        index = Cells(slots=2)
        sieve = ((1 << differing) - 1).to_bytes(SIEVE_BYTES, "little")
        index.insert(7, 0, packed([[5]], 8), sieve)
        found, looked_at = index.probe(packed([[5]], 8), ALL_SIEVES)
        assert (found.tolist(), looked_at) == (expected, 1)
        found, looked_at = index.probe(packed([[6]], 8), sieve)
        assert (found.tolist(), looked_at) == ([], 0)


def test_a_removed_entry_cannot_be_removed_again() -> None:
    """Not under its own number, not after another one took its cells; the other one stays."""
    index = Cells(slots=2)
    path = index.insert(1, 0, packed([[5], [6]], 8), ALL_SIEVES)
    assert index.remove(1, 0, path)
    assert not index.remove(1, 0, path)
    assert index.insert(2, 2, packed([[5], [6]], 8), ALL_SIEVES) == path
    assert not index.remove(1, 0, path)
    assert found_by(index, Page(packed([[5]], 8))) == [2]


@pytest.mark.parametrize(("slots", "levels"), [(0, 8), (65, 8), (8, 0), (8, 33)])
def test_impossible_layouts_are_refused(slots: int, levels: int) -> None:
    """The message names the bounds."""
    with pytest.raises(ConfigurationError, match="1 to 64 slots and 1 to 32 levels"):
        CellRows(slots=slots, levels=levels)
