"""Where the candidates of a page come from, and the entries that they are.

A decider asks for the entries that may match a page, and reports which entries are added and removed.
`LocalCandidates` answers from tables in this process; another `Candidates` could ask shards elsewhere, and
the decider would not change.

An entry lives in the window (`window`) for `layout.window` pages. Then it is settled: it gets a row in the store
(`entry_store`), and all tables (`entry_tables`) get that row. Every source is complete within its definition:

- equal texts: every entry with the same text hash, or, of a text long enough to speak for itself, with the
  same body hash (the earliest `_MAX_EQUAL` of them);
- block indexes: every entry within the radius of a channel, if the rule has one;
- cells (`core.index.cell_index`): entries that share min-hash keys, if the rule uses keys. Cells change
  exactly `window` pages behind the log: a page is probed against the cells as they were after the outcome of
  the page that many places before it;
- the window: the pages in between.

Pages are decided in batches. When a batch begins, everything that is known by then is done for all of its pages in
compiled loops (`batch_probe`): entries are settled, tables are probed, the evidence of all candidates is read at once,
and those that cannot be similar are left out. A batch is cut where it is longer than the window.

The ordinal of a page is the number of pages decided before it; with it, every answer is a function of the
log, not of how it was cut into batches or where it was continued.
"""

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from heapq import merge
from itertools import islice, takewhile
from typing import Protocol

import numpy as np
import numpy.typing as npt

from dedup_service.core.decision.batch_probe import BatchProbe
from dedup_service.core.decision.entries import Entry
from dedup_service.core.decision.entry_rows import EntryPieces, EntryRows
from dedup_service.core.decision.entry_store import EntryStore, HeldEntries, HeldValues, MemoryStore, entries_at
from dedup_service.core.decision.entry_tables import EntryTables
from dedup_service.core.decision.matching import body_decides, min_rough_jaccard
from dedup_service.core.decision.window import PageColumns, Window
from dedup_service.core.errors import StateError
from dedup_service.core.evidence.keys import MAX_LEVELS, PARTS
from dedup_service.core.evidence.overlap import NONE_COMMON
from dedup_service.core.evidence.packed import Evidence, sketch_of
from dedup_service.core.index import CellChanges, CellStatistics, IndexStatistics
from dedup_service.core.index.cell_index import SIEVE_BYTES, CellAnswers
from dedup_service.core.page import PreparedPage
from dedup_service.core.rules.layout import IndexLayout
from dedup_service.core.rules.rule import MatchRule

__all__ = ["Batch", "CandidateSizes", "Candidates", "Common", "LocalCandidates", "RemovedEntry", "none_common"]

Batch = Sequence[tuple[int, PreparedPage]]
"""Pages that are decided next: (sequence, page), ascending."""

Common = Callable[[], npt.NDArray[np.uint32]]
"""Returns sentences of a page, ascending: uint32[n]."""


def none_common() -> npt.NDArray[np.uint32]:
    """Return no sentences."""
    return NONE_COMMON


_MAX_EQUAL = 64
"""Entries with one text, at most: copies are not kept, so there are more only where pages were updated to it."""

_MOST_PAGES = 512
"""Pages of a batch that are probed at once: comparing all their pairs takes about 1 ms."""

_MAX_UNSETTLED = 1024
"""Entries behind the window that wait until a page is probed, at most."""

_AHEAD = 256
"""Earliest entries that are read at once: those that expire next."""

_SIEVE_WORDS = SIEVE_BYTES // 8
_NO_SIEVE = bytes(SIEVE_BYTES)

_PATH_BYTES = PARTS + 4 * PARTS * MAX_LEVELS
"""Bytes of a path, at most."""


@dataclass(frozen=True, slots=True)
class RemovedEntry:
    """An entry that was removed when `ordinal` was the latest page, and that the cells still need."""

    ordinal: int
    entry: Entry


