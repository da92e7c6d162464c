"""Entries in chunks, against a plain dictionary, with chunks so small that every edge is met."""

import random

import pytest

from dedup_service.core.decision import entry_arrays
from dedup_service.core.decision.entries import Entry
from dedup_service.core.decision.entry_arrays import EntryArrays, HeldEntries
from dedup_service.core.decision.entry_rows import EntryRows


def entries_at(start: int, count: int) -> list[Entry]:
    """Entries at every third sequence, with evidence of several sizes, also empty."""
    return [
        Entry(3 * at, at, None, at, at, evidence=b"S" * (at % 4), keys=b"k" * (at % 3))
        for at in range(start, start + count)
    ]


@pytest.mark.parametrize("seed", range(30))
def test_chunks_behave_like_a_dictionary(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """After any additions and removals look-ups, lengths and all earlier exports are right."""
    monkeypatch.setattr(entry_arrays, "CHUNK_ROWS", 8)
    monkeypatch.setattr(entry_arrays, "_MIN_ROWS", 2)
    chosen = random.Random(seed)
    end = chosen.randrange(30)
    held = {entry.sequence: entry for entry in entries_at(0, end)}
    arrays = EntryArrays([EntryRows.from_entries(list(held.values()))])
    exports: list[tuple[HeldEntries, list[Entry]]] = []
    for _ in range(30):
        more = entries_at(end, chosen.randrange(20))
        end += len(more)
        arrays.append(EntryRows.from_entries(more))
        held |= {entry.sequence: entry for entry in more}
        for sequence in chosen.choices(range(3 * end + 2), k=chosen.randrange(30)):
            assert arrays.remove(sequence) == (held.pop(sequence, None) is not None)
        exports.append((arrays.held(), list(held.values())))
    assert [arrays.get(sequence) for sequence in range(-1, 3 * end)] == [held.get(at) for at in range(-1, 3 * end)]
    assert len(arrays) == len(held)
    assert all(list(export.rows().entries()) == entries for export, entries in exports)
