"""The entries of a decider on disk: a `PageStore` as an `EntryStore`, with the tables that are built from it.

    entries = StoredEntries.open(folder, label, rule, layout)
    candidates = LocalCandidates(rule, young, store=entries, tables=entries.tables, removed=removed)
    ...                                              # after each batch:
    entries.step()                                   # goes on with compaction
    entries.begin_commit(sequence, tail, extra)      # `finish` of what it returns waits for the disk, in any thread

`young` and `removed` are what `extra` of the last commit had: the entries of the window, and those that the cells still
need. The tables are built from the rows at each opening.

Other threads may iterate what `held` returned, after `close`, too: that raises StateError. Damage that they find is
raised by the next `step` as well. Everything else is for the deciding thread.
"""

import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from dedup_service.core.decision.candidates import RemovedEntry
from dedup_service.core.decision.entry_rows import EntryRows, EvidenceSpans
from dedup_service.core.decision.entry_store import HeldEntries, Numbers, row_of_sequence
from dedup_service.core.decision.entry_tables import EntryTables
from dedup_service.core.errors import StateError
from dedup_service.core.rules.layout import IndexLayout
from dedup_service.core.rules.rule import MatchRule
from dedup_service.runtime.store.commit import PendingCommit
from dedup_service.runtime.store.errors import StoreDamagedError
from dedup_service.runtime.store.manifest import StoreLabel, StoreSizes
from dedup_service.runtime.store.page_store import SEGMENT_ROWS, PageStore

_PIECE_ROWS = 1 << 13
"""Rows that an export reads at a time: some 4 MB of evidence."""

_BUILT_ROWS = 1 << 16
"""Rows that are read at once to build the tables: some 30 MB of evidence."""

_COMPACTED_BYTES = 1 << 20
"""Bytes that compaction copies between two batches."""

_COMPACTED_AT_ONCE = 32 << 20
"""Bytes that compaction copies between two reports."""

Report = Callable[[str, int, int], None]
"""Progress of something long: (what, done, total); total is 0 where it is not known."""

Removed = Callable[[bytes], Sequence[RemovedEntry]]
"""Returns the removed entries that the cells still need, from `extra` of a commit."""


