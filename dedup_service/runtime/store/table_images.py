"""Images of the tables in memory, so that a process with many rows starts in seconds.

    tables = Tables({"url": HashColumn(HashRows(), "url_hash")}, CellRows(), BlockIndex(3))
    images = TableImages(store, tables)
    if not images.restore():                         # after StoreDamagedError: `rebuild` new tables
        images.rebuild(cell_entries)
    ...                                              # after each batch, on the deciding thread:
    images.cells_added(rows, ordinals, paths)        # what the cells were told
    images.cells_removed(rows, ordinals, paths)
    images.step(max(4, images.behind))               # copies some pieces, if an image is due
    store.begin_commit(sequence, tail, images).finish()

On disk is, of each table, what suits it:

- Hash tables and cells: an *image*, a walk over their segments. The deciding thread copies one segment at a time
  between two batches (about 0.1 ms), and a thread writes it (`image_file`), so the pieces are of different moments. An
  image counts from the first commit after it is complete; until then the manifest names the one before.
- Sieves and fingerprints: columns by row (`row_columns`), from which the block index is filled.

Restore is redo, and it is exact because tables are functions of sets. A hash table has the rows that are live: those
of the image that died are left out, and those appended since the image was begun are added if they are missing. The
cells have the paths of their rows: all changes since the image was begun are in a log (`cell_log`) and are applied
again (`cell_redo`).

Invariants: at each call, the tables have the rows of the store that are live, and the cells what this object was told.
The deciding thread alone calls this; only `PendingCommit.finish` may run in another one.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from dedup_service.core.decision.entry_rows import INDEXED, EntryRows
from dedup_service.core.decision.entry_tables import HashColumn
from dedup_service.core.errors import StateError
from dedup_service.core.index.block_index import BlockIndex
from dedup_service.core.index.cell_index import CellRows
from dedup_service.core.index.quotient_segment import END
from dedup_service.core.index.quotient_table import QuotientTable
from dedup_service.runtime.store.cell_log import CellLog, Change, log_paths
from dedup_service.runtime.store.commit import ImagesCut
from dedup_service.runtime.store.errors import StoreDamagedError
from dedup_service.runtime.store.image_file import ImageReader, ImageWriter, image_path
from dedup_service.runtime.store.manifest import ImageFileLabel, ImagesLabel, LogLabel
from dedup_service.runtime.store.page_store import PageStore
from dedup_service.runtime.store.row_columns import COLUMN, RowColumns, column_paths, split_columns

DUE_SHARE = 0.025
"""Changes since an image was begun, in proportion to the rows, from which on the next one is due.

