"""Where the candidates of a page come from, and the entries that they are.

A decider asks for the entries that may match a page, and reports which entries are added and removed.
`LocalCandidates` answers from tables in this process; another `Candidates` could ask shards elsewhere, and
the decider would not change.

An entry lives in the window (`window`) for `layout.window` pages. Then it is settled: it gets a row in the store
(`entry_store`), and all tables (`entry_tables`) get that row. Every source is complete within its definition:

- equal texts: every entry with the same text hash, or, of a text long enough to speak for itself, with the
  same body hash (the earliest `MAX_EQUAL` of them);
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

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice, takewhile
from typing import Any

import numpy as np
import numpy.typing as npt

from dedup_service.core.decision.batch_probe import BatchProbe, Hashed
from dedup_service.core.decision.entries import Entry
from dedup_service.core.decision.entry_rows import SETTLED, EntryPieces, EntryRows, indexed_by
from dedup_service.core.decision.entry_store import EntryStore, HeldEntries, HeldValues, MemoryStore, entries_at
from dedup_service.core.decision.entry_tables import EntryTables
from dedup_service.core.decision.expiry import OldestEntries
from dedup_service.core.decision.page_columns import PageColumns
from dedup_service.core.decision.page_runs import PageRun, RunRequest, run_on
from dedup_service.core.decision.table_answers import ProbeBounds, probe_tables
from dedup_service.core.decision.window import Unsettled, Window
from dedup_service.core.errors import StateError
from dedup_service.core.evidence.keys import MAX_LEVELS, PARTS
from dedup_service.core.evidence.overlap import NONE_COMMON
from dedup_service.core.evidence.packed import Evidence
from dedup_service.core.index.block_index import IndexStatistics
from dedup_service.core.index.cell_index import SIEVE_BYTES, CellAnswers, CellChanges, CellStatistics
from dedup_service.core.rules.layout import IndexLayout
from dedup_service.core.rules.rule import MatchRule

Common = Callable[[], npt.NDArray[np.uint32]]
"""Returns sentences of a page, ascending: uint32[n]."""


def none_common() -> npt.NDArray[np.uint32]:
    """Return no sentences."""
    return NONE_COMMON


MAX_EQUAL = 64
"""Entries with one text, at most: copies are not kept, so there are more only where pages were updated to it."""

_MAX_UNSETTLED = 1024
"""Entries behind the window that wait until a page is probed, at most."""

OLDEST_AHEAD = 160
"""Entries that may expire in one run."""

_SIEVE_WORDS = SIEVE_BYTES // 8

_PATH_BYTES = PARTS + 4 * PARTS * MAX_LEVELS
"""Bytes of a path, at most."""


@dataclass(frozen=True, slots=True)
class RemovedEntry:
    """An entry that was removed when `ordinal` was the latest page, and that the cells still need."""

    ordinal: int
    entry: Entry


class Candidates(ABC):
    """Holds the entries, and finds those that are candidates for a page.

    rule: which sources are asked. Has the window, and the pages that are announced; a subclass has the settled entries.
    `last_candidates` is how many entries were looked at in tables for the latest page, `last_read` how many were read.
    """

    _gone: Mapping[int, Any]
    """Removed rows that what was found for the present pages may still name."""

    def __init__(self, rule: MatchRule, layout: IndexLayout) -> None:
        self._layout = layout
        self._window = Window()
        self._bounds = ProbeBounds.of(rule)
        self._announced: PageColumns | None = None
        self._begun = self._first = self._end = 0  # pages that were announced: begun, and those that the window has
        self._probe: BatchProbe | None = None
        self._ordinal = -1
        self.last_candidates = self.last_read = 0

    @abstractmethod
    def __len__(self) -> int:
        """Return the number of live entries."""

    @abstractmethod
    def announce(self, pages: PageColumns, *, judged: bool = True) -> None:
        """Announce the pages that are decided next, in this order and no others, until `finish`.

        judged: False if it is known what is kept of them: then nothing is found for them.
        """

    def finish(self) -> None:
        """End what was announced."""
        self._end_probe()
        self._announced, self._begun, self._first, self._end = None, 0, 0, 0

    def begin(self, ordinal: int) -> None:
        """Go on to the next page that was announced, which has this ordinal."""
        self._ordinal = ordinal
        if self._begun == self._end:
            self._end_probe()
            self._begin_probe(ordinal)
        elif self._probe is not None:
            self._probe.page += 1
        self._begun += 1
        self._window.leave(ordinal - self._layout.window)

    @property
    def is_alone(self) -> bool:
        """Whether it is already known that nothing is found for the page: no visit, no equal text, no candidate."""
        probe = self._current_probe()
        self.last_candidates, self.last_read = probe.looked_at, 0
        return probe.is_alone

    def run_on(self, request: RunRequest) -> PageRun:
        """Decide the pages behind the present one as far as that depends on their candidates alone (`page_runs`).

        They have their effects then, but that the entries that expired are still to be removed.
        """
        probe, first = self._current_probe(), self._begun - self._first
        oldest = [] if request.bounds is None else self._expire_next()
        window = self._window.for_run(self._layout.window, self._first)
        run = run_on(request, *probe.runs, window, first, np.array(oldest, np.int64), len(self))
        if run.pages:
            self._window.keep_all(first, run.kept)
            self._begun += run.pages
            probe.page += run.pages
            self._ordinal += run.pages
            self._window.leave(self._ordinal - self._layout.window)
            self.last_candidates, self.last_read = probe.looked_at, run.compared
        return run

    def find(self, evidence: Evidence, common: Common = none_common) -> list[Entry]:
        """Return the live entries that are candidates for the page, ascending by sequence.

        evidence: of the page. common: returns those of its sentences that are the own text of its host, ascending:
        uint32[n].
        """
        probe = self._current_probe()
        if self._gone and probe.is_outdated(self._gone):
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

    def equal_texts(self) -> list[Entry]:
        """Return the live entries with the same text as the page, the earliest of each hash, ascending."""
        probe = self._current_probe()
        texts = self._equal(probe.texts(), "text_hash", MAX_EQUAL)
        bodies = self._equal(probe.bodies(), "body_hash", MAX_EQUAL)
        found = {entry.sequence: entry for entry in (*texts, *bodies)}
        return [found[sequence] for sequence in sorted(found)] if found else []

    def visit(self, url: int) -> Entry | None:
        """Return the live entry of the URL with this hash, the earliest if there are several, or None."""
        found = None if self._probe is None else self._probe.visits(url)
        if found is None:
            return self._settled_visit(url) or self._window.visit(url)
        return next(iter(self._equal(found, "url_hash", 1)), None)

    @abstractmethod
    def get(self, sequence: int) -> Entry | None:
        """Return the live entry at `sequence`, or None."""

    @abstractmethod
    def first(self) -> Entry | None:
        """Return the earliest live entry, None if there is none."""

    def add(self) -> None:
        """Add the entry of the page: it is found from now on."""
        self._window.keep(self._begun - 1 - self._first)

    @abstractmethod
    def remove(self, entry: Entry, ordinal: int) -> None:
        """Remove a live entry, as an effect of the page with this ordinal or of a record after it."""

    @abstractmethod
    def removed(self) -> list[RemovedEntry]:
        """Return the removed entries that the cells still need, in the order of their removal."""

    def young(self) -> list[Entry]:
        """Return the live entries that are not settled, in order."""
        return self._window.entries()

    @abstractmethod
    def state(self) -> bytes:
        """Return what the candidates need beside `young` and `removed` to go on, b"" for nothing."""

    @abstractmethod
    def held(self) -> HeldEntries:
        """Return a view of the live entries, within milliseconds for any number of them."""

    def use(self, rule: MatchRule) -> None:
        """Find what this rule asks for from now on. Outside of a batch."""
        self._bounds = ProbeBounds.of(rule)

    @abstractmethod
    def _begin_probe(self, ordinal: int) -> None:
        """Give the next pages that were announced, of which the first has this ordinal, their places; probe for them.

        There are no more of them than the window has, so that none sees another leave it.
        """

    @abstractmethod
    def _renewed(self, first: int) -> BatchProbe:
        """Return what is found now for the pages that are probed. first: number of the present one."""

    @abstractmethod
    def _expire_next(self) -> list[int]:
        """Return the sequences of the earliest `OLDEST_AHEAD` settled entries."""

    @abstractmethod
    def _settled_visit(self, url: int) -> Entry | None:
        """Return the settled entry of a URL's hash, without what a batch knows."""

    def _equal(self, found: Hashed, name: str, limit: int) -> list[Entry]:
        """Return the earliest live entries with a hash of the page. name: its field in ROW."""
        entries: list[Entry] = []
        if found.rows:
            probe = self._current_probe()
            rows = (row for row in found.rows if row not in self._gone and probe.has(row, name, found.value))
            entries = [probe.entry(row) for row in islice(rows, limit)]
        if len(found.places) and len(entries) < limit:
            entries += self._window.live(found.places, limit - len(entries))
        return entries

    def _current_probe(self) -> BatchProbe:
        if self._probe is None:
            raise RuntimeError("no page is judged: call `announce` and `begin`")
        return self._probe

    def _next_columns(self) -> PageColumns:
        """Return the next pages that were announced, no more than the window has."""
        if self._announced is None or self._end == len(self._announced):
            raise RuntimeError("more pages are decided than were announced")
        self._first, self._end = self._end, min(self._end + self._layout.window, len(self._announced))
        columns = self._announced
        return columns[self._first : self._end] if self._end - self._first < len(columns) else columns

    def _end_probe(self) -> None:
        self._probe = None
        self._window.finish()


