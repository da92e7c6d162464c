"""What the other modules make of entries."""

from hypothesis import given
from hypothesis import strategies as st

from dedup_service._native import Entry
from dedup_service.core.decision.entries import signed, unsigned

ENTRY = Entry(1, 2, None, 4, 5, True, b"evidence", 6, 7, 8, b"keys", True, 9)


def test_entries_are_equal_wherever_they_are() -> None:
    """The row in a store is its own affair; another value makes another entry."""
    assert Entry(1, 2, None, 4, 5, True, b"evidence", 6, 7, 8, b"keys", True, 10) == ENTRY == ENTRY.at(1)
    assert Entry(1, 2, None, 4, 5, True, b"evidence", 6, 7, 8, b"keys", False) != ENTRY
    assert ENTRY.at(3) != ENTRY
    assert Entry(1, 2, 0, 4, 5, True, b"evidence", 6, 7, 8, b"keys", True, 9) != ENTRY
    assert ENTRY != (1, 2)


@given(st.none() | st.integers(0, (1 << 64) - 1))
def test_a_column_of_signed_integers_keeps_all_bits(value: int | None) -> None:
    """SQLite has no others."""
    stored = signed(value)
    assert stored is None or -(1 << 63) <= stored < 1 << 63
    assert unsigned(stored) == value
