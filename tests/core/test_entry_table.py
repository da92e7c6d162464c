"""The table of live entries, against a plain dictionary."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dedup_service.core.entries import Entry
from dedup_service.core.entry_rows import EntryRows
from dedup_service.core.entry_table import EntryTable


@given(st.integers(0, 6), st.lists(st.integers(0, 12), max_size=20))
def test_it_behaves_like_a_dictionary(restored: int, touched: list[int]) -> None:
    """Restored and added entries can be looked up and removed alike, once."""
    entries = {sequence: Entry(sequence, sequence, None, 7, sequence) for sequence in range(1, 11)}
    table = EntryTable(EntryRows.of([entries[sequence] for sequence in range(1, restored + 1)]))
    for sequence in range(restored + 1, 11):
        table.add(entries[sequence])
    for sequence in touched:
        if entries.pop(sequence, None) is None:
            with pytest.raises(KeyError):
                table.remove(sequence)
        else:
            table.remove(sequence)
        assert table.get(sequence) is None
    assert len(table) == len(entries)
    assert all(table[sequence] == entry for sequence, entry in entries.items())
