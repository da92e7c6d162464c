"""The table of rows by hash, against a dictionary of sorted lists that knows the first 35 mixed bits alone."""

from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from dedup_service.core.index.hash_rows import HashRows, first_bits
from tests.core.index.twins import WORD, twin, unmixed

TWINS = [unmixed(5 << 40), *(twin(unmixed(5 << 40), number) for number in range(1, 4))]
"""Different hashes of which the table knows the same bits."""
NEIGHBOURS = [unmixed((5 << 40) + (number << 29)) for number in range(1, 30)]
"""Hashes that have one home or adjacent ones."""


def bits(value: int) -> int:
    """What the table knows of a hash."""
    return int(first_bits(np.uint64(value)))


def columns(pairs: list[tuple[int, int]]) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint32]]:
    """Hashes and rows as arrays."""
    values, rows = zip(*pairs, strict=True) if pairs else ((), ())
    return np.array(values, np.uint64), np.array(rows, np.uint32)


def test_hashes_that_share_their_first_bits_exist() -> None:
    """The tests below meet collisions that would take a hundred thousand random hashes."""
    assert len(set(TWINS)) == 4
    assert len(set(map(bits, TWINS))) == 1


class History(RuleBasedStateMachine):
    """Any history of additions and removals, with crowds, twins and neighbours."""

    def __init__(self) -> None:
        super().__init__()
        self.table, self.expected = HashRows(), dict[int, list[tuple[int, int]]]()
        self.unused = iter(range(10_000))

    @rule(value=st.sampled_from(TWINS + NEIGHBOURS) | st.integers(0, WORD), count=st.sampled_from([1, 1, 1, 12]))
    def add(self, value: int, count: int) -> None:
        for _ in range(count):
            row = next(self.unused)
            self.table.add(value, row)
            self.expected.setdefault(bits(value), []).append((row, value))

    @rule(
        values=st.lists(st.sampled_from(TWINS + NEIGHBOURS) | st.integers(0, WORD), max_size=40),
        copies=st.integers(1, 3),
    )
    def add_many(self, values: list[int], copies: int) -> None:
        rows = [next(self.unused) for _ in values * copies]
        self.table.add_many(*columns(list(zip(values * copies, rows, strict=True))))
        for value, row in zip(values * copies, rows, strict=True):
            self.expected.setdefault(bits(value), []).append((row, value))

    @rule(data=st.data(), share=st.sampled_from([0.0, 0.3, 1.0]), missing=st.booleans())
    def remove_many(self, data: st.DataObject, share: float, missing: bool) -> None:
        """What is not there stops it: those before are gone, those behind stay."""
        there = [(value, row) for rows in self.expected.values() for row, value in rows]
        gone = data.draw(st.permutations(there))[: round(share * len(there))]
        if missing:
            half = len(gone) // 2
            with pytest.raises(KeyError):
                self.table.remove_many(*columns([*gone[:half], (TWINS[0], 20_000), *gone[half:]]))
            gone = gone[:half]
        else:
            self.table.remove_many(*columns(gone))
        for value, row in gone:
            self.expected[bits(value)].remove((row, value))
            if not self.expected[bits(value)]:
                del self.expected[bits(value)]

    @precondition(lambda self: self.expected)
    @rule(data=st.data(), count=st.integers(1, 12))
    def remove(self, data: st.DataObject, count: int) -> None:
        for _ in range(count):
            if not self.expected:
                return
            key = data.draw(st.sampled_from(sorted(self.expected)))
            row, value = data.draw(st.sampled_from(self.expected[key]))
            self.table.remove(value, row)
            self.expected[key].remove((row, value))
            if not self.expected[key]:
                del self.expected[key]

    @rule(value=st.sampled_from(TWINS + NEIGHBOURS))
    def refuse_to_remove_what_is_not_there(self, value: int) -> None:
        with pytest.raises(KeyError):
            self.table.remove(value, 20_000)

    @invariant()
    def everything_is_found(self) -> None:
        values = [*TWINS, *NEIGHBOURS, *(value for rows in self.expected.values() for _, value in rows)]
        offsets, found = self.table.rows_many(np.array(values, np.uint64))
        for value, (start, end) in zip(values, pairwise(offsets.tolist()), strict=True):
            rows = sorted(row for row, _ in self.expected.get(bits(value), []))
            assert list(self.table.rows(value)) == rows
            assert found[start:end].tolist() == rows[:16]
        assert len(self.table) == sum(map(len, self.expected.values()))


History.TestCase.settings = settings(max_examples=40, stateful_step_count=30, deadline=None)
TestHistory = History.TestCase


def test_a_table_of_many_segments_is_small_and_grows_by_one() -> None:
    """Eight bytes a place at this size, most of them taken, and some free pages; growth copies one segment."""
    table = HashRows()
    values = np.random.default_rng(3).integers(0, 1 << 64, 300_000, np.uint64)
    for row, value in enumerate(values.tolist()):
        table.add(value, row)
    assert table.size_bytes < 13 * len(values)
    assert table.largest_copy <= 1 << 16
    offsets, rows = table.rows_many(values)
    assert np.array_equal(rows, np.arange(len(values)))
    assert np.array_equal(offsets, np.arange(len(values) + 1))


def test_memory_follows_the_rows() -> None:
    """As many rows go as come, for many times as many as there ever are at once: the table does not grow."""
    table, live = HashRows(), 40_000
    values = np.random.default_rng(4).integers(0, 1 << 64, 8 * live, np.uint64).tolist()
    sizes = []
    for row, value in enumerate(values):
        table.add(value, row)
        if row >= live:
            table.remove(values[row - live], row - live)
        if row >= 2 * live:
            sizes.append(table.size_bytes)
    assert max(sizes) <= 1.1 * sizes[0]
    assert len(table) == live


def test_batches_grow_and_shrink_the_table_as_single_changes_do() -> None:
    """Added in batches of different sizes and removed in others: the same memory and answers at the end of each."""
    batched, single = HashRows(), HashRows()
    values = np.random.default_rng(5).integers(0, 1 << 64, 100_000, np.uint64)
    rows = np.arange(len(values), dtype=np.uint32)
    for start, end in pairwise([0, 0, 1, 2_000, 60_000, 100_000]):
        batched.add_many(values[start:end], rows[start:end])
        for row in range(start, end):
            single.add(int(values[row]), row)
        assert batched.size_bytes == single.size_bytes
    assert np.array_equal(batched.rows_many(values)[1], rows)
    full = batched._table.bytes_in_use
    for start, end in pairwise([0, 1, 50_000, 99_000, 99_000]):
        batched.remove_many(values[start:end], rows[start:end])
        for row in range(start, end):
            single.remove(int(values[row]), row)
        assert batched._table.bytes_in_use == single._table.bytes_in_use
    assert len(batched) == 1_000
    assert batched._table.bytes_in_use < full / 4
    assert np.array_equal(batched.rows_many(values[99_000:])[1], rows[99_000:])
