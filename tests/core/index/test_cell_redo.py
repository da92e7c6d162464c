"""Cells whose tables were copied at different moments are made whole by the changes since the first of them."""

import itertools
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
from hypothesis import given, settings
from hypothesis import strategies as st

from dedup_service.core.evidence.keys import PARTS
from dedup_service.core.index.cell_index import CellRows
from dedup_service.core.index.quotient_pieces import END, HEAD_BYTES, MAX_PIECE_BYTES
from dedup_service.core.index.quotient_table import QuotientTable

SLOTS, LEVELS = 2, 3
Copy = list[npt.NDArray[np.uint8]]


@dataclass(slots=True)
class World:
    """A cell index, its entries by row, and all changes so far: added, row, slot, path."""

    cells: CellRows = field(default_factory=lambda: CellRows(slots=SLOTS, levels=LEVELS))
    paths: dict[int, bytes] = field(default_factory=dict)
    changes: list[tuple[bool, int, bytes]] = field(default_factory=list)
    next_row: int = 0

    def insert(self, keys: npt.NDArray[np.uint32]) -> None:
        """Insert an entry: uint32[PARTS, LEVELS]."""
        row, self.next_row = self.next_row, self.next_row + 1
        self.paths[row] = self.cells.insert(row, row, keys.astype("<u4").tobytes(), bytes(16))
        self.changes.append((True, row, self.paths[row]))

    def remove(self, row: int) -> None:
        """Remove an entry."""
        path = self.paths.pop(row)
        assert self.cells.remove(row, row, path)
        self.changes.append((False, row, path))


def copied(table: QuotientTable) -> Copy:
    """Return the pieces of a table."""
    pieces, position = [], 0
    while position < END:
        piece = np.empty(MAX_PIECE_BYTES, np.uint8)
        position, size = table.copy_piece(position, piece)
        pieces.append(piece[:size])
    return pieces


def load(table: QuotientTable, pieces: Copy) -> None:
    """Fill an empty table."""
    table.begin_load(np.array([piece[:HEAD_BYTES].view("<i8") for piece in pieces], np.int64))
    for number, piece in enumerate(pieces):
        table.load_piece(number, piece)
    table.end_load()


def answers(cells: CellRows, keys: npt.NDArray[np.uint32]) -> list[list[int]]:
    """Return what each of some pages finds."""
    offsets, rows, _ = cells.probe_many(keys, np.zeros((len(keys), 2), np.uint64))
    return [rows[first:stop].tolist() for first, stop in itertools.pairwise(offsets)]


@settings(max_examples=60)
@given(
    seed=st.integers(0, 1 << 30),
    moments=st.tuples(*[st.integers(0, 120)] * 3).map(sorted),
    cells_first=st.booleans(),
    batch=st.integers(1, 200),
)
def test_redo_gives_the_last_state(seed: int, moments: list[int], cells_first: bool, batch: int) -> None:
    """Whichever table was copied first, and wherever the log begins before that."""
    generator = np.random.default_rng(seed)
    all_keys = generator.integers(1, [4, 12, 1000], (300, PARTS, LEVELS)).astype(np.uint32)
    world, copies, stamps = World(), {}, {}
    begin, first, second = moments
    for number in range(160):
        for moment, name in (
            (first, "cells" if cells_first else "turned"),
            (second, "turned" if cells_first else "cells"),
        ):
            if number == moment:
                copies[name] = copied(world.cells.tables[name == "turned"])
                stamps[name] = len(world.changes)
        if number == begin:
            start = len(world.changes)
        if world.paths and generator.random() < 0.4:
            world.remove(int(generator.choice(sorted(world.paths))))
        else:
            world.insert(all_keys[number])
    again = CellRows(slots=SLOTS, levels=LEVELS)
    for table, name in zip(again.tables, ("cells", "turned"), strict=True):
        load(table, copies[name])
    ends = np.array([END], np.int64)
    for at in range(start, len(world.changes), batch):
        changes = world.changes[at : at + batch]
        again.redo(
            np.array([row for _, row, _ in changes], np.uint32),
            np.array([row % SLOTS for _, row, _ in changes], np.uint8),
            b"".join(path for _, _, path in changes),
            added=np.array([added for added, _, _ in changes]),
            at=np.arange(at, at + len(changes)),
            pieces=tuple((ends, np.array([stamps[name]], np.int64)) for name in ("cells", "turned")),
        )
    again.set_sieves(np.arange(world.next_row, dtype=np.uint32), np.zeros((world.next_row, 2), np.uint64))
    assert [len(table) for table in again.tables] == [len(table) for table in world.cells.tables]
    assert answers(again, all_keys) == answers(world.cells, all_keys)
    for row, path in world.paths.items():  # the counts are right, so that all can leave
        assert again.remove(row, row, path)
    assert [len(table) for table in again.tables] == [0, 0]


def test_redo_walks_little_where_most_entries_came_since() -> None:
    """Changes sorted by hash do not crowd into the first places of segments that are small yet."""
    generator = np.random.default_rng(5)
    world = World()
    for keys in generator.integers(1, 1 << 32, (300, PARTS, LEVELS), dtype=np.uint32):
        world.insert(keys)
    copies = [copied(table) for table in world.cells.tables]
    at = len(world.changes)
    for keys in generator.integers(1, 1 << 32, (12_000, PARTS, LEVELS), dtype=np.uint32):
        world.insert(keys)
    again = CellRows(slots=SLOTS, levels=LEVELS)
    for table, copy in zip(again.tables, copies, strict=True):
        load(table, copy)
    changes, stamps = world.changes[at:], (np.array([END], np.int64), np.array([at], np.int64))
    again.redo(
        np.array([row for _, row, _ in changes], np.uint32),
        np.array([row % SLOTS for _, row, _ in changes], np.uint8),
        b"".join(path for _, _, path in changes),
        added=np.ones(len(changes), np.bool_),
        at=np.arange(at, at + len(changes)),
        pieces=(stamps, stamps),
    )
    assert len(again.tables[0]) == len(world.cells.tables[0])
    assert sum(again.tables[0].work) < 20 * PARTS * len(changes)
