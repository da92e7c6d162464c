"""The table of live entries, compared with a dictionary."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dedup_service.core.decision.entries import Entry
from dedup_service.core.decision.entry_arrays import EntryTable
from dedup_service.core.decision.entry_rows import EntryRows


@given(st.integers(0, 6), st.lists(st.integers(0, 12), max_size=20))
def test_it_behaves_like_a_dictionary(restored: int, touched: list[int]) -> None:
    """Restored and added entries can be looked up, and removed once."""
    entries = {sequence: Entry(sequence, sequence, None, 7, sequence) for sequence in range(1, 11)}
    table = EntryTable(EntryRows.from_entries([entries[sequence] for sequence in range(1, restored + 1)]))
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


@given(st.lists(st.tuples(st.integers(0, 60), st.booleans()), max_size=60), st.sets(st.integers(1, 60), max_size=4))
def test_an_export_does_not_change(steps: list[tuple[int, bool]], exports: set[int]) -> None:
    """Rows exported between additions and removals are the live entries of that moment."""
    held: dict[int, Entry] = {}
    table = EntryTable(EntryRows.none())
    taken: list[tuple[EntryRows, list[Entry]]] = []
    for number, (touched, wanted) in enumerate(steps, 1):
        if touched in held and not wanted:
            del held[touched]
            table.remove(touched)
        held[number] = Entry(number, number, None, 7, number, evidence=b"S" * (number % 3))
        table.add(held[number])
        if number in exports:
            taken.append((table.rows(), list(held.values())))
    assert all(list(rows.entries()) == entries for rows, entries in taken)
    assert [table.get(number) for number in range(len(steps) + 2)] == [held.get(n) for n in range(len(steps) + 2)]
    assert list(table.rows().entries()) == list(held.values())


def test_many_entries_are_kept_as_arrays() -> None:
    """Only the latest entries are objects; all others are found, too, and a removed one is not."""
    table = EntryTable(EntryRows.none())
    entries = [Entry(3 * number, number, number, None, number) for number in range(10_000)]
    for entry in entries:
        table.add(entry)
    assert len(table._latest) < 4096
    table.remove(3)
    assert table.get(3) is None
    assert table.get(4) is None
    assert [table[3 * number] for number in range(2, 10_000)] == entries[2:]
    assert len(table) == len(table.rows()) == 9_999
