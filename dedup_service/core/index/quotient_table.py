"""A hash table of six bytes a place that grows by small steps: segments, and the directory that finds them.

The directory has a segment for each value of the first bits of a hash; a segment has its own number of these
bits (extendible hashing). A segment that is full gets a sixteenth more places, and one that has reached its
largest size is split in two. So places are 85% to 90% taken at nearly every size, and an insertion that has to wait for
growth waits for the rebuilding of one segment, of at most `COLUMN_PAGES` · `PAGE_PLACES` places. A segment from
which most elements were removed shrinks in the same way.

A page of the table is 2,048 places of one column; pages of segments that shrink serve others.
Elements, homes and tags are those of `quotient_segment`; kernels work on `arrays`, which change with growth.

Source: Fagin et al., "Extendible hashing", ACM TODS 1979.
"""

import numpy as np

from dedup_service.core.index.memory_pages import MemoryPages
from dedup_service.core.index.quotient_segment import (
    COLUMNS,
    COLUMN_PAGES,
    DEPTH,
    DIRECTORY_DEPTH,
    ELEMENTS,
    FIELDS,
    FULL,
    HASH_BITS,
    LIMIT,
    MAX_NARROW,
    MAX_WIDE,
    PAGE_PLACES,
    PLACES,
    PREFIX,
    ROWS,
    SLOTS,
    SPARSE,
    SPARSE_LIMIT,
    TABLE_COUNTERS,
    USED,
    WIDE,
    QuotientArrays,
    read_in_order,
    write_in_order,
)

__all__ = ["QuotientTable"]

_STEP = 16
"""A segment that is full grows by 1/16, so that each element is copied some 16 times while its segment doubles."""

_SPARSE = 0.6
"""Share of the limit below which a segment shrinks."""

_MIN_SLACK = 64
"""Places behind the last home, at least: for elements that lie behind their homes."""

_ADDRESSES = COLUMNS * COLUMN_PAGES

_MAX_ELEMENTS = COLUMN_PAGES * PAGE_PLACES

