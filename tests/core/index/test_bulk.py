"""Bulk insertion, which restores an index from a journal."""

import numpy as np
import pytest

from dedup_service.core.errors import StateError
from dedup_service.core.index import BlockIndex
from tests.core.index.streams import hot, pairs_of, uniform


def test_bulk_equals_one_by_one() -> None:
    """Entries inserted at once in any order, or one by one, give the same answers."""
    stored = np.concatenate([uniform(6000, 1), hot(5000, 2), np.repeat(uniform(5, 3), 300)])
    order = np.random.default_rng(4).permutation(len(stored))
    at_once, one_by_one = BlockIndex(5), BlockIndex(5)
    at_once.insert_many(order, stored[order])
    for sequence, fingerprint in enumerate(stored.tolist()):
        one_by_one.insert(sequence, fingerprint)
    probes = stored[::97] ^ np.uint64(0b1001)
    left, right = at_once.probe_many(probes), one_by_one.probe_many(probes)
    assert [pairs_of(left[at]) for at in range(len(probes))] == [pairs_of(right[at]) for at in range(len(probes))]
    assert len(at_once) == len(one_by_one) == len(stored)


def test_bulk_insertion_of_a_present_entry_changes_nothing() -> None:
    """If one of many entries is there already, StateError is raised and none of the others is added."""
    index = BlockIndex(3)
    index.insert(77, 77)
    with pytest.raises(StateError, match="row 77 with fingerprint 77 is in the index already"):
        index.insert_many(np.arange(100), np.arange(100, dtype=np.uint64))
    assert len(index) == 1
    assert pairs_of(index.probe(77)) == [(0, 77)]


def test_bulk_leaves_its_arguments_alone() -> None:
    """Read-only and strided arrays are accepted and not written to."""
    sequences, stored = np.arange(20)[::-2], uniform(20, 1)[::2]
    sequences.flags.writeable = stored.flags.writeable = False
    index = BlockIndex(3)
    index.insert_many(sequences, stored)
    assert pairs_of(index.probe(int(stored[0]))) == [(0, 19)]


def test_empty_arrays_are_accepted() -> None:
    """They insert nothing, and their probes find nothing."""
    index = BlockIndex(7)
    index.insert_many(np.empty(0, np.int64), np.empty(0, np.uint64))
    assert len(index) == len(index.probe_many(np.empty(0, np.uint64))) == len(index.probe(5)) == 0
