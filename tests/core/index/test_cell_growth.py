"""Cells at sizes where tables grow, split and shrink: the work of one insertion, of a restore, and the memory."""

import random

import numpy as np
import numpy.typing as npt
import pytest

from dedup_service.core.errors import StateError
from dedup_service.core.evidence.keys import LEVELS, PARTS
from dedup_service.core.index.cell_index import SIEVE_BYTES, CellRows
from dedup_service.core.index.quotient_segment import COLUMN_PAGES, PAGE_PLACES
from dedup_service.core.splitmix import splitmix64
from tests.oracle.plain_cells import PlainCells, keys_of

SIEVE = bytes(SIEVE_BYTES)


def own_keys(pages: int, seed: int) -> npt.NDArray[np.uint32]:
    """Random keys of pages, the first ones different from one another: uint32[pages, PARTS, LEVELS]."""
    keys = np.random.default_rng(seed).integers(1, 1 << 32, (pages, PARTS, LEVELS), np.uint32)
    numbers = np.arange(1, pages * PARTS + 1, dtype=np.uint64).reshape(pages, PARTS)
    keys[:, :, 0] = (numbers * np.uint64(2_654_435_761) % np.uint64(1 << 32)).astype(np.uint32)
    return keys


def first_cells(keys: npt.NDArray[np.uint32]) -> bytes:
    """Paths of pages that are each in their first cells."""
    paths = np.zeros((len(keys), PARTS + 4 * PARTS), np.uint8)
    paths[:, PARTS:] = keys[:, :, 0].astype("<u4").view(np.uint8).reshape(len(keys), -1)
    return paths.tobytes()


def put_back(index: CellRows, keys: npt.NDArray[np.uint32], first: int = 0) -> None:
    """Restore pages under the rows from `first` on."""
    rows = np.arange(first, first + len(keys), dtype=np.uint32)
    index.restore(rows, rows.astype(np.int64), np.zeros((len(keys), 2), np.uint64), first_cells(keys))


@pytest.mark.parametrize(("template", "slots"), [(0.3, 8), (0.6, 16), (0.8, 8)])
def test_under_a_template_candidates_are_those_of_sets(template: float, slots: int) -> None:
    """Pages of a few sites, a share of whose shingles is the site's: found while they come and while they go."""
    chosen = random.Random(f"{template} {slots}")
    index, plain = CellRows(slots=slots), PlainCells(slots)
    live: dict[int, tuple[bytes, bytes]] = {}
    for number in range(900):
        site = 1_000 * chosen.randrange(3)
        shingles = [site + at for at in range(int(200 * template))]
        shingles += [chosen.randrange(1 << 40) for _ in range(200 - len(shingles))]
        keys = np.zeros((PARTS, LEVELS), "<u4")
        for part in range(PARTS):
            drawn = sorted((splitmix64(shingle) >> 32) | 1 for shingle in shingles[part::8])
            keys[part, : len(drawn[:LEVELS])] = drawn[:LEVELS]
        packed = keys.tobytes()
        expected = sorted(plain.probe(keys_of(packed), SIEVE))
        assert index.probe(packed, SIEVE)[0].tolist() == expected
        live[number] = packed, index.insert(number, number, packed, SIEVE)
        plain.insert(number, number, keys_of(packed), SIEVE)
        if number % 3 == 2:
            gone = chosen.choice(sorted(live))
            assert index.remove(gone, gone, live.pop(gone)[1])
            plain.remove(gone)
    sizes = index.statistics()
    assert (sizes.entries, sizes.cells, sizes.overflowed) == plain.counts()


def test_a_batch_of_probes_finds_what_single_probes_find() -> None:
    """Also where a page finds more rows than there was room for."""
    index, keys = CellRows(slots=8), own_keys(2_000, 1)
    keys[:, :, :4] = np.arange(1, 5)
    for row, own in enumerate(keys):
        index.insert(row, row, own.tobytes(), SIEVE)
    sieves = np.zeros((len(keys), 2), np.uint64)
    offsets, rows, probed = index.probe_many(keys, sieves)
    for at in range(0, len(keys), 37):
        single, before = index.probe(keys[at].tobytes(), SIEVE)
        assert rows[offsets[at] : offsets[at + 1]].tolist() == single.tolist()
        assert probed[at] == before
        assert at in single
    assert offsets[-1] > 1 << 16


