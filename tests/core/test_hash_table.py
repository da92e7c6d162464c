"""Tests for the size of open-addressed tables."""

import pytest

from dedup_service.core.hash_table import table_size
from dedup_service.core.kernels import kernel


@kernel
def size_for(entries: int) -> int:
    """Return the size of a table for so many entries."""
    return table_size(entries)


@pytest.mark.parametrize(("entries", "size"), [(0, 16), (8, 16), (9, 32), (1000, 2048), (1024, 2048)])
def test_half_of_a_table_is_empty(entries: int, size: int) -> None:
    """The size is a power of two, at least twice the entries."""
    assert size_for(entries) == size
