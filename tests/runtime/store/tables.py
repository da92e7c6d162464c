"""Tables of the rows of a store, changed as a decider changes them, and what is in them as plain values.

A removed row leaves the cells with the next removal, as settled entries leave them later than the other tables.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from dedup_service.core.decision.entry_rows import INDEXED, EntryRows
from dedup_service.core.decision.entry_tables import HashColumn
from dedup_service.core.evidence.keys import PARTS
from dedup_service.core.index.block_index import BlockIndex
from dedup_service.core.index.cell_index import CellRows
from dedup_service.core.index.hash_rows import HashRows
from dedup_service.core.index.quotient_segment import USED, read_in_order
from dedup_service.core.index.quotient_table import QuotientTable, scratch
from dedup_service.runtime.store.page_store import PageStore
from dedup_service.runtime.store.table_images import TableImages, Tables
from tests.runtime.store.pages import Pages, pages

SLOTS, LEVELS = 4, 3
TEXT_FLAG = 16
WORDS_FLAG = 1


def empty_tables() -> Tables:
    """Return tables like those of a decider: two of hashes, cells and blocks."""
    hashes = {"url": HashColumn(HashRows(), "url_hash"), "text": HashColumn(HashRows(), "text_hash", TEXT_FLAG)}
    return Tables(hashes, CellRows(slots=SLOTS, levels=LEVELS), BlockIndex(3))


@dataclass(slots=True)
class InCells:
    """A row in the cells."""

    ordinal: int
    sieve: bytes
    path: bytes


@dataclass(slots=True)
class Model:
    """Tables that were never restored, and what is needed to change them. pending: removed, still in the cells."""

    tables: Tables = field(default_factory=empty_tables)
    rows: dict[int, tuple[Any, ...]] = field(default_factory=dict)
    in_cells: dict[int, InCells] = field(default_factory=dict)
    pending: list[int] = field(default_factory=list)

    def append(self, numbers: npt.NDArray[np.uint32], rows: npt.NDArray[Any], images: TableImages | None) -> None:
        """Add rows, ROW[n], to the tables, and tell `images`."""
        for number, row in zip(numbers.tolist(), rows, strict=True):
            ordinal = int(row["ordinal"])
            sieve = (ordinal * 0x9E3779B97F4A7C15 % (1 << 128)).to_bytes(16, "little")
            path = self.tables.cells.insert(number, ordinal, keys_of(ordinal), sieve)
            self.in_cells[number] = InCells(ordinal, sieve, path)
            self.rows[number] = row.item()
            self._change(number, added=True)
        if images is not None:
            images.cells_added(*self.changes(numbers.tolist()))

    def remove(self, numbers: npt.NDArray[np.uint32], images: TableImages | None) -> None:
        """Remove rows from the tables; from the cells, those that were removed before."""
        left, self.pending = self.pending, numbers.tolist()
        changes = self.changes(left)
        for number in left:
            entry = self.in_cells.pop(number)
            assert self.tables.cells.remove(number, entry.ordinal, entry.path)
        for number in numbers.tolist():
            self._change(number, added=False)
            del self.rows[number]
        if images is not None:
            images.cells_removed(*changes)

    def changes(self, numbers: list[int]) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.int64], bytes]:
        """Return what images are told about rows in the cells."""
        entries = [self.in_cells[number] for number in numbers]
        ordinals = np.array([entry.ordinal for entry in entries], np.int64)
        return np.array(numbers, np.uint32), ordinals, b"".join(entry.path for entry in entries)

    def without_tables(self) -> "Model":
        """Return a copy with empty tables: what a restart begins with."""
        return Model(rows=dict(self.rows), in_cells=dict(self.in_cells), pending=list(self.pending))

    def cell_entries(self, entries: EntryRows) -> tuple[npt.NDArray[np.uint64], bytes]:
        """Return sieves and paths of rows."""
        by_ordinal = {entry.ordinal: entry for entry in self.in_cells.values()}
        found = [by_ordinal[ordinal] for ordinal in entries.rows["ordinal"].tolist()]
        sieves = np.frombuffer(b"".join(entry.sieve for entry in found), np.uint64).reshape(-1, 2)
        return sieves, b"".join(entry.path for entry in found)

    def rebuilt(self, store: PageStore) -> tuple[Tables, TableImages]:
        """Return tables that are built from the rows of `store`."""
        tables = empty_tables()
        images = TableImages(store, tables, due_share=0.1, least_due=10)
        rows, ordinals, paths = self.changes(self.pending)
        sieves = np.frombuffer(b"".join(self.in_cells[number].sieve for number in self.pending), np.uint64)
        images.rebuild(self.cell_entries, (rows, ordinals, sieves.reshape(-1, 2), paths))
        return tables, images

    def _change(self, number: int, *, added: bool) -> None:
        _, words, _, _, text_hash, url_hash, _, _, _, _, flags = self.rows[number]
        for column, value in (("url", url_hash), ("text", text_hash)):
            table = self.tables.hashes[column]
            if not table.flag or flags & table.flag:
                (table.table.add if added else table.table.remove)(value, number)
        if flags & WORDS_FLAG and flags & INDEXED:
            assert self.tables.blocks is not None
            (self.tables.blocks.insert if added else self.tables.blocks.remove)(number, words)


def keys_of(ordinal: int) -> bytes:
    """Return keys that many entries share: LEVELS keys a part, of few."""
    generator = np.random.default_rng(ordinal)
    kinds = np.array([3, 40, 1 << 20])
    keys = 1 + generator.integers(0, kinds, (PARTS, LEVELS)) + np.array([0, 100, 1000])
    return np.ascontiguousarray(keys, "<u4").tobytes()


def restored(store: PageStore, model: Model) -> tuple[Tables, TableImages, bool]:
    """Return the tables of `store`, from its images if it has some, and whether it has."""
    tables = empty_tables()
    images = TableImages(store, tables, due_share=0.1, least_due=10)
    if images.restore():
        return tables, images, True
    images.close()
    tables, images = model.rebuilt(store)
    return tables, images, False


def elements(table: QuotientTable) -> list[tuple[int, ...]]:
    """Return all elements of a quotient table: identity with flag, and value, ascending."""
    found: list[tuple[int, ...]] = []
    for segment in table._segments:
        used = int(segment[USED])
        columns = scratch()
        assert read_in_order(segment.ctypes.data, table.address, *columns) == used
        packed, values = (column[:used].tolist() for column in columns[:2])
        found += zip(packed, values, strict=True)
    assert len(found) == len(table)
    return sorted(found)


def assert_same(found: Tables, model: Model) -> None:
    """Check that tables have what those of the model have, and answer the same."""
    expected = model.tables
    for one, other in zip(found.cells.tables, expected.cells.tables, strict=True):
        assert elements(one) == elements(other)
    assert len(found.cells) == len(expected.cells)
    rows = np.array(sorted(model.in_cells), np.uint32)
    assert (found.cells.sieves(rows) == expected.cells.sieves(rows)).all()
    values = list(model.rows.values())
    for name, at in (("text", 4), ("url", 5)):
        assert len(found.hashes[name].table) == len(expected.hashes[name].table)
        for value in {row[at] for row in values}:
            assert list(found.hashes[name].table.rows(value)) == list(expected.hashes[name].table.rows(value))
    assert found.blocks is not None
    assert expected.blocks is not None
    assert len(found.blocks) == len(expected.blocks)
    for row in values[:50]:
        assert found.blocks.probe(row[1]).sequences.tolist() == expected.blocks.probe(row[1]).sequences.tolist()


def table_pages(seed: tuple[int, ...] | int, count: int, largest: int = 60) -> Pages:
    """Return pages of which some share the hash of their URL, some that of their text; see `pages`."""
    batch = pages(seed, count, largest=largest)
    batch.entries.rows["url_hash"] %= 12
    batch.entries.rows["text_hash"] %= 3000
    return batch