class Candidates(Protocol):
    """Holds the entries, and finds those that are candidates for a page."""

    def __len__(self) -> int:
        """Return the number of live entries."""
        ...

    def batch(self, batch: Batch) -> AbstractContextManager[None]:
        """Announce a batch: inside, its pages are decided in their order, and no others."""
        ...

    def begin(self, ordinal: int) -> None:
        """Announce the page with this ordinal, the next one of the batch if there is one."""
        ...

    def find(self, evidence: Evidence, common: Common = none_common) -> list[Entry]:
        """Return the live entries that are candidates for the page that was announced, ascending by sequence.

        evidence: of the page. common: returns those of its sentences that are the own text of its host, ascending:
        uint32[n].
        """
        ...

    def equal_texts(self, prepared: PreparedPage) -> list[Entry]:
        """Return the live entries with the same text as a page, the earliest of each hash, ascending."""
        ...

    def visit(self, url: int) -> Entry | None:
        """Return the live entry of the URL with this hash, the earliest if there are several, or None."""
        ...

    def get(self, sequence: int) -> Entry | None:
        """Return the live entry at `sequence`, or None."""
        ...

    def first(self) -> Entry | None:
        """Return the earliest live entry, None if there is none."""
        ...

    def add(self, entry: Entry) -> None:
        """Add an entry, later than all others: it is found from now on."""
        ...

    def remove(self, entry: Entry, ordinal: int) -> None:
        """Remove a live entry, as an effect of the page with this ordinal or of a record after it."""
        ...

    def removed(self) -> list[RemovedEntry]:
        """Return the removed entries that the cells still need, in the order of their removal."""
        ...

    def young(self) -> list[Entry]:
        """Return the live entries that are not settled, in order."""
        ...

    def held(self) -> HeldEntries:
        """Return a view of the live entries, within milliseconds for any number of them."""
        ...

    def use(self, rule: MatchRule) -> None:
        """Find what this rule asks for from now on."""
        ...


@dataclass(frozen=True, slots=True)
class CandidateSizes:
    """Sizes of the indexes. channels: block index by channel. cells: of the cell index."""

    channels: dict[str, IndexStatistics]
    cells: CellStatistics


