"""Tests for open-addressed tables, against sets."""

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dedup_service.core.hash_table import EMPTY, slot_of, table_size
from dedup_service.core.kernels import kernel


@kernel
def inserted(keys: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Return a table of the keys uint64[n]."""
    table = np.zeros(table_size(len(keys)), dtype=np.uint64)
    for key in keys:
        table[slot_of(table, key)] = key
    return table


@kernel
def is_in(table: npt.NDArray[np.uint64], key: np.uint64) -> bool:
    """Whether the table has the key."""
    return table[slot_of(table, key)] == key


@kernel
def size_for(entries: int) -> int:
    """Return the size of a table for so many entries."""
    return table_size(entries)


# Keys that share their lowest bits fall into one run of slots, which may go over the table's end.
KEYS = st.lists(st.sampled_from([1, 15, 16, 31, 47, 63, 64, 2**63 + 15, 2**64 - 1]) | st.integers(1, 2**64 - 1))


@given(KEYS, KEYS)
def test_a_table_holds_what_a_set_holds(keys: list[int], others: list[int]) -> None:
    """Each key once, whatever slots they share, and no other."""
    table = inserted(np.array(keys, dtype=np.uint64))
    assert sorted(table[table != EMPTY].tolist()) == sorted(set(keys))
    assert all(is_in(table, np.uint64(key)) for key in keys)
    assert all(is_in(table, np.uint64(key)) == (key in keys) for key in others)


@pytest.mark.parametrize(("entries", "size"), [(0, 16), (8, 16), (9, 32), (1000, 2048), (1024, 2048)])
def test_half_of_a_table_is_empty(entries: int, size: int) -> None:
    """The size is a power of two, at least twice the entries."""
    assert size_for(entries) == size
