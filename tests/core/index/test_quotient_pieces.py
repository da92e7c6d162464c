"""A table that was copied piece by piece is the table again."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest

from dedup_service.core.errors import StateError
from dedup_service.core.index.hash_rows import HashRows
from dedup_service.core.index.quotient_pieces import END, HEAD_BYTES, MAX_PIECE_BYTES
from dedup_service.core.index.quotient_segment import BYTE_MORE, FIELDS, WIDE, WORD_MORE

Pieces = list[npt.NDArray[np.uint8]]
ROWS = 150_000


def hashes(count: int, seed: int = 1) -> npt.NDArray[np.uint64]:
    """Return distinct hashes."""
    return np.random.default_rng(seed).integers(0, 1 << 64, count, np.uint64)


def walk(table: HashRows, between: Callable[[], None] = lambda: None) -> tuple[Pieces, bytes]:
    """Return the pieces of a table and its crowds, with a call between them."""
    pieces, crowds, position = [], b"", 0
    while position < END:
        piece = np.empty(MAX_PIECE_BYTES, np.uint8)
        end, size = table.table.copy_piece(position, piece)
        crowds += table.crowds_between(position, end)
        pieces.append(piece[:size])
        position = end
        between()
    return pieces, crowds


def loaded(pieces: Pieces, live: npt.NDArray[np.bool_], crowds: bytes = b"") -> HashRows:
    """Return a table with the live rows of pieces."""
    table = HashRows()
    table.table.begin_load(np.array([piece[:HEAD_BYTES].view("<i8") for piece in pieces], np.int64))
    bits = np.packbits(live, bitorder="little")
    for number, piece in enumerate(pieces):
        table.table.load_piece(number, piece, (0, bits))
    table.table.end_load()
    table.load_crowds(crowds, lambda rows: live[rows])
    return table


def assert_rows(table: HashRows, values: npt.NDArray[np.uint64], live: npt.NDArray[np.bool_]) -> None:
    """Check that each row is under its hash if it is live, and nothing else is there."""
    offsets, rows = table.rows_many(values)
    assert (np.diff(offsets) == live).all()
    assert (rows == np.flatnonzero(live)).all()
    assert len(table) == np.count_nonzero(live)


@pytest.mark.parametrize("dead", [0.0, 0.001, 0.7])
def test_a_table_is_loaded_without_its_dead_rows(dead: float) -> None:
    """A few of a segment, or most of it; then rows are added and removed as before."""
    values, table = hashes(ROWS), HashRows()
    table.add_missing(values, np.arange(ROWS, dtype=np.uint32))
    live = np.random.default_rng(2).random(ROWS) >= dead
    again = loaded(walk(table)[0], live)
    assert_rows(again, values, live)
    again.add_missing(values, np.arange(ROWS, dtype=np.uint32))
    assert_rows(again, values, np.ones(ROWS, np.bool_))
    for row in range(0, ROWS, 3):
        again.remove(int(values[row]), row)
        live[row] = False
    assert_rows(again, values, np.arange(ROWS) % 3 != 0)


def test_pieces_of_a_table_that_grows_fit_together() -> None:
    """What was copied before it was added is missing, and nothing else."""
    values, table, added = hashes(ROWS), HashRows(), 110_000
    table.add_missing(values[:added], np.arange(added, dtype=np.uint32))

    def add() -> None:
        nonlocal added
        more = min(added + 20_000, ROWS)
        table.add_missing(values[added:more], np.arange(added, more, dtype=np.uint32))
        added = more

    pieces, _ = walk(table, add)
    assert len(pieces) > 2
    again = loaded(pieces, np.ones(ROWS, np.bool_))
    assert len(again) < len(table) == ROWS
    again.add_missing(values, np.arange(ROWS, dtype=np.uint32))
    assert_rows(again, values, np.ones(ROWS, np.bool_))


def test_crowds_are_part_of_the_pieces() -> None:
    """Hashes with many rows, and a row that is added to one of them again."""
    values, table = np.repeat(hashes(40), 30), HashRows()
    rows = np.arange(len(values), dtype=np.uint32)
    table.add_missing(values, rows)
    table.add_missing(values, rows)
    assert len(table) == len(values)
    live = rows % 4 != 0
    pieces, crowds = walk(table)
    again = loaded(pieces, live, crowds)
    again.add_missing(values[live], rows[live])
    for first in range(0, len(values), 30):
        own = rows[first : first + 30]
        assert list(again.rows(int(values[first]))) == own[own % 4 != 0].tolist()
    assert len(again) == np.count_nonzero(live)


@pytest.mark.parametrize("reserved", [(ROWS, 100), (100, ROWS), (ROWS, 4 * ROWS), (4 * ROWS, ROWS)])
def test_a_table_is_prepared_more_than_once(reserved: tuple[int, int]) -> None:
    """The larger number counts, as long as the table is empty."""
    values, table = hashes(ROWS), HashRows()
    for rows in (*reserved, 10 * ROWS):
        table.reserve(rows)
        if rows == reserved[-1]:
            table.add_missing(values, np.arange(ROWS, dtype=np.uint32))
    assert_rows(table, values, np.ones(ROWS, np.bool_))


def test_pieces_that_are_no_whole_table_are_refused() -> None:
    """One that is missing, and one of another size."""
    table = HashRows()
    table.add_missing(hashes(ROWS), np.arange(ROWS, dtype=np.uint32))
    pieces, _ = walk(table)
    heads = np.array([piece[:HEAD_BYTES].view("<i8") for piece in pieces], np.int64).reshape(-1, FIELDS)
    for some in (heads[:-1], heads[1:]):
        with pytest.raises(StateError, match="build it again"):
            HashRows().table.begin_load(some)
    other = HashRows()
    other.table.begin_load(heads)
    with pytest.raises(StateError, match="another size"):
        other.table.load_piece(0, pieces[0][:-1])


@pytest.mark.parametrize(("rows", "kind"), [(8_000, WORD_MORE), (60_000, BYTE_MORE)])
def test_the_rest_of_a_hash_takes_as_many_bits_as_it_needs(rows: int, kind: int) -> None:
    """Two bytes beside a tag in a small table, one in a larger one; rows come and go in both, and through pieces."""
    values, table = hashes(rows), HashRows()
    live = np.ones(rows, np.bool_)
    for start in range(0, rows, 1000):
        table.add_many(values[start : start + 1000], np.arange(start, min(start + 1000, rows), dtype=np.uint32))
        gone = np.arange(start, min(start + 1000, rows), 7)
        table.remove_many(values[gone], gone.astype(np.uint32))
        live[gone] = False
    pieces, crowds = walk(table)
    assert {int(piece[:HEAD_BYTES].view("<i8")[WIDE]) for piece in pieces} == {kind}
    assert {len(piece) - HEAD_BYTES for piece in pieces} <= {
        places * (7 if kind == BYTE_MORE else 8) for places in range(0, 1 << 16, 2048)
    } | {0}
    assert_rows(table, values, live)
    assert_rows(loaded(pieces, live, crowds), values, live)
