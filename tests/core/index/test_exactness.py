"""The index finds exactly what brute force finds, after any history."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, rule

from dedup_service.core.errors import StateError
from tests.core.index.block_index import BlockIndex
from tests.core.index.streams import agree, fingerprints, hot, one_half, uniform
from tests.oracle.index import BruteForceIndex

entries_lists = st.lists(st.tuples(st.integers(0, 200), fingerprints()), max_size=60, unique_by=lambda entry: entry[0])


@given(
    radius=st.integers(0, 7),
    entries=entries_lists,
    probes=st.lists(fingerprints(), min_size=1, max_size=8),
)
def test_probes_equal_brute_force(
    radius: int,
    entries: list[tuple[int, int]],
    probes: list[int],
) -> None:
    """Any radius gives the candidates of brute force, in order."""
    index, oracle = BlockIndex(radius), BruteForceIndex(radius)
    for sequence, fingerprint in entries:
        index.insert(sequence, fingerprint)
        oracle.insert(sequence, fingerprint)
    agree(index, oracle, probes + [fingerprint for _, fingerprint in entries[:4]])


class AnyHistory(RuleBasedStateMachine):
    """Insertions, bulk insertions and removals in any order, compared with brute force."""

    inserted = Bundle("inserted")

    @initialize(radius=st.integers(0, 7))
    def open(self, radius: int) -> None:
        """Start empty."""
        self.index = BlockIndex(radius)
        self.oracle = BruteForceIndex(radius)

    @rule(target=inserted, sequence=st.integers(0, 9), fingerprint=fingerprints())
    def insert(self, sequence: int, fingerprint: int) -> tuple[int, int]:
        """Insert; a row that is there already is refused."""
        if any(sequence == row for row, _ in self.oracle.entries):
            with pytest.raises(StateError):
                self.index.insert(sequence, fingerprint)
        else:
            self.index.insert(sequence, fingerprint)
            self.oracle.insert(sequence, fingerprint)
        return sequence, fingerprint

    @rule(entries=entries_lists)
    def insert_many(self, entries: list[tuple[int, int]]) -> None:
        """Insert many: all, or none if one is there already."""
        sequences, stored = [sequence for sequence, _ in entries], [fingerprint for _, fingerprint in entries]
        if {row for row, _ in self.oracle.entries}.isdisjoint(sequences):
            self.index.insert_many(sequences, stored)
            self.oracle.entries.update(entries)
        else:
            with pytest.raises(StateError):
                self.index.insert_many(sequences, stored)

    @rule(wanted=st.sets(st.integers(0, 60), max_size=12), absent=st.booleans())
    def remove_many(self, wanted: set[int], absent: bool) -> None:
        """Remove many: all, or none if one is not there, or is named twice."""
        entries = [entry for number, entry in enumerate(sorted(self.oracle.entries)) if number in wanted]
        chosen = [*entries, (11, 0)] if absent else entries
        sequences, stored = [sequence for sequence, _ in chosen], [fingerprint for _, fingerprint in chosen]
        if absent and ((11, 0) not in self.oracle.entries or (11, 0) in entries):
            with pytest.raises(StateError, match="is not in the index"):
                self.index.remove_many(sequences, stored)
        else:
            self.index.remove_many(sequences, stored)
            self.oracle.entries.difference_update(chosen)

    @rule(entry=inserted)
    def remove(self, entry: tuple[int, int]) -> None:
        """Remove; a second time is refused."""
        if entry in self.oracle.entries:
            self.index.remove(*entry)
            self.oracle.remove(*entry)
        else:
            with pytest.raises(StateError):
                self.index.remove(*entry)

    @rule(fingerprint=fingerprints())
    def probe(self, fingerprint: int) -> None:
        """Find what brute force finds."""
        agree(self.index, self.oracle, [fingerprint])

    @invariant()
    def size(self) -> None:
        """Count the entries."""
        if hasattr(self, "index"):
            assert len(self.index) == len(self.oracle.entries)


AnyHistory.TestCase.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
TestAnyHistory = AnyHistory.TestCase


@pytest.mark.parametrize("radius", range(8))
def test_every_neighbour_within_the_radius_is_found(radius: int) -> None:
    """Of fingerprints that differ in random bits, exactly those within the radius are found."""
    index, oracle = BlockIndex(radius), BruteForceIndex(radius)
    generator = np.random.default_rng(radius)
    for sequence in range(3000):
        flipped = generator.choice(64, generator.integers(0, 11), replace=False).tolist()
        fingerprint = 0x5DEECE66D1234567 ^ sum(1 << bit for bit in flipped)
        index.insert(sequence, fingerprint)
        oracle.insert(sequence, fingerprint)
    agree(index, oracle, [0x5DEECE66D1234567, 0x5DEECE66D1234566, 0])


@pytest.mark.parametrize("radius", range(8))
def test_split_buckets_stay_exact(radius: int) -> None:
    """Near copies of entries in buckets with a second level are found as by brute force."""
    stored = np.concatenate([hot(6000, 1), hot(6000, 2, block=radius % 4), uniform(500, 3)])
    stored = np.unique(np.concatenate([stored, one_half(900, 5, 0), one_half(900, 6, 1), one_half(900, 6, 1) ^ 1]))
    index, oracle = BlockIndex(radius), BruteForceIndex(radius)
    index.insert_many(range(len(stored)), stored.tolist())
    oracle.entries.update(enumerate(stored.tolist()))
    generator = np.random.default_rng(4)
    probes = [
        int(stored[at]) ^ sum(1 << bit for bit in generator.choice(64, flips, replace=False).tolist())
        for at, flips in zip(generator.choice(len(stored), 24), list(range(8)) * 3, strict=True)
    ]
    assert index.statistics().split_buckets >= 1
    agree(index, oracle, probes)
