"""The table of live entries, compared with a dictionary."""

from dataclasses import replace

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
    table = EntryTable([EntryRows.from_entries([entries[sequence] for sequence in range(1, restored + 1)])])
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
    table = EntryTable()
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


def test_entries_that_have_left_the_window_are_kept_as_arrays() -> None:
    """Only those of the window and the last thousand are objects; all are found, with paths in place of keys."""
    table = EntryTable()
    window = 300
    entries = [
        Entry(3 * number, number, number, None, number, evidence=b"e", ordinal=number, keys=b"keys")
        for number in range(10_000)
    ]
    for number, entry in enumerate(entries):
        table.settle([(3 * at, b"path %d" % at) for at in range(number - window, number - window + 1) if at >= 0])
        table.add(entry)
    assert len(table._latest) == window
    assert len(table._settled) < 1024
    table.remove(3)
    table.remove(3 * 9_990)
    assert table.get(3) is None
    assert table.get(4) is None
    settled = [replace(entry, keys=b"path %d" % entry.ordinal, settled=True) for entry in entries[: 10_000 - window]]
    expected = [entry for entry in [*settled, *entries[10_000 - window :]] if entry.ordinal not in {1, 9_990}]
    assert [table[entry.sequence] for entry in expected] == expected
    assert len(table) == len(table.rows()) == 9_998
    assert list(table.rows().entries()) == expected


def test_an_entry_removed_in_the_window_is_not_settled() -> None:
    """Its path is of no use to the table: the cells alone still need it."""
    table = EntryTable([EntryRows.from_entries([Entry(1, 1, None, 7, 1, keys=b"keys"), Entry(2, 2, None, 7, 2)])])
    table.remove(1)
    table.settle([(1, b"path"), (2, b"path")])
    assert table.get(1) is None
    assert [(entry.sequence, entry.keys, entry.settled) for entry in table.rows().entries()] == [(2, b"path", True)]
    table.add(Entry(3, 3, None, 7, 3, keys=b"keys"))
    restored = EntryTable([table.rows()])
    restored.settle([(3, b"path 3")])
    assert [entry.keys for entry in restored.rows().entries()] == [b"path", b"path 3"]
    assert [entry.keys for entry in table.rows().entries()] == [b"path", b"keys"]