class StoredEntries:
    """The entries in a folder. Use `open`."""

    def __init__(self, store: PageStore, tables: EntryTables) -> None:
        self.pages = store
        self.tables = tables
        self._turn = threading.RLock()
        self._damage: StoreDamagedError | None = None
        self._is_closed = False

    @classmethod
    def open(
        cls,
        folder: Path,
        label: StoreLabel,
        rule: MatchRule,
        layout: IndexLayout,
        removed: Removed,
        *,
        segment_rows: int = SEGMENT_ROWS,
        report: Report = lambda *_: None,
    ) -> Self:
        """Open the entries in `folder`, with the tables that a rule needs, or begin with none.

        Raises as `PageStore.open`, and StoreDamagedError if rows are altered.
        """
        store = PageStore.open(folder, label, segment_rows=segment_rows)
        try:
            return cls(store, _built(store, rule, layout, removed(store.extra()), report))
        except BaseException:
            store.close()
            raise

    def __len__(self) -> int:
        return len(self.pages)

    @property
    def sequence(self) -> int:
        """The sequence of the last commit, -1 or less before any."""
        return self.pages.manifest.sequence

    def extra(self) -> bytes:
        """Read what the last commit had beside the rows; StoreDamagedError if that is altered."""
        return self.pages.extra()

    def reserve(self, rows: int, evidence_bytes: int) -> int:  # noqa: ARG002 - rows are consecutive in any number
        """Return the number of the next row; begin a new segment if the present one has no room for the evidence."""
        with self._turn:
            return self.pages.make_room(evidence_bytes)

    def append(self, entries: EntryRows) -> npt.NDArray[np.uint32]:
        """Append entries; return their rows. StoreFullError if the disk does not take them."""
        with self._turn:
            return self.pages.append(entries)

    def live(self, numbers: Numbers) -> npt.NDArray[np.bool_]:
        """Return which rows are live: bool[n]."""
        return self.pages.live(numbers)

    def remove(self, numbers: Numbers) -> None:
        """Remove live rows; KeyError, and none is removed, if one is not live."""
        with self._turn:
            self.pages.remove(numbers)

    def rows(self, numbers: Numbers) -> npt.NDArray[Any]:
        """Return ROW[n]."""
        with self._turn:
            return self.pages.rows(numbers)

    def evidence(self, numbers: Numbers) -> EvidenceSpans:
        """Return the evidence of rows, each followed by its path."""
        with self._turn:
            return self.pages.evidence(numbers)

    def first(self, after: int = -1, limit: int = 1) -> npt.NDArray[np.int64]:
        """Return the first live rows behind `after`, ascending: int64[m]."""
        return self.pages.first(after, limit)

    def find(self, sequence: int) -> int | None:
        """Return the row of the live entry at `sequence`, or None."""
        first = self.first()
        return row_of_sequence(self, sequence, int(first[0]), self.pages.next_row) if len(first) else None

    def live_pieces(self) -> Iterator[tuple[npt.NDArray[np.uint32], EntryRows]]:
        """Yield all live rows with their entries."""
        for numbers in self.pages.live_numbers():
            for start in range(0, len(numbers), _PIECE_ROWS):
                some = numbers[start : start + _PIECE_ROWS]
                yield some, self.pages.entries(some)

    def held(self) -> HeldEntries:
        """Return a view of the rows that are live now, but without those that are removed before they are read."""
        return HeldEntries((_HeldRows(self, self.pages.next_row),))

    def step(self) -> None:
        """Do a little of what has to be done from time to time; StoreFullError if the disk is full.

        StoreDamagedError if a thread that iterates what `held` returned has found damage.
        """
        if self._damage is not None:
            raise self._damage
        with self._turn:
            self.pages.compact(_COMPACTED_BYTES, wait=False)

    def compact(self, commit: Callable[[], None], report: Report) -> None:
        """Give back the space of all dead rows; waits for the disk. commit: makes the present state durable.

        After the second commit, no file has a page that left the index before. StoreFullError if the disk is full.
        """
        with self._turn:
            self.pages.end_segment()
            commit()
            total = self.pages.sparse_rows()
            report("kept pages", 0, total)
            while self.pages.compact(_COMPACTED_AT_ONCE, below=1.0):
                report("kept pages", total - self.pages.sparse_rows(), total)
            commit()

    def begin_commit(
        self,
        sequence: int,
        tail: str,
        extra: bytes | Callable[[], bytes],
        other_memory: Mapping[str, int] | None = None,
    ) -> PendingCommit:
        """Note the present state, which `finish` makes durable; see `PageStore.begin_commit`.

        other_memory: bytes of structures that only the caller knows, for the sizes in the manifest.
        """
        with self._turn:
            return self.pages.begin_commit(sequence, tail, extra, sizes=self.sizes(other_memory))

    def sizes(self, other_memory: Mapping[str, int] | None = None) -> StoreSizes:
        """Return the present sizes; takes about 1 ms."""
        cells = self.tables.cells.statistics()
        memory = {**self.tables.sizes(), "rows": self.pages.memory_bytes(), **(other_memory or {})}
        return StoreSizes(memory, len(self.pages), cells.cells, cells.overflowed)

    def erase(self, sequence: int) -> None:
        """Overwrite the evidence of a page with zeros, durably, if a segment has it.

        The page has no live entry, neither now nor in the last commit.
        """
        with self._turn:
            row = self.pages.row_of(sequence)
            if row is not None:
                self.pages.erase(row)

    def close(self) -> None:
        """Close all files. What was not committed is lost."""
        with self._turn:
            self._is_closed = True
            self.pages.close()

    def _piece(self, after: int, end: int) -> tuple[int, EntryRows] | None:
        """Return the next live rows behind `after` and below `end`: the last number, and the entries. None: no more.

        Any thread may call it.
        """
        with self._in_turn():
            numbers = self.pages.first(after, _PIECE_ROWS)
            numbers = numbers[numbers < end]
            return (int(numbers[-1]), self.pages.entries(numbers)) if len(numbers) else None

    def _has(self, sequence: int, end: int) -> bool:
        """Return whether a row below `end` is the live entry of a page; any thread may call it."""
        with self._in_turn():
            row = self.find(sequence)
            return row is not None and row < end

    def _size(self) -> tuple[int, int]:
        """Return the number of live entries and the bytes of their evidence; any thread may call it."""
        with self._in_turn():
            return len(self), self.pages.disk_bytes()["evidence"]

    @contextmanager
    def _in_turn(self) -> Iterator[None]:
        """Read in another thread, while the deciding one waits."""
        with self._turn:
            if self._is_closed:
                raise StateError("the kept pages are closed: they cannot be read any more; ask a process that runs")
            try:
                yield
            except StoreDamagedError as error:
                self._damage = error
                raise


@dataclass(frozen=True, slots=True, eq=False)
class _HeldRows:
    """The live rows below `end`."""

    entries: StoredEntries
    end: int

    def pieces(self) -> Iterator[EntryRows]:
        """Yield copies of the live entries, in order of sequence."""
        after = -1
        while (piece := self.entries._piece(after, self.end)) is not None:  # noqa: SLF001 - of the same module
            after, entries = piece
            yield entries

    def has(self, sequence: int) -> bool:
        """Return whether the page at `sequence` has a live entry among them."""
        return self.entries._has(sequence, self.end)  # noqa: SLF001

    def size(self) -> tuple[int, int]:
        """Return the number of live entries and the bytes of their evidence."""
        return self.entries._size()  # noqa: SLF001


def _built(
    store: PageStore, rule: MatchRule, layout: IndexLayout, removed: Sequence[RemovedEntry], report: Report
) -> EntryTables:
    """Return the tables of the live rows of a store; the cells have removed entries, too, as long as they need them."""

    def numbers() -> Iterator[npt.NDArray[np.uint32]]:
        for of_segment in store.live_numbers():
            for start in range(0, len(of_segment), _BUILT_ROWS):
                yield of_segment[start : start + _BUILT_ROWS]

    def pieces() -> Iterator[tuple[npt.NDArray[np.uint32], EntryRows]]:
        done, coming = 0, numbers()
        with ThreadPoolExecutor(1, "rows") as reader:  # reads the next rows while these enter the tables
            some = next(coming, None)
            entries = None if some is None else reader.submit(store.entries, some)
            while some is not None and entries is not None:
                piece = some, entries.result()
                some = next(coming, None)
                entries = None if some is None else reader.submit(store.entries, some)
                done += len(piece[0])
                report("building tables", done, len(store))
                yield piece

    tables = EntryTables.filled(layout, rule, pieces(), len(store), len(os.sched_getaffinity(0)))
    gone = [one.entry for one in removed if one.entry.settled]
    tables.restore_cells(np.array([entry.row for entry in gone], np.uint32), EntryRows.from_entries(gone))
    return tables
