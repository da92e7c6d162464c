"""The key index finds exactly what sets find, after any history."""

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, rule

from dedup_service.core.errors import ConfigurationError, StateError
from dedup_service.core.index import KeyIndex, key_table

Entry = tuple[int, tuple[int, ...]]

few_keys = st.lists(st.integers(0, 5), max_size=8).map(tuple)
"""So few different keys that buckets are crowded; often 0 or repeated."""

entries_lists = st.lists(st.tuples(st.integers(0, 30), few_keys), max_size=40, unique_by=lambda entry: entry[0])


class BruteForceKeys:
    """Entries in a set; a probe looks at all of them."""

    def __init__(self, max_per_key: int) -> None:
        """Make an empty index that looks at the `max_per_key` earliest entries of a key."""
        self.max_per_key = max_per_key
        self.entries: set[tuple[int, frozenset[int]]] = set()

    def holds(self, sequence: int, keys: frozenset[int]) -> bool:
        """Return whether the sequence is stored with one of the keys."""
        return any(number == sequence and stored & keys for number, stored in self.entries)

    def probe(self, keys: tuple[int, ...]) -> list[int]:
        """Return the sequences of the earliest entries of each key, ascending."""
        found: set[int] = set()
        for key in keys:
            found.update(sorted(sequence for sequence, stored in self.entries if key in stored)[: self.max_per_key])
        return sorted(found)


def proper(keys: tuple[int, ...]) -> frozenset[int]:
    """Return the keys without 0, which is no key."""
    return frozenset(keys) - {0}


def rows(*keys: tuple[int, ...]) -> npt.NDArray[np.uint32]:
    """Return keys in the form of bulk calls: uint32[n, 8]."""
    return np.array([[*row, *[0] * (8 - len(row))] for row in keys], np.uint32).reshape(-1, 8)


def agree(index: KeyIndex, oracle: BruteForceKeys, probes: list[tuple[int, ...]]) -> None:
    """Assert that every probe, one by one and as a batch, finds what brute force finds."""
    batch = index.probe_many(rows(*probes))
    assert len(batch) == len(probes)
    for number, keys in enumerate(probes):
        expected = oracle.probe(keys)
        assert index.probe(keys).tolist() == expected
        assert batch[number].sequences.tolist() == expected


class AnyHistory(RuleBasedStateMachine):
    """Insertions, bulk insertions and removals in any order, compared with brute force."""

    inserted = Bundle("inserted")

    @initialize(max_per_key=st.sampled_from([1, 2, 3, 64]))
    def open(self, max_per_key: int) -> None:
        """Start empty."""
        self.index, self.oracle = KeyIndex(max_per_key=max_per_key), BruteForceKeys(max_per_key)

    @rule(target=inserted, sequence=st.integers(0, 9), keys=few_keys)
    def insert(self, sequence: int, keys: tuple[int, ...]) -> Entry:
        """Insert; a sequence that is stored with one of the keys is refused."""
        if self.oracle.holds(sequence, proper(keys)):
            with pytest.raises(StateError):
                self.index.insert(sequence, keys)
        else:
            self.index.insert(sequence, keys)
            self._record(sequence, keys)
        return sequence, keys

    @rule(entries=entries_lists)
    def insert_many(self, entries: list[Entry]) -> None:
        """Insert many: all, or none if one is there already."""
        arguments = np.array([sequence for sequence, _ in entries], np.int64), rows(*(keys for _, keys in entries))
        if any(self.oracle.holds(sequence, proper(keys)) for sequence, keys in entries):
            with pytest.raises(StateError):
                self.index.insert_many(*arguments)
        else:
            self.index.insert_many(*arguments)
            for entry in entries:
                self._record(*entry)

    @rule(entry=inserted)
    def remove(self, entry: Entry) -> None:
        """Remove; an entry that is not there is refused."""
        self._remove(*entry)

    @rule(sequence=st.integers(0, 9), keys=few_keys)
    def remove_other_keys(self, sequence: int, keys: tuple[int, ...]) -> None:
        """Remove by keys that are mostly not those inserted."""
        self._remove(sequence, keys)

    @rule(probes=st.lists(few_keys, max_size=3))
    def probe(self, probes: list[tuple[int, ...]]) -> None:
        """Find what brute force finds."""
        agree(self.index, self.oracle, probes)

    @invariant()
    def size(self) -> None:
        """Count the entries."""
        if hasattr(self, "index"):
            assert len(self.index) == len(self.oracle.entries)

    def _record(self, sequence: int, keys: tuple[int, ...]) -> None:
        if proper(keys):
            self.oracle.entries.add((sequence, proper(keys)))

    def _remove(self, sequence: int, keys: tuple[int, ...]) -> None:
        if not proper(keys) or (sequence, proper(keys)) in self.oracle.entries:
            self.index.remove(sequence, keys)
            self.oracle.entries.discard((sequence, proper(keys)))
        else:
            with pytest.raises(KeyError, match=f"sequence {sequence} with keys"):
                self.index.remove(sequence, keys)


