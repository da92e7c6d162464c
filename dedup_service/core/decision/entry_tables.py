"""The tables in which settled entries are found: rows by URL, by text, by fingerprint and by keys.

Three hash tables have the hash of the URL, that of title and body, and that of a body long enough to speak for itself;
a block index has each channel that the rule probes; the cells have the keys. All hold rows alone (`entry_store`), so
what is found is confirmed by the row itself. Cells are kept up to date for any rule, so that a rule can change.

Invariant: hash tables and block indexes are a function of the rows in them, the cells of the paths of theirs.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from dedup_service._native import CellFilling, HammingFilling, HashFilling, HashRows
from dedup_service.core.decision.entry_rows import BODY_DECIDES, TEXT_HASH, EntryRows, indexed_by
from dedup_service.core.decision.entry_store import EntryStore
from dedup_service.core.evidence.packed import sketches_of
from dedup_service.core.index.block_index import BlockIndex
from dedup_service.core.index.cell_index import SIEVE_BYTES, CellRows
from dedup_service.core.page import CHANNELS
from dedup_service.core.rules.layout import IndexLayout
from dedup_service.core.rules.rule import MatchRule

_CHUNK_ROWS = 4096
"""Rows whose sieves go together."""

RowNumbers = npt.NDArray[np.uint32]
Integers = npt.NDArray[np.int64]
Piece = tuple[RowNumbers, EntryRows]
"""Numbers of rows, and their entries."""


@dataclass(frozen=True, slots=True, eq=False)
class HashColumn:
    """A table of rows by a hash. field: of ROW; flag: of ROW, which says that a row has that hash; 0: all have."""

    table: HashRows
    field: str
    flag: int = 0

    def of(self, rows: npt.NDArray[Any]) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.uint64]]:
        """Return which of the rows, ROW[n], are in the table, and the hashes of those."""
        mask = (rows["flags"] & np.uint8(self.flag)) != 0 if self.flag else np.ones(len(rows), np.bool_)
        return mask, rows[self.field][mask].astype(np.uint64)


class EntryTables:
    """Empty tables. slots: of the cells."""

    def __init__(self, layout: IndexLayout) -> None:
        self.hashes = {
            "urls": HashColumn(HashRows(), "url_hash"),
            "texts": HashColumn(HashRows(), "text_hash", TEXT_HASH),
            "bodies": HashColumn(HashRows(), "body_hash", BODY_DECIDES),
        }
        self.cells = CellRows(slots=layout.slots)
        self.indexes: dict[str, BlockIndex] = {}

    @property
    def urls(self) -> HashRows:
        """Rows by the hash of their URL."""
        return self.hashes["urls"].table

    @property
    def texts(self) -> HashRows:
        """Rows by the hash of title and body."""
        return self.hashes["texts"].table

    @property
    def bodies(self) -> HashRows:
        """Rows by the hash of a body that is long enough to speak for itself."""
        return self.hashes["bodies"].table

    def sizes(self) -> dict[str, int]:
        """Return the bytes of memory of each table."""
        cells = self.cells.statistics()
        return {
            "cells": cells.bytes - cells.sieve_bytes,
            "sieves": cells.sieve_bytes,
            **{f"blocks_{channel}": index.statistics().bytes for channel, index in self.indexes.items()},
            **{name: column.table.size_bytes for name, column in self.hashes.items()},
        }

    def probe_for(self, rule: MatchRule, store: EntryStore | None = None) -> None:
        """Have the block indexes that a rule probes, and no others; new ones are built from a store."""
        radii = {channel: radius for channel in CHANNELS if (radius := rule.radius(channel)) is not None}
        kept = {channel: index for channel, index in self.indexes.items() if radii.get(channel) == index.radius}
        new = {channel: BlockIndex(radius) for channel, radius in radii.items() if channel not in kept}
        if new and store is not None and len(store):
            for numbers, entries in store.live_pieces():
                for channel, index in new.items():
                    _insert(index, channel, numbers, entries.rows)
        self.indexes = {channel: (kept | new)[channel] for channel in radii}

    @classmethod
    def filled(cls, layout: IndexLayout, rule: MatchRule, pieces: Iterable[Piece], rows: int, threads: int) -> Self:
        """Return tables of about so many live, settled rows in pieces, as `restore` of each fills them, but faster."""
        tables = cls(layout)
        tables.probe_for(rule)
        cells = CellFilling(layout.slots, tables.cells.levels, rows)
        hashes = {name: HashFilling(rows) for name in tables.hashes}
        near = {channel: HammingFilling() for channel in tables.indexes}
        for numbers, entries in pieces:
            sieves, starts, ends = cell_spans(entries)
            cells.add(numbers, entries.rows["ordinal"].astype(np.int64), sieves, entries.evidence, starts, ends)
            for name, column in tables.hashes.items():
                mask, values = column.of(entries.rows)
                hashes[name].add(values, numbers[mask])
            for channel, filling in near.items():
                mask = indexed_by(entries.rows["flags"], channel)
                filling.add(numbers[mask], entries.rows[channel][mask].astype(np.uint64))
        tables.cells = CellRows(slots=layout.slots, native=cells.finish(threads))
        for name, column in tables.hashes.items():
            tables.hashes[name] = replace(column, table=hashes[name].finish(threads))
        for channel, filling in near.items():
            tables.indexes[channel] = BlockIndex(tables.indexes[channel].radius, filling)
        return tables

    def add(self, numbers: RowNumbers, entries: EntryRows) -> None:
        """Add live rows to all tables but the cells, which take theirs with the pages (`CellRows.follow`)."""
        for column in self.hashes.values():
            mask, hashes = column.of(entries.rows)
            column.table.add(hashes, numbers[mask])
        for channel, index in self.indexes.items():
            _insert(index, channel, numbers, entries.rows)

    def remove(self, numbers: RowNumbers, entries: EntryRows) -> None:
        """Remove rows from all tables but the cells."""
        for column in self.hashes.values():
            mask, hashes = column.of(entries.rows)
            column.table.remove(hashes, numbers[mask])
        for channel, index in self.indexes.items():
            mask = indexed_by(entries.rows["flags"], channel)
            index.remove_many(numbers[mask].astype(np.int64), entries.rows[channel][mask].astype(np.uint64))

    def restore(self, numbers: RowNumbers, entries: EntryRows) -> None:
        """Add live, settled rows to all tables, in which they were before."""
        self.add(numbers, entries)
        self.restore_cells(numbers, entries)

    def release_sieves(self, removed: RowNumbers, store: EntryStore, waiting: Callable[[], Iterator[int]]) -> None:
        """Give back the memory of sieves that nothing needs any more: pages of them without a row in store or cells.

        removed: rows that the cells have lost. waiting: iterates over rows that the store has lost, and the cells will.
        """
        end = store.reserve(0, 0)
        for first in (np.unique(removed // np.uint32(_CHUNK_ROWS)).astype(np.int64) * _CHUNK_ROWS).tolist():
            rows = range(first, first + _CHUNK_ROWS)
            if rows.stop > end:
                continue
            live = store.first(rows.start - 1)
            if (not len(live) or live[0] >= rows.stop) and not any(row in rows for row in waiting()):
                self.cells.release_sieves(rows.start, rows.stop)

    def restore_cells(self, numbers: RowNumbers, entries: EntryRows) -> None:
        """Put settled rows back into the cells alone."""
        if len(numbers):
            sieves, starts, ends = cell_spans(entries)
            spans = zip(starts.tolist(), ends.tolist(), strict=True)
            paths = b"".join([entries.evidence[start:end] for start, end in spans])
            self.cells.restore(numbers, entries.rows["ordinal"].astype(np.int64), sieves, paths)


def cell_spans(entries: EntryRows) -> tuple[npt.NDArray[np.uint64], Integers, Integers]:
    """Return what the cells have of settled entries: the sieves, uint64[n, 2], and where paths begin and end."""
    rows, starts = entries.rows, entries.evidence_starts
    own = rows["evidence_bytes"].astype(np.int64) - rows["keys_bytes"]
    sieves = sketches_of(np.frombuffer(entries.evidence, np.uint8), starts, own, SIEVE_BYTES).view(np.uint64)
    return sieves, starts + own, starts + rows["evidence_bytes"]


def _insert(index: BlockIndex, channel: str, numbers: RowNumbers, rows: npt.NDArray[Any]) -> None:
    mask = indexed_by(rows["flags"], channel)
    index.insert_many(numbers[mask].astype(np.int64), rows[channel][mask].astype(np.uint64))