@dataclass(frozen=True, slots=True)
class CandidateSizes:
    """Sizes of the indexes. channels: block index by channel. cells: of the cell index."""

    channels: dict[str, IndexStatistics]
    cells: CellStatistics


class LocalCandidates(Candidates):
    """Entries and indexes in this process.

    rule: which sources are asked. restored: live entries to begin with, in order; those that are not settled are in
    the window, others come after those of the store. store: None keeps entries in memory. tables: of the entries in
    the store; None builds them. removed: entries that the cells still need; those without a row get one.
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
    ) -> None:
        super().__init__(rule, layout or IndexLayout())
        self._store: EntryStore = MemoryStore() if store is None else store
        self._tables = tables or EntryTables(self._layout)
        self._removals: deque[_Removal] = deque()
        self._unsettled: dict[int, _Removal] = {}
        self._gone: dict[int, Entry] = {}
        self._oldest = OldestEntries(self._store, self._gone)
        self._judged = True
        self._probed: tuple[PageColumns, CellAnswers]
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
        super().use(rule)
        self._tables.probe_for(rule, self._store)

    def sizes(self) -> CandidateSizes:
        """Return the sizes of the indexes; takes about 1 ms. Fingerprints of the window count, too."""
        channels: dict[str, IndexStatistics] = {}
        for channel, index in self._tables.indexes.items():
            settled = index.statistics()
            young = self._window.rows()
            values = young[channel][indexed_by(young["flags"], channel)]
            entries, fingerprints = settled.entries + len(values), settled.fingerprints + len(np.unique(values))
            channels[channel] = replace(settled, entries=entries, fingerprints=fingerprints)
        return CandidateSizes(channels, self._tables.cells.statistics())

    def announce(self, pages: PageColumns, *, judged: bool = True) -> None:
        """Announce the pages that are decided next, in this order and no others, until `finish`.

        judged: False if it is known what is kept of them: then nothing is found for them.
        """
        self.finish()
        self._announced, self._judged = pages, judged

    @property
    def store(self) -> EntryStore:
        """The settled entries."""
        return self._store

    def keep(self, pages: PageColumns) -> None:
        """Keep pages of which another process has decided that: they wait in the window."""
        self.finish()
        self._window.announce(pages)
        self._window.keep_all(0, np.ones(len(pages), np.bool_))
        self._window.finish()

    def settle(self, ordinal: int, pages: PageColumns) -> CellAnswers:
        """Settle what is due for pages of which the first has this ordinal; return what the cells say of them.

        Everything that is due is settled then, so that the tables have all that another process must know.
        """
        answers = self._settle(ordinal, pages)
        self._window.leave(ordinal - self._layout.window + max(0, len(pages) - 1))
        return answers

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

    def remove(self, entry: Entry, ordinal: int) -> None:
        """Remove a live entry; the cells lose it when the page with this ordinal leaves the window."""
        removal = _Removal(ordinal, entry.without_evidence())
        if entry.row < 0:
            self._window.remove(entry.sequence)
            self._unsettled[entry.sequence] = removal
            self._removals.append(removal)
            return
        if any(entry.keys) or not entry.keys:  # of zeros, as its base has erased it: the cells keep a dead row
            self._removals.append(removal)
        self._gone[entry.row] = entry
        if self._probe is not None:
            self._probe.remove(entry.row)
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
        return super().young()

    def state(self) -> bytes:
        """Return nothing: the store has the rest."""
        return b""

    def held(self) -> HeldEntries:
        """Return a view of the live entries, within milliseconds for any number of them."""
        young = HeldValues(tuple(self.young()))
        return HeldEntries((*self._store.held().parts, young))

    def _expire_next(self) -> list[int]:
        return [entry.sequence for entry in self._oldest.ahead(OLDEST_AHEAD)]

    def _settled_visit(self, url: int) -> Entry | None:
        """Return the settled entry of a URL's hash, without what a batch knows."""
        rows = np.array([row for row in self._tables.urls.rows(url) if row not in self._gone], np.int64)
        if not len(rows):
            return None
        rows = rows[self._store.live(rows)]
        equal = rows[self._store.rows(rows)["url_hash"] == np.uint64(url)]
        return entries_at(self._store, equal[:1])[0] if len(equal) else None

    def _begin_probe(self, ordinal: int) -> None:
        """Give the next pages that were announced, of which the first has this ordinal, their places; probe for them.

        There are no more of them than the window has, so that none sees another leave it.
        """
        columns = self._next_columns()
        if not self._judged:
            if len(self._removals) + self._window.backlog(ordinal - self._layout.window) > _MAX_UNSETTLED:
                self._settle(ordinal)
            self._window.announce(columns)
            return
        answers = self._settle(ordinal, columns)
        self._window.leave(ordinal - self._layout.window)
        self._window.announce(columns)
        self._probed = columns, answers
        self._probe = self._renewed(0)

    def _renewed(self, first: int) -> BatchProbe:
        """Return what is found now for the pages that are probed. first: number of the present one."""
        self._flush()
        columns, answers = self._probed
        found = probe_tables(columns, self._bounds, self._store, self._tables, answers)
        return BatchProbe(columns, self._bounds, found, self._window, first)

    def _catch_up(self) -> None:
        """Do what waits for the next page that is probed, up to the latest page."""
        if self._probe is None:
            self._settle(self._ordinal)

    def _flush(self) -> None:
        """Remove what is gone from the store and the tables."""
        if not self._gone:
            return
        numbers = np.array(sorted(self._gone), np.uint32)
        self._tables.remove(numbers, EntryRows(self._store.rows(numbers)))
        self._store.remove(numbers)
        self._gone.clear()

    def _settle(self, ordinal: int, pages: PageColumns | None = None) -> CellAnswers:
        """Let entries leave the window, and removed ones the cells, that are due for some pages; probe the cells.

        ordinal: of the first page, before which nothing else is due.
        """
        self._flush()
        count = 0 if pages is None else len(pages)
        last = ordinal - self._layout.window + max(0, count - 1)
        entries = self._window.unsettled(last)
        removals = list(takewhile(lambda removal: removal.ordinal <= last, self._removals))
        first = self._store.reserve(len(entries), sum(map(len, entries.packed)) + len(entries) * _PATH_BYTES)
        changes, ordinals = self._cell_changes(entries, removals, first)
        answers = self._tables.cells.follow(
            changes,
            ordinals.searchsorted(np.arange(count) + (ordinal - self._layout.window), side="right"),
            self._keys([] if pages is None else [keys if self._bounds.keys else b"" for keys in pages.keys]),
            np.zeros((0, _SIEVE_WORDS), np.uint64) if pages is None else pages.sieves,
        )
        if not len(changes.rows):
            return answers
        for _ in removals:
            self._removals.popleft()
        paths = answers.paths if not removals else [answers.paths[place] for place in np.flatnonzero(~changes.removes)]
        if len(entries):
            self._append(first, entries, paths)
        if removals:
            self._tables.release_sieves(changes.rows[changes.removes], self._store, self._waiting_rows)
        return answers

    def _waiting_rows(self) -> Iterator[int]:
        """Iterate over the rows that are removed and still in the cells."""
        return (removal.entry.row for removal in self._removals)

    def _cell_changes(
        self, entries: Unsettled, removals: Sequence["_Removal"], first: int
    ) -> tuple[CellChanges, npt.NDArray[np.int64]]:
        """Return what the cells have to follow, in order, and the ordinal of the page that did each: int64[m].

        What one page did is applied in this order: its own entry, then the removals. first: row of the first entry.
        """
        added = entries.rows["ordinal"].astype(np.int64)
        rows, keys, sieves = np.arange(first, first + len(entries)), self._keys(entries.keys), entries.sieves
        removes = np.zeros(len(entries), np.bool_)
        if not removals:
            paths = [b""] * len(entries)
            return CellChanges(rows.astype(np.uint32), added, removes, keys, sieves, paths), added
        numbers = {int(entries.rows["sequence"][place]): first + int(place) for place in np.flatnonzero(~entries.live)}
        removed = [removal.entry for removal in removals]
        done = np.array([removal.ordinal for removal in removals], np.int64)
        at = np.searchsorted(added, done, side="right")
        changed = CellChanges(
            np.insert(rows, at, [numbers.get(entry.sequence, entry.row) for entry in removed]).astype(np.uint32),
            np.insert(added, at, [entry.ordinal for entry in removed]),
            np.insert(removes, at, True),
            np.insert(keys, at, 0, axis=0),
            np.insert(sieves, at, 0, axis=0),
            [],
        )
        given = iter([entry.keys if entry.settled else b"" for entry in removed])
        paths = [next(given) if is_removal else b"" for is_removal in changed.removes.tolist()]
        return replace(changed, paths=paths), np.insert(added, at, done)

    def _keys(self, packed: Sequence[bytes]) -> npt.NDArray[np.uint32]:
        """Return packed keys as uint32[n, PARTS, levels], 0 where they are none of so many levels."""
        levels = self._tables.cells.levels
        size = 4 * PARTS * levels
        none = bytes(size)
        joined = bytearray().join([keys if len(keys) == size else none for keys in packed])
        return np.frombuffer(joined, "<u4").reshape(-1, PARTS, levels)

    def _append(self, first: int, entries: Unsettled, paths: Sequence[bytes]) -> None:
        """Give settled entries their rows in the store and the tables. Of removed ones only the row is left.

        first: the first row.
        """
        live, rows = entries.live.tolist(), entries.rows
        stored = [path if alive else b"" for path, alive in zip(paths, live, strict=True)]
        paths_bytes = np.fromiter(map(len, stored), np.int64, len(stored))
        rows["evidence_bytes"] = np.fromiter(map(len, entries.packed), np.int64, len(stored)) + paths_bytes
        rows["keys_bytes"] = paths_bytes
        rows["flags"] |= np.uint8(SETTLED)
        added = EntryRows(rows, b"".join([part for both in zip(entries.packed, stored, strict=True) for part in both]))
        numbers = self._store.append(added)
        if numbers[0] != first:
            raise StateError(f"the store has given row {numbers[0]}, not {first} as it said")
        self._window.settle(numbers.astype(np.int64), paths)
        if not all(live):
            for place in [place for place, alive in enumerate(live) if not alive]:
                removal = self._unsettled.pop(int(rows["sequence"][place]))
                removal.entry = removal.entry.settle(paths[place], first + place)
            self._store.remove(numbers[~entries.live])
            numbers, added = numbers[entries.live], added.where(entries.live)
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
        self._window.announce(PageColumns.of_entries(young))
        for number, entry in enumerate(young):
            self._window.keep(number, live=entry.sequence not in self._unsettled)
        self._window.finish()


@dataclass(slots=True)
class _Removal:
    """A removed entry that is still in the cells, or will come there; it gets its path when it is settled."""

    ordinal: int
    entry: Entry