A restore applies them again, at some 4 µs a row (docs/adr/0023-store.md).
"""

LEAST_DUE = 4096
"""Changes below which no image is due."""

_INDEXED = INDEXED | 1
"""Flags of ROW: the row has a fingerprint of its words, and is in the block index."""

_ROWS = 1 << 16
"""Rows that are read at once."""

_AHEAD_PIECES = 64
_LATER = 1 << 62

_LOADERS = 2
"""Threads that load pieces: one copies while the other one waits for the disk."""

_REDONE = 1 << 18
"""Entries of the log of cells that are applied again together: 75 MB."""

RowNumbers = npt.NDArray[np.uint32]
Integers = npt.NDArray[np.int64]
Pieces = npt.NDArray[Any]

CellEntries = Callable[[EntryRows], tuple[npt.NDArray[np.uint64], bytes]]
"""Returns the sieves, uint64[n, 2], and the paths of stored rows, end to end, from their evidence."""


@dataclass(frozen=True, slots=True, eq=False)
class Tables:
    """The tables of a decider, all empty for `restore` and `rebuild`. blocks: of the words; None without one."""

    hashes: Mapping[str, HashColumn]
    cells: CellRows
    blocks: BlockIndex | None = None

    def walked(self) -> dict[str, QuotientTable]:
        """Return the tables of which there are images, by name, in the order of the walk."""
        cells, turned = self.cells.tables
        return {**{name: column.table.table for name, column in self.hashes.items()}, "cells": cells, "turned": turned}


@dataclass(slots=True)
class _Walk:
    """An image that is being copied. table, position: where it goes on. copied: pieces so far."""

    writer: ImageWriter
    first_row: int
    number: int
    table: int = 0
    position: int = 0
    copied: int = 0


class TableImages:
    """What restores `tables` from the folder of `store`. due_share, least_due: see DUE_SHARE and LEAST_DUE."""

    def __init__(
        self, store: PageStore, tables: Tables, *, due_share: float = DUE_SHARE, least_due: int = LEAST_DUE
    ) -> None:
        self._store, self._tables = store, tables
        self.due_share, self.least_due = due_share, least_due
        self._names = list(tables.walked())
        self._quotients = list(tables.walked().values())
        label = store.manifest.images or ImagesLabel(None, [], [], 0)
        self._image = label.image
        self._columns = RowColumns(store.folder, store.manifest.identity, store.segment_rows, label.columns)
        self._logs: list[CellLog] = []
        self._number = max([log.number for log in label.logs], default=0)
        self._walk: _Walk | None = None
        self._superseded: set[Path] = set()
        self.report: Callable[[str, int, int], None] = lambda *_: None
        """Is told how far `restore` and `rebuild` are, by several threads: (what, done, total)."""
        self.changes = 0
        """Entries that entered the cells or left them since the image was begun."""

    def cells_added(self, rows: RowNumbers, ordinals: Integers, paths: bytes) -> None:
        """Note that rows entered the cells, by their paths, end to end; StoreFullError if the disk is full."""
        self._note(rows, ordinals, paths, is_added=True)

    def cells_removed(self, rows: RowNumbers, ordinals: Integers, paths: bytes) -> None:
        """Note that rows left the cells; see `cells_added`."""
        self._note(rows, ordinals, paths, is_added=False)

    def step(self, budget_pieces: int) -> bool:
        """Copy up to `budget_pieces` pieces of at most 0.5 MB, if an image is due; return whether some are left.

        Fewer are copied while the disk is behind. StoreFullError if it does not take them.
        """
        self._append_columns()
        if self._walk is None:
            if not self._is_due():
                return False
            self._begin()
        return self._copy(budget_pieces)

    @property
    def behind(self) -> int:
        """How many pieces an image lacks, to be complete when half of the changes are there that make one due.

        A restore applies all changes since it was begun again, so it must not take long because pages come fast.
        """
        if self._walk is None or self._walk.table == len(self._names):
            return 0
        pieces, done, whole = sum(table.pieces for table in self._quotients), 2 * self.changes, self._due
        return (pieces if done >= whole else int(pieces * done / whole)) - self._walk.copied

    @property
    def has_image(self) -> bool:
        """Whether the next commit has an image."""
        return self._image is not None

    def complete(self, report: Callable[[int, int], None] | None = None) -> None:
        """Complete the image that is being copied, or one from now on if there is none at all; waits for the disk.

        report: called with (done, total), in tables.
        """
        if self._walk is None and self._image is None:
            self._begin()
        while self._walk is not None and self._walk.table < len(self._names):
            self._copy(1, wait=True)
            if report is not None:
                report(self._walk.table, len(self._names))
        if self._walk is not None:
            self._walk.writer.label(wait=True)

    def renew(self, report: Callable[[int, int], None] | None = None) -> None:
        """Complete an image from now on; see `complete`. After the next commit it is the only one.

        No file of tables but the columns then has anything of rows that left the tables before.
        """
        if self._walk is not None:
            self._walk.writer.abort()
            self._walk = None
        self._begin()
        self.complete(report)

    def cut(self, segments: Collection[int]) -> ImagesCut:
        """Note the present state, for `PageStore.begin_commit`. segments: numbers of those that the commit has."""
        self._append_columns()
        obsolete = self._adopt()
        size = self._store.segment_rows
        for label in self._columns.drop(segments):
            obsolete |= set(column_paths(self._store.folder, label))
            segment = label.segment
            self._tables.cells.keep_sieves(0, range(segment * size, (segment + 1) * size))
        obsolete |= self._superseded
        self._superseded = set()
        columns, parts = self._columns.cut()
        logs = [log.label() for log in self._logs]
        parts += [part for log in self._logs if (part := log.cut()) is not None]
        return ImagesCut(ImagesLabel(self._image, logs, columns, len(self._tables.cells)), parts, obsolete)

    def restore(self) -> bool:
        """Fill the tables as they were at the last commit; False, and they stay empty, if there is no image of them.

        Raises StoreDamagedError, naming the file, if something is altered or missing. The tables are then of no
        use: make new ones, and a new object, and call `rebuild`.
        """
        if self._image is None or self._image.tables != self._names:
            return False
        label = self._store.manifest.images
        assert label is not None
        self._logs += [CellLog(self._store.folder, self._store.manifest.identity, log) for log in label.logs]
        try:
            with ThreadPoolExecutor(2, "restore") as threads:
                columns = threads.submit(self._load_columns)
                with closing(ImageReader(self._store.folder, self._store.manifest.identity, self._image)) as reader:
                    self._load_tables(reader, 0, len(self._tables.hashes))
                    hashes = threads.submit(self._add_missing, self._image.first_row)  # while the disk reads the cells
                    self._load_tables(reader, len(self._tables.hashes), len(self._names))
                    self._redo(self._image, reader.pieces)
                hashes.result()
                columns.result()
        except StoreDamagedError:
            raise
        except StateError as error:  # files that fit their checksums, and not each other
            raise StoreDamagedError(f"the images in {self._store.folder} do not fit together: {error}") from error
        self._tables.cells.count_entries(label.entries)
        return True

    def rebuild(
        self,
        cell_entries: CellEntries,
        pending: tuple[RowNumbers, Integers, npt.NDArray[np.uint64], bytes] | None = None,
    ) -> None:
        """Fill the tables from the rows of the store alone: slower, with the same result.

        pending: rows that were removed and are still in the cells, with ordinals, sieves uint64[m, 2] and paths.
        StoreDamagedError if a row is altered.
        """
        self._forget()
        cells = self._tables.cells
        cells.reserve(len(self._store))
        if self._tables.blocks is not None:
            self._tables.blocks.reserve(len(self._store))
        for column in self._tables.hashes.values():
            column.table.reserve(len(self._store))
        gone: list[range] = []
        if pending is not None:
            cells.restore(*pending)
            self._columns.count_in_cells(pending[0], 1)
            gone = self._gone_segments(pending[0])
        done = 0
        for numbers in self._store.live_numbers():
            for start in range(0, len(numbers), _ROWS):
                some = numbers[start : start + _ROWS]
                done += len(some)
                self.report("building tables", done, len(self._store))
                entries = self._store.entries(some)
                sieves, paths = cell_entries(entries)
                cells.restore(some, entries.rows["ordinal"].astype(np.int64), sieves, paths)
                self._columns.count_in_cells(some, 1)
                for column in self._tables.hashes.values():
                    column.add_missing(some, entries.rows)
                self._insert_blocks(some, entries.rows)
        self._append_columns(gone)

    def close(self) -> None:
        """Give up an image that is not complete, and close all files; those that no commit has yet are deleted."""
        if self._walk is not None:
            self._walk.writer.abort()
            self._walk = None
        for log in self._logs:
            log.close()
        if self._superseded:  # built again, and not committed since
            self._columns.discard()
        self._columns.close()

    def _note(self, rows: RowNumbers, ordinals: Integers, paths: bytes, *, is_added: bool) -> None:
        self.changes += len(rows)
        self._columns.count_in_cells(rows, 1 if is_added else -1)
        if self._logs and len(rows):
            slots = (ordinals % self._tables.cells.slots).astype(np.uint8)
            self._logs[-1].append(rows, slots, paths, is_added=is_added)

    @property
    def _due(self) -> float:
        """The changes from which on an image is due."""
        return max(self.least_due, self.due_share * len(self._store))

    def _is_due(self) -> bool:
        return self._image is None or self.changes > self._due

    def _begin(self) -> None:
        """Begin an image, and a log of changes since."""
        self._number += 1
        folder, identity = self._store.folder, self._store.manifest.identity
        writer = ImageWriter(folder, identity, self._number)
        self._logs.append(CellLog(folder, identity, LogLabel(self._number)))
        self._walk = _Walk(writer, self._store.next_row, self._number)
        self.changes = 0

    def _copy(self, budget_pieces: int, *, wait: bool = False) -> bool:
        walk = self._walk
        assert walk is not None
        hashes = list(self._tables.hashes.values())
        for _ in range(budget_pieces):
            buffer = None if walk.table == len(self._names) else walk.writer.buffer(wait=wait)
            if buffer is None:
                break
            end, size = self._quotients[walk.table].copy_piece(walk.position, buffer)
            more = b""
            if walk.table < len(hashes):
                more = hashes[walk.table].table.crowds_between(walk.position, end)
            walk.writer.add(walk.table, end, self._logs[-1].length, buffer, size, more)
            walk.position, walk.copied = end, walk.copied + 1
            if end == END:
                walk.table, walk.position = walk.table + 1, 0
                if walk.table == len(self._names):
                    walk.writer.end()
        return walk.table < len(self._names)

    def _adopt(self) -> set[Path]:
        """Let an image that is complete take the place of the one before; return the files of that one."""
        walk = self._walk
        label = None if walk is None else walk.writer.label()
        if walk is None or label is None:
            return set()
        label.tables, label.first_row = self._names, walk.first_row
        obsolete: set[Path] = set()
        if self._image is not None:
            obsolete.add(image_path(self._store.folder, self._image.number))
        for log in [log for log in self._logs if log.number < walk.number]:
            obsolete |= set(log_paths(self._store.folder, log.number))
            self._logs.remove(log)
            log.close()
        self._image, self._walk = label, None
        return obsolete

    def _gone_segments(self, rows: RowNumbers) -> list[range]:
        """Return the ranges of rows that are in the cells, and behind all rows that the store has of their segments."""
        size = self._store.segment_rows
        there = {numbers.start // size: numbers.stop for numbers in self._store.appended_since(0)}
        last = {row // size: row for row in np.sort(rows).tolist()}
        gone = [range(there.get(segment, segment * size), row + 1) for segment, row in last.items()]
        return [numbers for numbers in gone if numbers]

    def _append_columns(self, gone: Collection[range] = ()) -> None:
        """Append the columns of rows that are new, and of some that the store does not have any more."""
        ranges = [*gone, *self._store.appended_since(self._columns.next_row)]
        for numbers in sorted(ranges, key=lambda numbers: numbers.start):
            for start in range(numbers.start, numbers.stop, _ROWS):
                some = np.arange(start, min(start + _ROWS, numbers.stop), dtype=np.uint32)
                columns = np.zeros(len(some), COLUMN)
                live = self._store.live(some)
                known = some[live]
                if len(known):
                    rows = self._store.rows(known)
                    columns["words"][live], columns["flags"][live] = rows["words"], rows["flags"]
                columns["sieve"] = self._tables.cells.sieves(some)
                self._columns.append(start, columns)

    def _load_columns(self) -> None:
        """Fill sieves and block index."""
        pieces = self._indexed_rows()
        if self._tables.blocks is None:
            for _ in pieces:
                pass
        else:
            self._tables.blocks.fill(len(self._store), pieces)

    def _indexed_rows(self) -> Iterator[tuple[Integers, npt.NDArray[np.uint64]]]:
        """Fill the sieves, and yield the rows of the block index, many at a time, with their fingerprints."""
        first_live, live = self._store.live_bits
        for first, columns in self._columns.pieces():
            self._tables.cells.keep_sieves(first)
            sieves = np.empty((len(columns), 2), np.uint64)
            rows, words = np.empty(len(columns), np.int64), np.empty(len(columns), np.uint64)
            count = split_columns(columns.view(np.uint8), first, first_live, live, _INDEXED, sieves, rows, words)
            self._tables.cells.set_sieves(np.arange(first, first + len(columns), dtype=np.uint32), sieves)
            yield rows[:count], words[:count]

    def _insert_blocks(self, numbers: RowNumbers, rows: npt.NDArray[Any]) -> None:
        """Insert rows of a block index; rows have the fields `words` and `flags` of ROW."""
        if self._tables.blocks is not None:
            indexed = (rows["flags"] & np.uint8(_INDEXED)) == _INDEXED
            self._tables.blocks.insert_many(numbers[indexed].astype(np.int64), rows["words"][indexed].astype(np.uint64))

    def _load_tables(self, reader: ImageReader, first: int, end: int) -> None:
        """Fill the tables from number `first` to `end` - 1 with an image, but for dead rows."""
        pieces, numbers = reader.pieces, np.zeros(len(reader.pieces), np.int64)
        for table in range(first, end):
            own = pieces["table"] == table
            self._quotients[table].begin_load(pieces["head"][own])
            numbers[own] = np.arange(np.count_nonzero(own))
        # next() of an iterator is one step of the interpreter, so threads may share it
        todo = iter(np.flatnonzero((pieces["table"] >= first) & (pieces["table"] < end)).tolist())
        with ThreadPoolExecutor(_LOADERS, "image") as threads:
            loads = [threads.submit(self._load_pieces, reader, numbers, todo) for _ in range(_LOADERS)]
            crowds = [crowd for load in loads for crowd in load.result()]
        for table, more in crowds:
            list(self._tables.hashes.values())[table].table.load_crowds(more, self._store.live)
        for table in range(first, end):
            self._quotients[table].end_load()

    def _load_pieces(self, reader: ImageReader, numbers: Integers, todo: Iterator[int]) -> list[tuple[int, bytes]]:
        """Load the pieces that come next until there is none; return the crowds of tables. numbers: in the table."""
        live, buffer, crowds = self._store.live_bits, reader.buffer(), []
        for piece in todo:
            if piece % _AHEAD_PIECES == 0:
                reader.announce(piece, min(piece + 2 * _AHEAD_PIECES, len(reader.pieces) - 1))
            self.report("loading tables", piece, len(reader.pieces))
            content, more = reader.piece(piece, buffer)
            table = int(reader.pieces["table"][piece])
            is_hashes = table < len(self._tables.hashes)
            self._quotients[table].load_piece(int(numbers[piece]), content, live if is_hashes else None)
            if more:
                crowds.append((table, more))
        return crowds

    def _redo(self, label: ImageFileLabel, pieces: Pieces) -> None:
        """Apply to the cells what changed since the image was begun."""
        cells, turned = (
            (of_table["end"].astype(np.int64), of_table["stamp"].astype(np.int64))
            for of_table in (pieces[pieces["table"] == self._names.index(name)] for name in ("cells", "turned"))
        )
        for changes in _batched(self._changes_since(label)):
            added = np.concatenate([np.full(len(change.rows), change.is_added) for change in changes])
            self.changes += len(added)
            self._tables.cells.redo(
                np.concatenate([change.rows for change in changes]),
                np.concatenate([change.slots for change in changes]),
                b"".join(change.paths for change in changes),
                added=added,
                at=np.concatenate([np.full(len(change.rows), change.at) for change in changes]),
                pieces=(cells, turned),
            )

    def _add_missing(self, first_row: int) -> None:
        """Add the rows from one on to the hash tables, unless they are there."""
        self._store.announce_rows(first_row)
        for numbers in self._store.appended_since(first_row):
            for start in range(numbers.start, numbers.stop, _ROWS):
                some = np.arange(start, min(start + _ROWS, numbers.stop), dtype=np.uint32)
                some = some[self._store.live(some)]
                rows = self._store.rows(some)
                for column in self._tables.hashes.values():
                    column.add_missing(some, rows)

    def _changes_since(self, label: ImageFileLabel) -> Iterator[Change]:
        """Yield what the logs have; all of a later log came after the last piece of the image."""
        for log in self._logs:
            for change in log.changes():
                yield change if log.number == label.number else change._replace(at=_LATER)

    def _forget(self) -> None:
        """Give up all images: the tables are built from rows. The files stay until the next commit names others."""
        for log in self._logs:
            log.close()
            self._superseded |= set(log_paths(self._store.folder, log.number))
        self._logs.clear()
        if self._image is not None:
            self._superseded.add(image_path(self._store.folder, self._image.number))
        self._image = None
        self._columns.close()
        old = [] if self._store.manifest.images is None else self._store.manifest.images.columns
        for label in old:
            self._superseded |= set(column_paths(self._store.folder, label))
        self._columns = RowColumns(
            self._store.folder,
            self._store.manifest.identity,
            self._store.segment_rows,
            generation=1 + max((label.generation for label in old), default=-1),
        )


def _batched(changes: Iterable[Change]) -> Iterator[list[Change]]:
    """Yield changes in order, many entries at a time."""
    batch: list[Change] = []
    entries = 0
    for change in changes:
        batch.append(change)
        entries += len(change.rows)
        if entries >= _REDONE:
            yield batch
            batch, entries = [], 0
    if batch:
        yield batch
