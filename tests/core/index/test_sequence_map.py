"""The map from hashes to sequences, against a dictionary of sorted lists."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from dedup_service.core.index import SequenceMap

WORD = (1 << 64) - 1
HASHES = [0, 1, 2, 1 << 32, (1 << 32) + 1, WORD, WORD - 1, 1 << 63, *(number << 56 for number in range(20, 30))]
"""Few hashes, so that some have several sequences, many of them with one home place."""


class History(RuleBasedStateMachine):
    """Any history of additions and removals."""

    def __init__(self) -> None:
        super().__init__()
        self.map, self.expected = SequenceMap(), dict[int, list[int]]()
        self.unused = iter(range(0, 7 * 10_000, 7))

    @rule(values=st.lists(st.sampled_from(HASHES) | st.integers(0, WORD), max_size=60), order=st.randoms())
    def add_several(self, values: list[int], order: object) -> None:
        sequences = [next(self.unused) for _ in values]
        order.shuffle(sequences)  # type: ignore[attr-defined]
        for value, sequence in zip(values, sequences, strict=True):
            self.map.add(value, sequence)
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
        assert self.map.some(value, limit, self._has(value)) == expected[:limit]
        assert self.map.first(value, self._has(value)) == (expected[0] if expected else None)

    @invariant()
    def everything_is_found(self) -> None:
        assert len(self.map) == sum(map(len, self.expected.values()))
        assert {value: self.map.some(value, 99, self._has(value)) for value in self.expected} == self.expected

    def _has(self, value: int) -> Callable[[int], bool]:
        return lambda sequence: sequence in self.expected.get(value, [])

    def _expect(self, value: int, sequence: int) -> None:
        self.expected.setdefault(value, []).append(sequence)
        self.expected[value].sort()


History.TestCase.settings = settings(max_examples=80, stateful_step_count=30, deadline=None)
TestHistory = History.TestCase


def test_it_grows_and_forgets() -> None:
    """Thousands of hashes, half of them removed again: what is left is found."""
    values = np.random.default_rng(1).integers(0, 1 << 64, 20_000, np.uint64).tolist()
    found = SequenceMap()
    for sequence, value in enumerate(values):
        found.add(value, sequence)
    for sequence in range(0, 20_000, 2):
        found.remove(values[sequence], sequence)
    expected = [None if sequence % 2 == 0 else sequence for sequence in range(20_000)]
    assert [found.first(value, lambda at, value=value: values[at] == value) for value in values] == expected
    assert len(found) == 10_000