class LocalCandidates:
    """Entries and indexes in this process.

    rule: which sources are asked. restored: live entries to begin with, in order; those that are not settled are in
    the window, others come after those of the store. store: None keeps entries in memory. tables: of the entries in
    the store; None builds them. removed: entries that the cells still need; those without a row get one. shards: parts
    of each block index.
    """

    def __init__(
        self,
        rule: MatchRule,
        restored: EntryPieces = (),
        *,
        store: EntryStore | None = None,
        tables: EntryTables | None = None,
        layout: IndexLayout | None = None,
        removed: Sequence[RemovedEntry] = (),
        shards: int = 1,
    ) -> None:
        self._layout = layout or IndexLayout()
        self._store: EntryStore = MemoryStore() if store is None else store
        self._tables = tables or EntryTables(self._layout, shards=shards)
        self._window = Window()
        self._young = _Young()
        self._removals: deque[_Removal] = deque()
        self._unsettled: dict[int, _Removal] = {}
        self._gone: dict[int, Entry] = {}
        self._oldest = _Oldest(self._store, self._gone)
        self._batch: Batch = ()
        self._done = 0
        self._probe: BatchProbe | None = None
        self._probed: tuple[list[PreparedPage], PageColumns, CellAnswers]
        self._ordinal = -1
        self.last_candidates = self.last_read = 0
        self._use(rule)
        if tables is None:
            for numbers, entries in self._store.live_pieces():
                self._tables.restore(numbers, entries)
        self._tables.probe_for(rule, self._store)
        self._restore(restored, removed, renumbered=store is None, rebuilt=tables is None)

    def __len__(self) -> int:
        return len(self._store) - len(self._gone) + len(self._window)

    @property
    def tables(self) -> EntryTables:
        """The tables."""
        return self._tables

    def use(self, rule: MatchRule) -> None:
        """Find what this rule asks for from now on. Outside of a batch."""
        self._catch_up()
        self._use(rule)
        self._tables.probe_for(rule, self._store)

    def sizes(self) -> CandidateSizes:
        """Return the sizes of the indexes; takes about 1 ms. Fingerprints of the window count, too."""
        channels: dict[str, IndexStatistics] = {}
        for channel, index in self._tables.indexes.items():
            settled = index.statistics()
            young = [entry.channel(channel) for entry in self._window.entries() if entry.indexed]
            values = [value for value in young if value is not None]
            entries, fingerprints = settled.entries + len(values), settled.fingerprints + len(set(values))
            channels[channel] = replace(settled, entries=entries, fingerprints=fingerprints)
        return CandidateSizes(channels, self._tables.cells.statistics())

    @contextmanager
    def batch(self, batch: Batch) -> Iterator[None]:
        """Announce a batch: inside, its pages are decided in their order, and no others."""
        self._batch, self._done = batch, 0
        try:
            yield
        finally:
            self._end_probe()
            self._batch = ()

    def begin(self, ordinal: int) -> None:
        """Announce the page with this ordinal, the next one of the batch if there is one."""
        self._ordinal = ordinal
        if self._probe is not None and self._probe.has_next:
            self._probe.advance()
        elif self._batch:
            self._end_probe()
            self._begin_probe(ordinal)
        elif len(self._removals) + self._window.backlog(ordinal - self._layout.window) > _MAX_UNSETTLED:
            self._settle(ordinal, [])
        self._window.leave(ordinal - self._layout.window)

    def find(self, evidence: Evidence, common: Common = none_common) -> list[Entry]:
        """Return the live entries that are candidates for the page that was announced, ascending by sequence.

        Sets `last_candidates`, how many entries were looked at in tables, and `last_read`, how many are returned.
        """
        probe = self._current_probe()
        if self._gone and probe.is_outdated(self._gone):
            self._flush()
            probe = self._probe = self._renewed(probe.page)
        self.last_candidates, self.last_read = probe.looked_at, 0
        if not probe.has_candidates:
            return []
        sentences = common()
        rows, places = probe.rows(evidence, sentences), probe.places(evidence, sentences)
        settled = [probe.entry(row) for row in rows if row not in self._gone]
        young = [entry for place in places if (entry := self._window.at(place)) is not None]
        found = {entry.sequence: entry for entry in (*settled, *young)}
        self.last_read = len(found)
        return [found[sequence] for sequence in sorted(found)]

    def equal_texts(self, prepared: PreparedPage) -> list[Entry]:
        """Return the live entries with the same text as a page, the earliest of each hash, ascending."""
        probe = self._current_probe()
        found: dict[int, Entry] = {}
        if prepared.text_hash is not None:
            young = self._young.texts.get(prepared.text_hash, ())
            self._find_equal(found, probe.texts(), young, "text_hash", prepared.text_hash)
        if prepared.body_hash is not None and body_decides(prepared.evidence):
            young = self._young.bodies.get(prepared.body_hash, ())
            self._find_equal(found, probe.bodies(), young, "body_hash", prepared.body_hash)
        return [found[sequence] for sequence in sorted(found)] if found else []

    def visit(self, url: int) -> Entry | None:
        """Return the live entry of the URL with this hash, the earliest if there are several, or None."""
        probe = self._probe
        if probe is not None and (rows := probe.visits(url)) is not None:
            settled = (row for row in rows if row not in self._gone and probe.has(row, "url_hash", url))
            row = next(settled, None)
            if row is not None:
                return probe.entry(row)
        else:
            entry = self._settled_visit(url)
            if entry is not None:
                return entry
        return next((self._window.get(sequence) for sequence in self._young.urls.get(url, ())), None)

    def get(self, sequence: int) -> Entry | None:
        """Return the live entry at `sequence`, or None."""
        young = self._window.get(sequence)
        if young is not None:
            return young
        row = self._store.find(sequence)
        return None if row is None or row in self._gone else entries_at(self._store, np.array([row]))[0]

    def first(self) -> Entry | None:
        """Return the earliest live entry, None if there is none."""
        return self._oldest.first() or self._window.earliest()

    def add(self, entry: Entry) -> None:
        """Add an entry, later than all others: it is found from now on."""
        if self._probe is None:
            self._window.announce(PageColumns.of([entry]))
            self._window.keep(0, entry)
            self._window.finish()
        else:
            self._window.keep(self._probe.page, entry)
        self._young.add(entry)

    def remove(self, entry: Entry, ordinal: int) -> None:
        """Remove a live entry; the cells lose it when the page with this ordinal leaves the window."""
        removal = _Removal(ordinal, replace(entry, evidence=b""))  # the cells need its keys alone
        self._removals.append(removal)
        if self._window.get(entry.sequence) is not None:
            self._window.remove(removal.entry)
            self._young.remove(entry)
            self._unsettled[entry.sequence] = removal
            return
        if entry.row < 0:
            raise KeyError(entry.sequence)
        self._gone[entry.row] = entry
        self._oldest.remove(entry.row)
        self._window.forget(entry)
        if self._probe is None and len(self._gone) >= _MAX_UNSETTLED:
            self._flush()

    def removed(self) -> list[RemovedEntry]:
        """Return the removed entries that the cells still need, in the order of their removal."""
        self._catch_up()
        return [RemovedEntry(removal.ordinal, removal.entry) for removal in self._removals]

    def young(self) -> list[Entry]:
        """Return the live entries that are not settled, in order."""
        self._catch_up()
        return self._window.entries()

    def held(self) -> HeldEntries:
        """Return a view of the live entries, within milliseconds for any number of them."""
        young = HeldValues(tuple(self.young()))
        return HeldEntries((*self._store.held().parts, young))

    def _use(self, rule: MatchRule) -> None:
        self._rule, self._min_jaccard = rule, min_rough_jaccard(rule)

    def _find_equal(
        self, found: dict[int, Entry], rows: Sequence[int], young: Sequence[int], name: str, value: int
    ) -> None:
        """Add the earliest entries with a hash to `found`. rows, young: where they may be. name: its field in ROW."""
        if not rows and not young:
            return
        probe = self._current_probe()
        settled = (probe.entry(row) for row in rows if row not in self._gone and probe.has(row, name, value))
        known = (self._window.get(sequence) for sequence in young)
        equal = (entry for source in (settled, known) for entry in source if entry is not None)
        found |= {entry.sequence: entry for entry in islice(equal, _MAX_EQUAL)}

    def _settled_visit(self, url: int) -> Entry | None:
        """Return the settled entry of a URL's hash, without what a batch knows."""
        rows = np.array([row for row in self._tables.urls.rows(url) if row not in self._gone], np.int64)
        if not len(rows):
            return None
        rows = rows[self._store.live(rows)]
        equal = rows[self._store.rows(rows)["url_hash"] == np.uint64(url)]
        return entries_at(self._store, equal[:1])[0] if len(equal) else None

    def _current_probe(self) -> BatchProbe:
        if self._probe is None:
            raise RuntimeError("no page was announced: call `begin` inside of a batch")
        return self._probe

    def _begin_probe(self, ordinal: int) -> None:
        """Settle and probe for the next pages of the batch, of which the first has this ordinal."""
        most = min(_MOST_PAGES, self._layout.window)
        pages = [page for _, page in self._batch[self._done : self._done + most]]
        if not pages:
            raise RuntimeError("more pages are decided than the batch has")
        self._done += len(pages)
        columns = PageColumns.of(pages)
        answers = self._settle(ordinal, pages, columns)
        self._window.announce(columns)
        self._window.leave(ordinal - self._layout.window)
        self._probed = pages, columns, answers
        self._probe = self._renewed(0)

    def _renewed(self, first: int) -> BatchProbe:
        """Return what is found now for the pages that are probed. first: number of the present one."""
        pages, columns, answers = self._probed
        return BatchProbe(
            pages, columns, self._rule, self._min_jaccard, self._store, self._tables, self._window, answers, first
        )

    def _end_probe(self) -> None:
        if self._probe is not None:
            self._probe = None
            self._window.finish()

    def _catch_up(self) -> None:
        """Do what waits for the next page that is probed, up to the latest page."""
        if self._probe is None:
            self._settle(self._ordinal, [])

    def _flush(self) -> None:
        """Remove what is gone from the store and the tables."""
        if not self._gone:
            return
        entries = [self._gone[row] for row in sorted(self._gone)]
        numbers = np.array([entry.row for entry in entries], np.uint32)
        self._tables.remove(numbers, EntryRows.from_entries(entries))
        self._store.remove(numbers)
        self._gone.clear()

    def _settle(self, ordinal: int, pages: Sequence[PreparedPage], columns: PageColumns | None = None) -> CellAnswers:
        """Let entries leave the window, and removed ones the cells, that are due for some pages; probe the cells.

        ordinal: of the first page, before which nothing else is due. columns: of the pages.
        """
        self._flush()
        last = ordinal - self._layout.window + max(0, len(pages) - 1)
        changes = self._due(last)
        entries = [entry for _, entry, removal in changes if removal is None]
        first = self._store.reserve(len(entries), sum(len(entry.evidence) + _PATH_BYTES for entry in entries))
        rows = {entry.sequence: row for row, entry in enumerate(entries, first)}
        due = ordinal - self._layout.window + np.arange(len(pages))
        cell_changes = self._cell_changes(changes, rows)
        answers = self._tables.cells.follow(
            cell_changes,
            np.searchsorted([at for at, *_ in changes], due, side="right"),
            self._keys([page.keys if self._rule.keys and page.keys else b"" for page in pages]),
            np.zeros((0, _SIEVE_WORDS), np.uint64) if columns is None else columns.sieves,
        )
        if not changes:
            return answers
        for _ in range(len(changes) - len(entries)):
            self._removals.popleft()
        paths = [path for path, (*_, removal) in zip(answers.paths, changes, strict=True) if removal is None]
        settled = [entry.settle(path, rows[entry.sequence]) for entry, path in zip(entries, paths, strict=True)]
        self._append(settled)
        of_row = {entry.row: entry.keys for entry in settled}
        told = [of_row.get(int(row), given) for row, given in zip(cell_changes.rows, cell_changes.paths, strict=True)]
        self._store.follow_cells(cell_changes, told)
        return answers

    def _due(self, last: int) -> list[tuple[int, Entry, "_Removal | None"]]:
        """Return what the cells have to follow up to an ordinal, in order: (ordinal, entry, its removal if it is one).

        What one page did is applied in this order: its own entry, then the removals.
        """
        adds = [(entry.ordinal, 0, entry, None) for entry in self._window.unsettled(last)]
        removes = [
            (removal.ordinal, 1, removal.entry, removal)
            for removal in takewhile(lambda removal: removal.ordinal <= last, self._removals)
        ]
        ordered = merge(adds, removes, key=lambda change: change[:2]) if adds and removes else adds or removes
        return [(at, entry, removal) for at, _, entry, removal in ordered]

    def _cell_changes(self, changes: list[tuple[int, Entry, "_Removal | None"]], rows: dict[int, int]) -> CellChanges:
        """Return changes as the cells take them. rows: of the entries that are added, by sequence."""
        return CellChanges(
            rows=np.array([rows.get(entry.sequence, entry.row) for _, entry, _ in changes], np.uint32),
            ordinals=np.array([entry.ordinal for _, entry, _ in changes], np.int64),
            removes=np.array([removal is not None for *_, removal in changes], np.bool_),
            keys=self._keys([entry.keys if removal is None else b"" for _, entry, removal in changes]),
            sieves=np.frombuffer(b"".join([_sieve(entry.evidence) for _, entry, _ in changes]), np.uint64).reshape(
                -1, _SIEVE_WORDS
            ),
            paths=[entry.keys if removal is not None and entry.settled else b"" for _, entry, removal in changes],
        )

    def _keys(self, packed: list[bytes]) -> npt.NDArray[np.uint32]:
        """Return packed keys as uint32[n, PARTS, levels], 0 where they are none of so many levels."""
        levels = self._tables.cells.levels
        size = 4 * PARTS * levels
        none = bytes(size)
        joined = b"".join([keys if len(keys) == size else none for keys in packed])
        return np.frombuffer(joined, "<u4").reshape(-1, PARTS, levels)

    def _append(self, entries: list[Entry]) -> None:
        """Give settled entries their rows in the store and the tables. Of removed ones only the row is left."""
        if not entries:
            return
        dead = np.array([entry.sequence in self._unsettled for entry in entries], np.bool_)
        stored = [
            replace(entry, evidence=b"", keys=b"") if is_dead else entry
            for entry, is_dead in zip(entries, dead, strict=True)
        ]
        added = EntryRows.from_entries(stored)
        numbers = self._store.append(added)
        if numbers[0] != entries[0].row:
            raise StateError(f"the store has given row {numbers[0]}, not {entries[0].row} as it said")
        self._window.settle(entries)
        for entry in entries:
            if (removal := self._unsettled.pop(entry.sequence, None)) is not None:
                removal.entry = entry
            else:
                self._young.remove(entry)
        if dead.any():
            self._store.remove(numbers[dead])
            numbers, added = numbers[~dead], added.where(~dead)
        self._tables.add(numbers, added)

    def _restore(
        self, restored: EntryPieces, removed: Sequence[RemovedEntry], *, renumbered: bool, rebuilt: bool
    ) -> None:
        """Fill store, tables and window.

        removed: in the order of their removal. renumbered: rows are new. rebuilt: the cells have live rows alone.
        """
        young: list[Entry] = []
        for piece in restored:
            mask = piece.settled
            settled = piece if mask.all() else piece.where(mask)
            self._tables.restore(self._store.append(settled), settled)
            if not mask.all():
                young += piece.where(~mask).entries()
        for gone in removed:
            removal = _Removal(gone.ordinal, gone.entry)
            self._removals.append(removal)
            if not gone.entry.settled:
                young.append(gone.entry)
                self._unsettled[gone.entry.sequence] = removal
            elif renumbered or gone.entry.row < 0:
                row = self._store.append(EntryRows.from_entries([replace(gone.entry, evidence=b"", keys=b"")]))
                self._store.remove(row)
                self._tables.restore_cells(row, EntryRows.from_entries([gone.entry]))
                removal.entry = replace(gone.entry, row=int(row[0]))
            elif rebuilt:
                self._tables.restore_cells(np.array([gone.entry.row], np.uint32), EntryRows.from_entries([gone.entry]))
        young.sort(key=lambda entry: entry.ordinal)
        self._window.announce(PageColumns.of(young))
        for number, entry in enumerate(young):
            live = entry.sequence not in self._unsettled
            self._window.keep(number, entry, live=live)
            if live:
                self._young.add(entry)
        self._window.finish()


