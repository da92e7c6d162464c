"""Batches of changes and probes of the cell index, in one loop outside the interpreter lock.

A page may have to be probed after other pages of its batch entered or left the cells, so changes and probes
alternate as the caller says. The result is that of `CellRows.insert`, `remove` and `probe` called in the same
order, made of the same steps. Cells that the loop needs
next are fetched while it works on those before.

The loop stops where Python has to help: a table must grow or shrink, or the found rows need more room. `progress`
says where it is, and the next call continues there.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dedup_service.core.evidence.keys import PARTS
from dedup_service.core.index.cell_table import (
    NO_ROW,
    PROGRESS,
    STORED,
    TAKEN,
    cell_hash,
    insert_step,
    keys_of_part,
    prefetch_first,
    remove_step,
    split_path,
)
from dedup_service.core.index.quotient_segment import (
    SLOTS,
    SPARSE,
    field,
    first_of_run,
    flag_of,
    has_run,
    located,
    may_have,
    prefetch_home,
    prefetch_tags,
    prefetch_values,
    run_holds,
    value_at,
)
from dedup_service.core.index.row_words import word_address
from dedup_service.core.kernels import (
    kernel_inline,
    kernel_inline_allocating,
    load64,
    long_kernel,
    popcount,
    prefetch_address,
    store64,
)

CHANGE, PAGE, ENTRIES, PATH_KEYS = range(PROGRESS, PROGRESS + 4)
BATCH_PROGRESS = PROGRESS + 4
"""How far a batch is: int64[8], zeros at first. First the progress of one insertion; then the changes and the pages
that are done, how many entries more there are in cells, and where keys of the next path go."""

_FEW = 48
"""Numbers that are sorted by insertion, at most."""

DONE, RESHAPE, MORE_FOUND, REFUSED = range(4)
"""Why the loop returned. RESHAPE: a table has to grow or shrink. MORE_FOUND: the found rows need more room. REFUSED:
the entry of a removal is not in the index as its path says."""


@dataclass(frozen=True, slots=True, eq=False)
class CellChanges:
    """Insertions and removals of m entries, in the order in which they are applied.

    rows: uint32[m]. ordinals: int64[m]. removes: bool[m], False for an insertion. keys: uint32[m, PARTS, levels] of
    insertions, 0 after the last key of a part; all 0 for a removal. sieves: uint64[m, 2], of insertions. paths: of a
    removal the path that its insertion returned; b"" of insertions, and of a removal whose row an earlier change
    of the same batch inserted.
    """

    rows: npt.NDArray[np.uint32]
    ordinals: npt.NDArray[np.int64]
    removes: npt.NDArray[np.bool_]
    keys: npt.NDArray[np.uint32]
    sieves: npt.NDArray[np.uint64]
    paths: Sequence[bytes]


@dataclass(frozen=True, slots=True, eq=False)
class CellAnswers:
    """What n pages found, and where m changes went.

    offsets: int64[n + 1]; page i has rows[offsets[i]:offsets[i + 1]], uint32, ascending. probed: int64[n], how many
    entries each page had before the sieve. paths: of each insertion its path, b"" of removals.
    """

    offsets: npt.NDArray[np.int64]
    rows: npt.NDArray[np.uint32]
    probed: npt.NDArray[np.int64]
    paths: list[bytes]


class PathColumns:
    """Paths of changes as columns that kernels read and write.

    levels: uint8[m, PARTS]. spans: int64[m, 2], where the keys of a path lie in `keys`, uint32[...]; (-1, -1) if
    there is no path. of: int64[m], the number of the change whose path a change has: its own, or that of the
    insertion that a removal undoes.
    """

    __slots__ = ("given", "keys", "levels", "of", "spans")

    def __init__(self, changes: CellChanges) -> None:
        count, levels = len(changes.rows), changes.keys.shape[2]
        removed = int(np.count_nonzero(changes.removes))
        self.levels = np.zeros((count, PARTS), np.uint8)
        self.spans = np.full((count, 2), -1, np.int64)
        self.given = sum(map(len, changes.paths)) // 4
        self.keys = np.empty(self.given + (count - removed) * PARTS * levels, np.uint32)
        self.of = np.arange(count)
        if not removed:
            return
        joined = np.frombuffer(b"".join(changes.paths), np.uint8)
        sizes = np.fromiter(map(len, changes.paths), np.int64, count)
        split_given(joined.copy(), sizes, self.levels, self.spans, self.keys)
        undone = np.flatnonzero(changes.removes & (sizes == 0)).tolist()
        if undone:
            self._find_insertions(changes, undone)

    def _find_insertions(self, changes: CellChanges, undone: list[int]) -> None:
        """Set `of` for removals without a path. Without such an insertion, a removal keeps a path that is none."""
        rows, missing = changes.rows.tolist(), set(undone)
        inserted: dict[int, int] = {}
        for number, (row, removed) in enumerate(zip(rows, changes.removes.tolist(), strict=True)):
            if not removed:
                inserted[row] = number
            elif number in missing:
                self.of[number] = inserted.get(row, number)

    def inserted(self, removes: npt.NDArray[np.bool_]) -> list[bytes]:
        """Return the path of each insertion, b"" for removals."""
        levels, keys = self.levels.tobytes(), self.keys.tobytes()
        return [
            b"" if removed else levels[PARTS * number : PARTS * (number + 1)] + keys[4 * start : 4 * end]
            for number, (removed, (start, end)) in enumerate(zip(removes.tolist(), self.spans.tolist(), strict=True))
        ]


@long_kernel
def split_given(
    paths: npt.NDArray[np.uint8],
    sizes: npt.NDArray[np.int64],
    levels: npt.NDArray[np.uint8],
    spans: npt.NDArray[np.int64],
    keys: npt.NDArray[np.uint32],
) -> None:
    """Split paths of these sizes, in bytes, that lie end to end. spans stay as they are for one of another size."""
    at = taken = 0
    for number in range(len(sizes)):
        count = split_path(at, at + sizes[number], taken, paths, levels[number], keys)
        at += sizes[number]
        if count >= 0 and PARTS + 4 * count == sizes[number]:
            spans[number, 0], spans[number, 1] = taken, taken + count
            taken += count


@kernel_inline
def collect(
    value: int, active: np.uint64, cells: int, found: npt.NDArray[np.int64], count: int
) -> tuple[int, np.uint64]:
    """Append the rows in the cells of a hash at the active slots, one bit each, to `found`.

    Returns the new count, and the slots whose cell turned entries away. The homes of all slots are adjacent, so
    the run of one begins where that of another ends, or at its home.
    """
    segment, first, rest = located(value, 0, cells)
    overflowed = np.uint64(0)
    place = -1
    for slot in range(field(cells, SLOTS)):
        home = first + slot
        if not has_run(home, segment):
            continue
        place = first_of_run(home, segment) if place < 0 else max(place, home)
        at, place = run_holds(place, rest, segment)
        bit = np.uint64(1) << np.uint64(slot)
        if at >= 0 and active & bit:
            holder = value_at(at, segment)
            if holder != NO_ROW:
                found[count] = holder
                count += 1
            if flag_of(at, segment):
                overflowed |= bit
    return count, overflowed


@kernel_inline
def may_lead_on(value: int, cells: int) -> bool:
    """Return whether a hash may have cells, and fetch what they hold if so. False is certain."""
    segment, first, rest = located(value, 0, cells)
    if not may_have(first, field(cells, SLOTS), rest, segment):
        return False
    prefetch_values(first, segment)
    return True


@kernel_inline
def collect_all(
    keys: npt.NDArray[np.uint32], cells: int, found: npt.NDArray[np.int64], active: npt.NDArray[np.uint64]
) -> int:
    """Write the rows that a page's keys lead to into `found`, some of them repeatedly; return how many.

    In each part all slots are looked at for the first key, and for the next one those whose cell turned
    entries away; so it goes from key to key, for all parts at once, and what one part needs is fetched while others
    are looked at. keys: uint32[PARTS, levels]; found: int64[PARTS * levels * slots]; active: uint64[PARTS], scratch.
    """
    count, going = 0, PARTS
    active[:] = ~np.uint64(0) >> np.uint64(64 - field(cells, SLOTS))
    for level in range(keys.shape[1]):
        if going == 0:
            break
        for part in range(PARTS):
            key = keys[part, level]
            if active[part] and not (key and may_lead_on(cell_hash(part, key), cells)):
                active[part] = 0
        going = 0
        for part in range(PARTS):
            if active[part]:
                value = cell_hash(part, keys[part, level])
                count, active[part] = collect(value, active[part], cells, found, count)
                if active[part] and level + 1 < keys.shape[1]:
                    prefetch_tags(cell_hash(part, keys[part, level + 1]), cells)
                    going += 1
    return count


@kernel_inline_allocating
def sort_few(found: npt.NDArray[np.int64]) -> None:
    """Sort some numbers; in a few of them, inserting one after another is several times as fast."""
    if len(found) > _FEW:
        found[:] = np.sort(found)
        return
    for end in range(1, len(found)):
        one, place = found[end], end
        while place > 0 and found[place - 1] > one:
            found[place] = found[place - 1]
            place -= 1
        found[place] = one


@kernel_inline_allocating
def count_different(found: npt.NDArray[np.int64]) -> int:
    """Return how many different numbers there are; of a few, to compare all pairs takes less than to sort them."""
    if len(found) > _FEW:
        ordered = np.sort(found)
        return int(1 + np.count_nonzero(ordered[1:] != ordered[:-1]))
    different = 0
    for end in range(len(found)):
        before = 0
        for place in range(end):
            before += found[place] == found[end]
        different += before == 0
    return different


@kernel_inline
def prefetch_probe(keys: npt.NDArray[np.uint32], cells: int) -> None:
    """Fetch what a probe looks at for the first key of each part: uint32[PARTS, levels]."""
    for part in range(PARTS):
        prefetch_tags(cell_hash(part, keys[part, 0]), cells)


@kernel_inline
def probe_pages(
    start: int,
    end: int,
    keys: npt.NDArray[np.uint32],
    cells: int,
    offsets: npt.NDArray[np.int64],
    found: npt.NDArray[np.int64],
    active: npt.NDArray[np.uint64],
) -> int:
    """Write what the keys of pages from number `start` up to `end` lead to; return how many pages are done.

    The keys of page `start` were fetched; those of page `end` will be. It stops where `found` may be too short for a
    page. Arguments as for `follow_changes`; active: as for `collect_all`.
    """
    most = keys.shape[1] * keys.shape[2] * field(cells, SLOTS)
    for page in range(start, end):
        first = offsets[page]
        if first + most > len(found):
            return page
        if page + 1 < len(keys):
            prefetch_probe(keys[page + 1], cells)
        offsets[page + 1] = first + collect_all(keys[page], cells, found[first : first + most], active)
    return end


@long_kernel
def probe_many(
    start: int,
    keys: npt.NDArray[np.uint32],
    cells: int,
    offsets: npt.NDArray[np.int64],
    found: npt.NDArray[np.int64],
) -> int:
    """Probe all pages from number `start` on, as `probe_pages` does; return how many pages are done."""
    active = np.empty(PARTS, np.uint64)
    if start < len(keys):
        prefetch_probe(keys[start], cells)
    return int(probe_pages(start, len(keys), keys, cells, offsets, found, active))


@kernel_inline
def prefetch_sieves(
    page: int, offsets: npt.NDArray[np.int64], found: npt.NDArray[np.int64], sieve_pages: npt.NDArray[np.int64]
) -> None:
    """Fetch the sieves of what was found for a page."""
    for place in range(offsets[page], offsets[page + 1]):
        prefetch_address(word_address(found[place], 2, sieve_pages))


@long_kernel
def sift(
    sieves: npt.NDArray[np.uint64],
    most_differing: int,
    sieve_pages: npt.NDArray[np.int64],
    offsets: npt.NDArray[np.int64],
    probed: npt.NDArray[np.int64],
    found: npt.NDArray[np.int64],
) -> npt.NDArray[np.uint32]:
    """Return what of `found` passes the sieve, the rows of each page ascending and once: uint32[m].

    offsets: int64[n + 1], what each page found; receive where its rows begin then. probed: int64[n] receives how many
    rows there were before. Other arguments as for `follow_changes`.
    """
    first, passed = offsets[0], 0
    if len(sieves):
        prefetch_sieves(0, offsets, found, sieve_pages)
    for page in range(len(sieves)):
        if page + 1 < len(sieves):
            prefetch_sieves(page + 1, offsets, found, sieve_pages)
        end, begin = offsets[page + 1], passed
        probed[page] = count_different(found[first:end])
        for place in range(first, end):
            row = found[place]
            address = word_address(row, 2, sieve_pages)
            bits = popcount(sieves[page, 0] ^ np.uint64(load64(address)))
            bits += popcount(sieves[page, 1] ^ np.uint64(load64(address + 8)))
            found[passed] = row
            passed += bits <= most_differing
        sort_few(found[begin:passed])
        chosen, passed = found[begin:passed], begin
        for place in range(len(chosen)):
            if place == 0 or chosen[place] != found[passed - 1]:
                found[passed] = chosen[place]
                passed += 1
        first, offsets[page + 1] = end, passed
    return found[:passed].astype(np.uint32)


@kernel_inline
def prefetch_path(levels: npt.NDArray[np.uint8], path: npt.NDArray[np.uint32], cells: int) -> None:
    """Fetch the cells of a path."""
    taken = 0
    for part in range(PARTS):
        for _ in range(keys_of_part(levels[part])[1]):
            prefetch_home(cell_hash(part, path[taken]), cells)
            taken += 1


@kernel_inline
def apply_change(
    number: int,
    rows: npt.NDArray[np.uint32],
    slots: npt.NDArray[np.uint8],
    removes: npt.NDArray[np.bool_],
    new_keys: npt.NDArray[np.uint32],
    new_sieves: npt.NDArray[np.uint64],
    levels: npt.NDArray[np.uint8],
    spans: npt.NDArray[np.int64],
    path_keys: npt.NDArray[np.uint32],
    path_of: npt.NDArray[np.int64],
    cells: int,
    turned: int,
    sieve_pages: npt.NDArray[np.int64],
    progress: npt.NDArray[np.int64],
) -> int:
    """Insert or remove one entry, and fetch the cells of the next one; return DONE, RESHAPE or REFUSED.

    Arguments as for `follow_changes`.
    """
    following = number + 1
    if following < len(rows):
        if not removes[following]:
            prefetch_first(new_keys[following], cells)
        elif spans[following, 0] >= 0:
            prefetch_path(levels[following], path_keys[spans[following, 0] :], cells)
    row = int(np.int64(rows[number]))
    if removes[number]:
        inserted = path_of[number]
        start = spans[inserted, 0]
        if start < 0:
            return REFUSED
        held = remove_step(row, slots[number], levels[inserted], path_keys[start:], cells, turned)
        if held < 0:
            return REFUSED
        progress[ENTRIES] -= held > 0
        return DONE
    address = word_address(row, 2, sieve_pages)
    for word in range(2):
        store64(address + 8 * word, int(np.int64(new_sieves[number, word])))
    start = progress[PATH_KEYS]
    path = path_keys[start:]
    if not insert_step(row, slots[number], new_keys[number], cells, turned, levels[number], path, progress):
        return RESHAPE
    spans[number, 0], spans[number, 1] = start, start + progress[TAKEN]
    progress[PATH_KEYS] += progress[TAKEN]
    progress[ENTRIES] += progress[STORED] > 0
    progress[:PROGRESS] = 0
    return DONE


@long_kernel
def follow_changes(
    rows: npt.NDArray[np.uint32],
    slots: npt.NDArray[np.uint8],
    removes: npt.NDArray[np.bool_],
    new_keys: npt.NDArray[np.uint32],
    new_sieves: npt.NDArray[np.uint64],
    levels: npt.NDArray[np.uint8],
    spans: npt.NDArray[np.int64],
    path_keys: npt.NDArray[np.uint32],
    path_of: npt.NDArray[np.int64],
    due: npt.NDArray[np.int64],
    keys: npt.NDArray[np.uint32],
    cells: int,
    turned: int,
    sieve_pages: npt.NDArray[np.int64],
    offsets: npt.NDArray[np.int64],
    found: npt.NDArray[np.int64],
    progress: npt.NDArray[np.int64],
) -> int:
    """Apply changes, and probe pages between them, from `progress` on; return why the loop stopped.

    Args:
        rows, slots, removes, new_keys, new_sieves: of changes, as in `CellChanges`; slots: uint8[m].
        levels, spans, path_keys, path_of: of changes, as in `PathColumns`; receive those of insertions.
        due: int64[n], ascending; page i is probed after the first due[i] changes. All changes are applied at last.
        keys: uint32[n, PARTS, levels], of pages.
        cells, turned: addresses of the tables. sieve_pages: of the entries' sieves, two words a row.
        offsets, found: int64[n + 1] and int64[...] receive where the rows of each page begin, and the rows, in any
            order and some of them repeatedly; `sift` has the rest to do.
    """
    active = np.empty(PARTS, np.uint64)
    if progress[PAGE] < len(keys):
        prefetch_probe(keys[progress[PAGE]], cells)
    while True:
        page = progress[PAGE]
        until = min(due[page], len(rows)) if page < len(keys) else len(rows)
        while progress[CHANGE] < until:
            outcome = apply_change(
                progress[CHANGE],
                rows,
                slots,
                removes,
                new_keys,
                new_sieves,
                levels,
                spans,
                path_keys,
                path_of,
                cells,
                turned,
                sieve_pages,
                progress,
            )
            if outcome != DONE:
                return outcome
            progress[CHANGE] += 1
            if field(cells, SPARSE) >= 0 or field(turned, SPARSE) >= 0:
                return RESHAPE
        if page == len(keys):
            return DONE
        end = page + 1
        while end < len(keys) and due[end] <= progress[CHANGE]:
            end += 1
        progress[PAGE] = probe_pages(page, end, keys, cells, offsets, found, active)
        if progress[PAGE] < end:
            return MORE_FOUND