class QuotientTable:
    """Segments with their directory. slots: 1 to 64. max_load: share of the homes from which a segment grows."""

    __slots__ = ("_copies", "_max_load", "_segments", "_slots", "_tags", "_values", "arrays")

    arrays: QuotientArrays
    """What kernels work on; another tuple after growth."""

    def __init__(self, slots: int = 1, *, max_load: float = 0.84) -> None:
        self._slots, self._max_load = slots, max_load
        self._tags, self._values = MemoryPages(2 * PAGE_PLACES), MemoryPages(4 * PAGE_PLACES)
        counters = np.zeros(TABLE_COUNTERS, np.int64)
        counters[SLOTS], counters[FULL], counters[SPARSE] = slots, -1, -1
        self._segments = 1
        self._copies = 0
        self.arrays = (
            np.zeros(1, np.int32),
            np.zeros((1, FIELDS), np.int64),
            np.zeros(_ADDRESSES, np.int64),
            counters,
        )
        self._shape(0, 0)
        write_in_order(0, self.arrays, 0, 0, *_scratch(0))

    def __len__(self) -> int:
        """Return the number of elements."""
        return int(self.arrays[3][ELEMENTS])

    @property
    def size_bytes(self) -> int:
        """Memory reserved."""
        return self._tags.size_bytes + self._values.size_bytes + sum(array.nbytes for array in self.arrays)

    @property
    def largest_copy(self) -> int:
        """Most elements that were copied while one insertion waited."""
        return self._copies

    def grow(self) -> bool:
        """Make room in the segment that refused an element; False if none did."""
        segment = int(self.arrays[3][FULL])
        if segment < 0:
            return False
        self.arrays[3][FULL] = -1
        self._rebuild(segment, grows=True)
        return True

    def shrink(self) -> None:
        """Give back pages of the segment from which most elements were removed, if there is one."""
        segment = int(self.arrays[3][SPARSE])
        if segment >= 0:
            self.arrays[3][SPARSE] = -1
            self._rebuild(segment, grows=False)

    def reserve(self, elements: int) -> None:
        """Prepare an empty table for so many elements: it does not grow until there are more."""
        depth = 0
        while elements / (1 << depth) > _MAX_ELEMENTS * self._max_load * 0.75:
            depth += 1
        if len(self) or depth == 0:
            return
        segments = 1 << depth
        counters = self.arrays[3]
        counters[DIRECTORY_DEPTH] = depth
        self._make_segments(segments)
        self._segments = segments
        self.arrays = (np.arange(segments, dtype=np.int32), *self.arrays[1:])
        expected = elements // segments
        for segment in range(segments):
            self.arrays[1][segment, DEPTH], self.arrays[1][segment, PREFIX] = depth, segment
            self._shape(segment, expected + expected // 50)
            write_in_order(segment, self.arrays, 0, 0, *_scratch(0))
            self.arrays[1][segment, SPARSE_LIMIT] = 0

    def _rebuild(self, segment: int, *, grows: bool) -> None:
        segments = self.arrays[1]
        used, pages = int(segments[segment, USED]), int(segments[segment, PLACES]) // PAGE_PLACES
        columns = _scratch(used)
        count = read_in_order(segment, self.arrays, *columns[:4])
        self._copies = max(self._copies, count)
        least = pages + 1 if grows else 1
        while least <= COLUMN_PAGES and self._pages_for(segment, used) <= COLUMN_PAGES:
            least = self._shape(segment, used, least) + 1
            if write_in_order(segment, self.arrays, 0, count, *columns) >= 0:
                return
        self._split(segment, count, columns)

    def _split(self, segment: int, count: int, columns: tuple[np.ndarray, ...]) -> None:
        """Spread the elements of a segment, in `columns`, over two."""
        segments, counters = self.arrays[1], self.arrays[3]
        depth, prefix = int(segments[segment, DEPTH]), int(segments[segment, PREFIX])
        if depth == counters[DIRECTORY_DEPTH]:
            counters[DIRECTORY_DEPTH] += 1
            self.arrays = (np.repeat(self.arrays[0], 2), *self.arrays[1:])
        other = self._segments
        self._make_segments(other + 1)
        self._segments = other + 1
        directory, segments = self.arrays[0], self.arrays[1]
        shift = int(counters[DIRECTORY_DEPTH]) - depth - 1
        directory[(2 * prefix + 1) << shift : (2 * prefix + 2) << shift] = other
        ends = 0, int(np.count_nonzero(columns[0][:count] >> (HASH_BITS - depth - 1) == 2 * prefix)), count
        for side, half in enumerate((segment, other)):
            segments[half, DEPTH], segments[half, PREFIX] = depth + 1, 2 * prefix + side
            own = ends[side + 1] - ends[side]
            least = 1
            while least <= COLUMN_PAGES:
                least = self._shape(half, own, least) + 1
                if write_in_order(half, self.arrays, 0, count, *columns) >= 0:
                    break
            else:
                self._split(half, count, columns)

    def _pages_for(self, segment: int, elements: int) -> int:
        """Return how many pages a column needs for so many elements and some more."""
        depth = int(self.arrays[1][segment, DEPTH])
        min_rows = -(-(1 << (HASH_BITS - depth)) // MAX_WIDE)
        homes = max(min_rows * self._slots, int(elements * (1 + 1 / _STEP) / self._max_load))
        return -(-(homes + self._slots + max(_MIN_SLACK, 2 * self._slots, homes >> 7)) // PAGE_PLACES)

    def _shape(self, segment: int, elements: int, least: int = 1) -> int:
        """Give a segment the pages that so many elements need, at least `least`; return their number a column."""
        pages = min(max(least, self._pages_for(segment, elements)), COLUMN_PAGES)
        own = self.arrays[1][segment]
        places = pages * PAGE_PLACES
        slack = max(_MIN_SLACK, 2 * self._slots, places >> 7)
        rows = (places - slack) // self._slots
        parts = -(-(1 << (HASH_BITS - int(own[DEPTH]))) // rows)
        wide = parts > MAX_NARROW
        own[ROWS], own[PLACES], own[WIDE] = rows, places, wide
        own[LIMIT] = max(1, int(rows * self._slots * self._max_load))
        own[SPARSE_LIMIT] = 0
        if pages > self._pages_for(segment, 0):  # so few that a page less is enough
            fewer = int(((pages - 1) * PAGE_PLACES - slack - self._slots) * self._max_load * _STEP / (_STEP + 1))
            own[SPARSE_LIMIT] = max(0, min(int(own[LIMIT] * _SPARSE), fewer - fewer // 16))
        addresses = self.arrays[2][segment * _ADDRESSES : (segment + 1) * _ADDRESSES].reshape(COLUMNS, COLUMN_PAGES)
        for column, memory in ((0, self._tags), (1, self._values), (2, self._tags)):
            wanted = 0 if column == 2 and not wide else pages
            have = int(np.count_nonzero(addresses[column]))
            for page in range(have, wanted):
                addresses[column, page] = memory.take()
            for page in range(wanted, have):
                memory.give_back(int(addresses[column, page]))
            addresses[column, wanted:] = 0
        return pages

    def _make_segments(self, needed: int) -> None:
        directory, segments, pages, counters = self.arrays
        if needed <= len(segments):
            return
        size = max(needed, len(segments) + len(segments) // 4 + 1)
        larger = np.zeros((size, FIELDS), np.int64), np.zeros(size * _ADDRESSES, np.int64)
        larger[0][: len(segments)], larger[1][: len(pages)] = segments, pages
        self.arrays = (directory, *larger, counters)


def _scratch(elements: int) -> tuple[np.ndarray, ...]:
    """Return columns for elements: hashes, slots, values, flags; homes and order."""
    kinds = (np.int64, np.uint8, np.uint32, np.uint8, np.int64, np.int32)
    return tuple(np.empty(elements, kind) for kind in kinds)