@dataclass(slots=True)
class _Removal:
    """A removed entry that is still in the cells, or will come there; it gets its path when it is settled."""

    ordinal: int
    entry: Entry


class _Young:
    """The live entries that are not settled, by their hashes: sequences, ascending."""

    def __init__(self) -> None:
        self.urls: dict[int, list[int]] = {}
        self.texts: dict[int, list[int]] = {}
        self.bodies: dict[int, list[int]] = {}

    def add(self, entry: Entry) -> None:
        """Add an entry, later than all others."""
        for table, value in self._hashes(entry):
            table.setdefault(value, []).append(entry.sequence)

    def remove(self, entry: Entry) -> None:
        """Remove an entry."""
        for table, value in self._hashes(entry):
            sequences = table[value]
            sequences.remove(entry.sequence)
            if not sequences:
                del table[value]

    def _hashes(self, entry: Entry) -> Iterator[tuple[dict[int, list[int]], int]]:
        yield self.urls, entry.url_hash
        if entry.text_hash is not None:
            yield self.texts, entry.text_hash
        if entry.body_hash is not None and body_decides(entry.evidence):
            yield self.bodies, entry.body_hash


class _Oldest:
    """The earliest live entries of a store, read some hundred at a time. The store only grows at its end.

    gone: rows that are removed, and that the store still has.
    """

    def __init__(self, store: EntryStore, gone: Mapping[int, Entry]) -> None:
        self._store, self._gone = store, gone
        self._ahead: deque[Entry] = deque()
        self._removed: set[int] = set()
        self._read = -1

    def first(self) -> Entry | None:
        """Return the earliest entry that was not removed, or None."""
        while True:
            while self._ahead and self._ahead[0].row in self._removed:
                self._removed.discard(self._ahead.popleft().row)
            if self._ahead:
                return self._ahead[0]
            rows = self._store.first(self._read, _AHEAD)
            if not len(rows):
                return None
            self._read = int(rows[-1])
            self._removed.update(row for row in rows.tolist() if row in self._gone)
            self._ahead.extend(entries_at(self._store, rows))

    def remove(self, row: int) -> None:
        """Remove a row; one that was not read yet is in `gone`, or the store does not have it any more."""
        if row <= self._read:
            self._removed.add(row)


def _sieve(evidence: bytes) -> bytes:
    sketch = sketch_of(evidence, SIEVE_BYTES)
    return sketch if len(sketch) == SIEVE_BYTES else _NO_SIEVE
