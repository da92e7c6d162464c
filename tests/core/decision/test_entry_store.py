"""Settled entries in memory, against a plain dictionary, with chunks so small that every edge is met."""

import random

import numpy as np
import pytest

from dedup_service.core.decision import entry_store
from dedup_service.core.decision.entries import Entry
from dedup_service.core.decision.entry_rows import EntryRows
from dedup_service.core.decision.entry_store import HeldEntries, HeldValues, MemoryStore, entries_at
from dedup_service.core.errors import StateError


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Chunks of 8 rows, arrays that grow from 2 rows, and exports of 5 bytes of evidence."""
    monkeypatch.setattr(entry_store, "CHUNK_ROWS", 8)
    monkeypatch.setattr(entry_store, "_MIN_ROWS", 2)
    monkeypatch.setattr(entry_store, "_PIECE_BYTES", 5)


def made(start: int, count: int) -> list[Entry]:
    """Entries at every third sequence, with evidence and paths of several sizes, also empty."""
    return [
        Entry(
            3 * at,
            at,
            None,
            at,
            at,
            evidence=bytes([at % 256]) * (at % 4),
            ordinal=at,
            keys=b"k" * (at % 3),
            settled=True,
        )
        for at in range(start, start + count)
    ]


class Pair:
    """A store beside a dictionary of its live rows."""

    def __init__(self) -> None:
        self.store, self.live, self.end = MemoryStore(), dict[int, Entry](), 0

    def append(self, count: int) -> None:
        """Append entries; they get the rows that `reserve` says."""
        more = made(self.end, count)
        first = self.store.reserve(count, sum(len(entry.evidence) + len(entry.keys) for entry in more))
        numbers = self.store.append(EntryRows.from_entries(more))
        assert numbers.dtype == np.uint32
        assert numbers.tolist() == [*range(first, first + count)] == [*range(self.end, self.end + count)]
        self.live |= dict(zip(numbers.tolist(), more, strict=True))
        self.end += count

    def remove(self, rows: list[int]) -> None:
        """Remove live rows."""
        self.store.remove(np.array(rows, np.uint32))
        for row in rows:
            del self.live[row]

    def check(self, chosen: random.Random) -> None:
        """Every way to read answers as the dictionary does."""
        store, live = self.store, self.live
        assert (len(store), store.next_row) == (len(live), self.end)
        anywhere = np.arange(self.end + 20)
        assert store.live(anywhere).tolist() == [row in live for row in anywhere.tolist()]
        asked = chosen.choices(sorted(live), k=chosen.randrange(20)) if live else []  # in any order, some repeatedly
        numbers = np.array(asked, chosen.choice([np.uint32, np.int64]))
        spans = store.evidence(numbers)
        assert store.rows(numbers)["sequence"].tolist() == [live[row].sequence for row in asked]
        assert [spans[place] for place in range(len(spans))] == [live[row].evidence + live[row].keys for row in asked]
        assert spans.sizes.tolist() == [len(live[row].evidence) for row in asked]
        found = entries_at(store, numbers)
        assert found == [live[row] for row in asked]
        assert [entry.row for entry in found] == asked
        after, limit = chosen.randrange(-1, self.end + 9), chosen.randrange(1, 30)
        assert store.first(after, limit).tolist() == [row for row in sorted(live) if row > after][:limit]
        assert store.first().tolist() == sorted(live)[:1]
        rows_of = {entry.sequence: row for row, entry in live.items()}
        sought = [*chosen.choices(range(-1, 3 * self.end + 2), k=9), *chosen.choices([-1, *rows_of], k=9)]
        assert [store.find(sequence) for sequence in sought] == [rows_of.get(sequence) for sequence in sought]
        pieces = list(store.live_pieces())
        assert [row for numbers, _ in pieces for row in numbers.tolist()] == sorted(live)
        assert [entry for _, piece in pieces for entry in piece.entries()] == [live[row] for row in sorted(live)]


@pytest.mark.parametrize("seed", range(30))
def test_a_store_behaves_like_a_dictionary(seed: int) -> None:
    """After any additions and removals every reader is right, and views taken earlier have not changed."""
    chosen, pair = random.Random(seed), Pair()
    views: list[tuple[HeldEntries, list[Entry]]] = []
    for _ in range(25):
        pair.append(chosen.randrange(20))
        share = chosen.choice([0.0, 0.1, 0.5, 1.0])
        pair.remove([row for row in chosen.sample(sorted(pair.live), len(pair.live)) if chosen.random() < share])
        pair.check(chosen)
        views.append((pair.store.held(), list(pair.live.values())))
    for view, entries in views:
        size = len(entries), sum(len(entry.evidence) + len(entry.keys) for entry in entries)
        assert list(view.rows().entries()) == entries
        assert [entry for piece in view for entry in piece.entries()] == entries
        assert view.size() == size
        held, sought = {entry.sequence for entry in entries}, chosen.choices(range(3 * pair.end + 1), k=5)
        assert [view.has(sequence) for sequence in sought] == [sequence in held for sequence in sought]


def test_the_memory_of_removed_rows_is_used_again() -> None:
    """A chunk of which most rows are removed is compacted, and an empty one is given up."""
    store = MemoryStore()
    evidence = b"e" * 1000
    store.append(EntryRows.from_entries([Entry(at, at, None, at, at, evidence=evidence) for at in range(80)]))
    full = store.size_bytes
    assert full > 80 * len(evidence)
    store.remove(np.array([row for row in range(80) if row % 8 > 2], np.uint32))
    assert store.size_bytes < full / 2
    store.remove(np.array([row for row in range(80) if row % 8 <= 2], np.uint32))
    assert store.size_bytes == len(store) == 0
    assert store.append(EntryRows.from_entries([Entry(100, 1, None, 1, 1)])).tolist() == [80]  # no row is used again


def test_a_row_that_is_not_live_cannot_be_removed() -> None:
    """One that was removed before, or never given: the others of the call stay."""
    pair = Pair()
    pair.append(20)
    pair.remove([3, 4, 5, 6, 7])
    for gone in (3, 20, 1000):
        with pytest.raises(KeyError, match=f"no live row {gone}"):
            pair.store.remove(np.array([2, gone, 9], np.uint32))
        pair.check(random.Random(gone))


def test_an_empty_store_answers_too() -> None:
    """It has no rows, no first one, and takes no entries as well as many."""
    pair = Pair()
    pair.append(0)
    pair.check(random.Random(0))
    assert pair.store.held().rows().rows.tolist() == []
    assert HeldEntries().size() == (0, 0)


def test_a_store_that_has_given_all_rows_refuses_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error says what to do; what the store has is still there."""
    monkeypatch.setattr(entry_store, "_MAX_ROWS", 30)
    pair = Pair()
    pair.append(28)
    with pytest.raises(StateError, match="all 30 row numbers: begin a new state"):
        pair.store.reserve(3, 0)
    with pytest.raises(StateError, match="begin a new state"):
        pair.store.append(EntryRows.from_entries(made(28, 3)))
    pair.check(random.Random(1))
    pair.append(2)
    pair.check(random.Random(2))


def test_a_view_has_parts_of_several_kinds() -> None:
    """Rows of a store come first, and then entries that are values."""
    pair = Pair()
    pair.append(10)
    young = tuple(made(10, 3))
    view = HeldEntries((*pair.store.held().parts, HeldValues(young)))
    assert list(view.rows().entries()) == [*pair.live.values(), *young]
    assert view.size()[0] == 13
    assert [view.has(sequence) for sequence in (0, 27, 30, 36, 37, 39)] == [True, True, True, True, False, False]
