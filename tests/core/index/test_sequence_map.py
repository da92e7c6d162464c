"""The map from hashes to sequences, against a dictionary of sorted lists."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from dedup_service.core.index import SequenceMap

WORD = (1 << 64) - 1
HASHES = [0, 1, 2, 1 << 32, (1 << 32) + 1, WORD, WORD - 1, 1 << 63, *(number << 56 for number in range(20, 30))]
"""Few hashes, so that some have several sequences, many of them with one home place."""


class History(RuleBasedStateMachine):
    """Any history of additions, one by one or many at once, and removals."""

    def __init__(self) -> None:
        super().__init__()
        self.map, self.expected = SequenceMap(), dict[int, list[int]]()
        self.unused = iter(range(0, 7 * 10_000, 7))

    @rule(values=st.lists(st.sampled_from(HASHES) | st.integers(0, WORD), max_size=60), order=st.randoms())
    def add_many(self, values: list[int], order: object) -> None:
        sequences = [next(self.unused) for _ in values]
        order.shuffle(sequences)  # type: ignore[attr-defined]
        self.map.add_many(np.array(values, np.uint64), np.array(sequences, np.int64))
        for value, sequence in zip(values, sequences, strict=True):
            self._expect(value, sequence)

    @rule(value=st.sampled_from(HASHES) | st.integers(0, WORD), later=st.booleans())
    def add(self, value: int, later: bool) -> None:
        sequence = next(self.unused) + (1 if later else 70_001)
        self.map.add(value, sequence)
        self._expect(value, sequence)

    @precondition(lambda self: self.expected)
    @rule(data=st.data())
    def remove(self, data: st.DataObject) -> None:
        value = data.draw(st.sampled_from(sorted(self.expected)))
        sequence = data.draw(st.sampled_from(self.expected[value]))
        self.map.remove(value, sequence)
        self.expected[value].remove(sequence)
        if not self.expected[value]:
            del self.expected[value]

    @rule(value=st.sampled_from(HASHES), sequence=st.sampled_from([3, 9, 70_000 * 7]))
    def refuse_to_remove_what_is_not_there(self, value: int, sequence: int) -> None:
        with pytest.raises(KeyError):
            self.map.remove(value, sequence)

    @rule(value=st.sampled_from(HASHES) | st.integers(0, WORD), limit=st.integers(1, 4))
    def look_up(self, value: int, limit: int) -> None:
        expected = self.expected.get(value, [])
        assert self.map.some(value, limit) == expected[:limit]
        assert self.map.first(value) == (expected[0] if expected else None)

    @invariant()
    def everything_is_found(self) -> None:
        assert len(self.map) == len(self.expected)
        assert {value: self.map.some(value, 99) for value in self.expected} == self.expected

    def _expect(self, value: int, sequence: int) -> None:
        self.expected.setdefault(value, []).append(sequence)
        self.expected[value].sort()


History.TestCase.settings = settings(max_examples=80, stateful_step_count=30, deadline=None)
TestHistory = History.TestCase


@pytest.mark.parametrize("at_once", [True, False])
def test_it_grows_and_forgets(at_once: bool) -> None:
    """Thousands of hashes, half of them removed again: what is left is found, and 16 to 36 bytes are taken for each."""
    values = np.random.default_rng(1).integers(0, 1 << 64, 5_000, np.uint64)
    found = SequenceMap()
    if at_once:
        found.add_many(values, np.arange(5_000))
    else:
        for sequence, value in enumerate(values.tolist()):
            found.add(value, sequence)
    assert 16 / 0.7 <= found.size_bytes / 5_000 <= 16 / 0.46
    for sequence in range(0, 5_000, 2):
        found.remove(int(values[sequence]), sequence)
    expected = [None if sequence % 2 == 0 else sequence for sequence in range(5_000)]
    assert [found.first(value) for value in values.tolist()] == expected
    assert len(found) == 2_500


@given(st.lists(st.sampled_from(HASHES), max_size=30), st.lists(st.sampled_from(HASHES), max_size=30))
def test_many_at_once_are_the_same_as_one_by_one(first: list[int], then: list[int]) -> None:
    """Also onto hashes that are there already, and with a hash several times among the new ones."""
    one, many = SequenceMap(), SequenceMap()
    for sequence, value in enumerate([*first, *then]):
        one.add(value, sequence)
    many.add_many(np.array(first, np.uint64), np.arange(len(first)))
    many.add_many(np.array(then, np.uint64), np.arange(len(first), len(first) + len(then)))
    assert [many.some(value, 99) for value in HASHES] == [one.some(value, 99) for value in HASHES]
    assert len(many) == len(one)
