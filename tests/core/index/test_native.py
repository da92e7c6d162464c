"""Faults of the native core, and arguments that it refuses, are errors like any other."""

from collections.abc import Callable

import numpy as np
import pytest

from dedup_service._native import CellFilling, CellIndex, HammingFilling, HashFilling, HashRows, panic_on_purpose
from dedup_service.core.errors import InternalError, StateError

ROW, ORDINAL, HASH = np.array([7], np.uint32), np.array([0], np.int64), np.array([1], np.uint64)
KEYS, SIEVE, NONE = np.ones((1, 8, 8), np.uint32), np.zeros((1, 2), np.uint64), np.empty(0, np.int64)
ADDS, REMOVES = np.zeros(1, np.uint8), np.ones(1, np.uint8)


def test_a_panic_is_an_internal_error() -> None:
    """It has the message of the panic, and says what to do."""
    with pytest.raises(InternalError, match="a fault of twinsieve: no such place; report it"):
        panic_on_purpose("no such place")


def follow(*change: object, due: object = NONE) -> Callable[[], object]:
    """Return a call that gives one change, and no page, to an empty index."""
    return lambda: CellIndex(8, 8).follow(*change, due, KEYS[:0], SIEVE[:0])  # type: ignore[arg-type]


def filled_twice() -> None:
    """Take a table from a filling two times."""
    filling = HashFilling(1 << 60)
    filling.finish(1_000_000_000)
    filling.finish(1)


def one_row_twice() -> None:
    """Fill an index with a row that has two fingerprints."""
    filling = HammingFilling()
    filling.add(np.array([7, 7], np.uint32), np.array([1, 2], np.uint64))
    filling.finish()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (follow(ROW, ORDINAL, ADDS, KEYS[:, :1, :2], SIEVE, [b""]), "1 rows, 0 changes"),
        (follow(ROW, ORDINAL, ADDS, KEYS, SIEVE, []), "1 rows, 0 changes"),
        (follow(ROW, ORDINAL, REMOVES, KEYS, SIEVE, [b""]), "is not in the cells of its path"),
        (follow(ROW, ORDINAL, REMOVES, KEYS, SIEVE, [b"\xff" * 9]), "is not in the cells of its path"),
        (follow(ROW, ORDINAL, ADDS, KEYS, SIEVE, [b""], due=ORDINAL), "differ in number"),
        (follow(np.array([0xFFFF_FFFF], np.uint32), ORDINAL, ADDS, KEYS, SIEVE, [b""]), "the index is full"),
        (lambda: CellFilling(8, 8, 1 << 62).add(ROW, ORDINAL, SIEVE, b"123", ORDINAL, ORDINAL + 999), "no path at 0"),
        (lambda: CellFilling(8, 8, 1).add(ROW, ORDINAL, SIEVE, b"123", ORDINAL + 3, ORDINAL + 1), "no path at 3"),
        (lambda: HashRows().remove(HASH, ROW), "does not have row 7"),
        (filled_twice, "given away"),
        (one_row_twice, "row 7 is in the index already"),
    ],
)
def test_what_contradicts_a_table_is_a_state_error(call: Callable[[], object], message: str) -> None:
    """Columns of different lengths, removals of what is not there, paths outside of their bytes: no panic."""
    with pytest.raises(StateError, match=message):
        call()