AnyHistory.TestCase.settings = settings(max_examples=40, stateful_step_count=30, deadline=None)
TestAnyHistory = AnyHistory.TestCase


@settings(deadline=None)  # the first example may compile
@given(entries=entries_lists, probes=st.lists(few_keys, min_size=1, max_size=4), max_per_key=st.integers(1, 4))
def test_bulk_equals_one_by_one(entries: list[Entry], probes: list[tuple[int, ...]], max_per_key: int) -> None:
    """Entries inserted at once, or one by one in any order, give the same answers."""
    at_once, one_by_one = KeyIndex(max_per_key=max_per_key), KeyIndex(max_per_key=max_per_key)
    at_once.insert_many(np.array([sequence for sequence, _ in entries], np.int64), rows(*(keys for _, keys in entries)))
    for sequence, keys in reversed(entries):
        one_by_one.insert(sequence, keys)
    left, right = at_once.probe_many(rows(*probes)), one_by_one.probe_many(rows(*probes))
    assert left.offsets.tolist() == right.offsets.tolist()
    assert left.sequences.tolist() == right.sequences.tolist()
    assert len(at_once) == len(one_by_one)


def test_a_removed_entry_does_not_count_towards_the_bound() -> None:
    """The next entry in order takes the place of a removed one."""
    removed, never_there = KeyIndex(max_per_key=2), KeyIndex(max_per_key=2)
    for sequence in range(4):
        removed.insert(sequence, [7, 100 + sequence])
        if sequence != 1:
            never_there.insert(sequence, [7, 100 + sequence])
    assert removed.probe([7]).tolist() == [0, 1]
    removed.remove(1, [7, 101])
    assert removed.probe([7]).tolist() == never_there.probe([7]).tolist() == [0, 2]


@pytest.mark.parametrize("keys", [(5,), (5, 6, 7), (5, 6, 8), (9,)])
def test_an_entry_is_removed_by_all_its_keys_and_no_others(keys: tuple[int, ...]) -> None:
    """Some of its keys, or further keys, even of an entry with the same sequence, remove nothing."""
    index = KeyIndex()
    for sequence, stored in [(1, [5, 6]), (1, [7]), (2, [9])]:
        index.insert(sequence, stored)
    with pytest.raises(KeyError, match=r"sequence 1 with keys \[.*\] is not in the index"):
        index.remove(1, keys)
    assert len(index) == 3
    assert [index.probe([key]).tolist() for key in (5, 6, 7, 9)] == [[1], [1], [1], [2]]


def test_a_common_key_does_not_hide_a_rare_one() -> None:
    """An entry far back in a crowded bucket is found by its other key."""
    index = KeyIndex(max_per_key=3)
    index.insert_many(np.arange(1000), rows(*((9, 1000 + at) for at in range(1000))))
    assert index.probe([9, 1900]).tolist() == [0, 1, 2, 900]


def test_thousands_of_entries_are_replaced() -> None:
    """Each entry is found by each of its keys, and memory stays bounded."""
    numbers = np.arange(1, 8 * 40_000 + 1, dtype=np.uint32)
    keys = (numbers * np.uint32(0x85EBCA6B)).reshape(-1, 8)  # an odd factor: all of them differ
    keys[:, 0] = 1 + numbers[: len(keys)] % 49
    index, batch = KeyIndex(max_per_key=1), 10_000
    index.insert_many(np.arange(batch), keys[:batch])
    size = index.size_bytes
    for start in range(batch, len(keys), batch):
        for old in range(start - batch, start):
            index.remove(old, keys[old])
            index.insert(old + batch, keys[old + batch])
        assert len(index) == batch
    assert index.size_bytes <= size * 1.5
    assert index.size_bytes / batch < 24 * 8
    kept = len(keys) - batch
    for number in range(1, 8):
        found = index.probe_many(keys[:, number].repeat(8).reshape(-1, 8))
        assert found.offsets.tolist() == [0] * kept + list(range(batch + 1))
        assert found.sequences.tolist() == list(range(kept, len(keys)))
    assert [index.probe([key])[0] for key in keys[kept : kept + 49, 0]] == list(range(kept, kept + 49))