def test_one_insertion_copies_one_segment_at_most() -> None:
    """At 80,000 pages there are many segments; no insertion waited for more than the largest one."""
    index, keys = CellRows(), own_keys(80_000, 2)
    for first in range(0, len(keys), 5_000):
        put_back(index, keys[first : first + 5_000], first)
    assert index.statistics().cells == keys[:, :, 0].size
    assert 0 < index.largest_copy <= COLUMN_PAGES * PAGE_PLACES
    offsets, rows, _ = index.probe_many(keys, np.zeros((len(keys), 2), np.uint64))
    assert np.isin(np.arange(len(keys)), rows).all()
    assert np.diff(offsets).min() >= 1


@pytest.mark.parametrize("stride", [1, 1 << 12, 1 << 20])
def test_restoring_takes_work_in_proportion_to_the_entries(stride: int) -> None:
    """Whatever the keys are, also multiples of a power of two: places written a cell stay below a bound."""
    pages = 30_000
    numbers = np.arange(1, pages * PARTS + 1, dtype=np.uint64).reshape(pages, PARTS)
    keys = np.zeros((pages, PARTS, LEVELS), np.uint32)
    keys[:, :, 0] = (numbers * np.uint64(stride) % np.uint64((1 << 32) - 5) + np.uint64(1)).astype(np.uint32)
    whole, pieces = CellRows(), CellRows()
    put_back(whole, keys)
    for first in range(0, pages, 3_000):
        put_back(pieces, keys[first : first + 3_000], first)
    cells = pages * PARTS
    for index, bound in ((whole, 40), (pieces, 80)):
        assert index.statistics().cells == cells
        scanned, written = index.work
        assert scanned < bound * cells
        assert written < bound * cells


def test_entries_of_one_template_are_restored_with_little_work() -> None:
    """A thousand pages with the same 64 keys: nearly all turned away by all cells, and counted there."""
    index, keys = CellRows(slots=8), own_keys(1, 3)[0].tobytes()
    paths = [index.insert(number, number, keys, SIEVE) for number in range(1_000)]
    again, numbers = CellRows(slots=8), np.arange(1_000)
    again.restore(numbers.astype(np.uint32), numbers, np.zeros((1_000, 2), np.uint64), b"".join(paths))
    assert again.statistics().cells == index.statistics().cells == PARTS * LEVELS * 8
    assert again.statistics().overflowed == PARTS * LEVELS * 8
    assert len(again) == len(index) == LEVELS * 8
    scanned, written = again.work
    assert max(scanned, written) < 40 * PARTS * LEVELS * 8


def test_memory_follows_the_entries() -> None:
    """As many pages go as come, many times over: the tables stay as large. If most go, pages are given back."""
    index, live = CellRows(), 12_000
    keys = own_keys(5 * live, 4)
    paths = first_cells(keys)
    size = len(paths) // len(keys)
    sizes = []
    for first in range(0, len(keys), 1_000):
        put_back(index, keys[first : first + 1_000], first)
        for row in range(first - live, first - live + 1_000):
            if row >= 0:
                assert index.remove(row, row, paths[row * size : (row + 1) * size])
        if first >= 2 * live:
            sizes.append(index.cell_bytes_in_use)
    assert max(sizes) <= 1.1 * min(sizes)
    for row in range(len(keys) - live, len(keys) - live // 10):
        assert index.remove(row, row, paths[row * size : (row + 1) * size])
    assert index.cell_bytes_in_use < min(sizes) / 3


@pytest.mark.parametrize("cut", [slice(0, -1), slice(0, 5), slice(0, 0), slice(4, None)])
def test_paths_that_are_cut_off_are_refused(cut: slice) -> None:
    """Before anything is stored."""
    index, keys = CellRows(), own_keys(3, 5)
    rows = np.arange(3, dtype=np.uint32)
    with pytest.raises(StateError, match="the paths of 3 entries"):
        index.restore(rows, rows.astype(np.int64), np.zeros((3, 2), np.uint64), first_cells(keys)[cut])
    assert index.statistics().cells == 0


def test_rows_that_are_left_out_take_no_memory() -> None:
    """A million numbers between two rows are no million sieves; the two are as they were."""
    cells, rows = CellRows(), np.array([5, (1 << 20) + 3], np.uint32)
    sieves = np.array([[1, 2], [3, 4]], np.uint64)
    cells.set_sieves(rows[:1], sieves[:1])
    cells.keep_sieves(1 << 20)
    cells.set_sieves(rows[1:], sieves[1:])
    assert (cells.sieves(rows) == sieves).all()
    assert cells.statistics().sieve_bytes < 1 << 20