def test_keys_of_the_last_slots_can_be_removed_in_any_order() -> None:
    """Keys that wrapped from the end of the table to its beginning are found until they are removed."""
    last = key_table.FIRST_SLOTS - 3
    keys = [key for key in range(1, 30_000) if key_table.home(np.uint32(key), key_table.FIRST_SLOTS) >= last]
    index = KeyIndex()
    for sequence, key in enumerate(keys):
        index.insert(sequence, [key])
    remaining = list(range(len(keys)))
    for sequence in np.random.default_rng(2).permutation(len(keys)).tolist():
        index.remove(sequence, [keys[sequence]])
        remaining.remove(sequence)
        assert [at for at, key in enumerate(keys) if len(index.probe([key]))] == remaining
    assert len(keys) > 50


def test_the_earliest_of_a_huge_bucket_are_removed_without_a_walk() -> None:
    """A hundred thousand entries with one key are removed in order; both ends of the rest are right."""
    index, count = KeyIndex(max_per_key=2), 100_000
    keys = np.zeros((count, 8), np.uint32)
    keys[:, 3] = 7
    index.insert_many(np.arange(count), keys)
    for sequence in range(count - 3):
        index.remove(sequence, [7])
    index.remove(count - 1, [7])
    assert index.probe([7]).tolist() == [count - 3, count - 2]
    index.insert(count, [7])
    index.remove(count - 3, [7])
    assert index.probe([7]).tolist() == [count - 2, count]


def test_bulk_insertion_of_a_present_entry_changes_nothing() -> None:
    """If one of many entries is there already, StateError is raised and none of the others is added."""
    index = KeyIndex()
    index.insert(77, [5])
    with pytest.raises(StateError, match="sequence 77 with one of the keys"):
        index.insert_many(np.arange(100), rows(*((at + 1, 5) for at in range(100))))
    assert len(index) == 1
    assert index.probe([*range(1, 9)]).tolist() == [77]


def test_bulk_leaves_its_arguments_alone() -> None:
    """Read-only and strided arrays are accepted and not written to."""
    sequences, keys = np.arange(20)[::-2], np.arange(320, dtype=np.uint32).reshape(40, 8)[::4, ::-1]
    sequences.flags.writeable = keys.flags.writeable = False
    index = KeyIndex()
    index.insert_many(sequences, keys)
    assert index.probe_many(keys).sequences.tolist() == sequences.tolist()


@pytest.mark.parametrize(
    ("sequences", "keys", "message"),
    [
        (np.arange(2), np.zeros((1, 8), np.uint32), "an int64 for each row"),
        (np.arange(1), np.zeros((1, 7), np.uint32), r"shape \(n, 8\)"),
        (np.arange(1), np.zeros((1, 8), np.int64), "give uint32"),
        (np.array([-1]), np.zeros((1, 8), np.uint32), "sequence -1 is negative"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(
    sequences: npt.NDArray[np.int64], keys: npt.NDArray[np.uint32], message: str
) -> None:
    """Bulk insertion refuses arrays of other shapes and types, and negative sequences."""
    with pytest.raises(ConfigurationError, match=message):
        KeyIndex().insert_many(sequences, keys)


@pytest.mark.parametrize("keys", [[-1], [1 << 32], [1] * 9])
def test_keys_that_do_not_fit_are_refused(keys: list[int]) -> None:
    """A ninth key, a negative one and one of 33 bits are refused by every call."""
    index = KeyIndex()
    for call in (lambda: index.insert(1, keys), lambda: index.remove(1, keys), lambda: index.probe(keys)):
        with pytest.raises(ConfigurationError, match="up to 8 unsigned 32-bit integers"):
            call()


def test_other_values_that_do_not_fit_are_refused() -> None:
    """A probe must look at one entry at least; a sequence is an int64 that is not negative."""
    with pytest.raises(ConfigurationError, match="probe of 0 entries a key"):
        KeyIndex(max_per_key=0)
    with pytest.raises(ConfigurationError, match="sequence -1 does not fit"):
        KeyIndex().insert(-1, [1])


@given(st.lists(st.lists(st.integers(1, 12), min_size=8, max_size=8), max_size=40), st.integers(1, 5))
def test_the_entries_that_share_most_keys_are_returned(rows: list[list[int]], max_found: int) -> None:
    """The earliest of equals, in ascending order, from single and bulk probes."""
    index, full = KeyIndex(max_found=max_found), KeyIndex()
    for sequence, keys in enumerate(rows):
        index.insert(sequence, keys)
        full.insert(sequence, keys)
    keys_probed = [1, 2, 3, 4, 5, 6, 7, 8]
    shares = {sequence: len(set(rows[sequence]) & set(keys_probed)) for sequence in full.probe(keys_probed).tolist()}
    expected = sorted(sorted(shares, key=lambda sequence: (-shares[sequence], sequence))[:max_found])
    assert index.probe(keys_probed).tolist() == expected
    batch = index.probe_many(np.array([keys_probed, [0] * 8, keys_probed], np.uint32))
    assert batch.sequences.tolist() == expected * 2
