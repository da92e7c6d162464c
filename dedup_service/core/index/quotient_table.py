"""A hash table of six or seven bytes a place that grows by small steps: segments, and the directory that finds them.

The directory has a segment for each value of the first bits of a hash; a segment has its own number of these
bits (extendible hashing). A segment that is full gets an eighth more places, or a sixteenth, and one that has
reached its largest size is split in two. So a large table is nearly as full as its `max_load` at every size, and an
insertion that has to wait for growth waits for the rebuilding of one segment, of at most `COLUMN_PAGES` ·
`PAGE_PLACES` places. A segment from which most elements were removed shrinks in the same way.

A page of the table is 2,048 places of one column; pages of segments that shrink serve others.
Elements, homes and tags are those of `quotient_segment`.

Source: Fagin et al., "Extendible hashing", ACM TODS 1979.
"""

import numpy as np
import numpy.typing as npt

from dedup_service.core.errors import StateError
from dedup_service.core.index.memory_pages import MemoryPages
from dedup_service.core.index.quotient_segment import (
    BYTE_MORE,
    COLUMN_PAGES,
    COLUMNS,
    DEPTH,
    DIRECTORY,
    DIRECTORY_DEPTH,
    ELEMENTS,
    FIELDS,
    FULL,
    HASH_BITS,
    HASH_SHIFT,
    HEAD_BYTES,
    LIMIT,
    MAX_MIDDLE,
    MAX_NARROW,
    MAX_WIDE,
    MOVED,
    NUMBER,
    PAGE_PLACES,
    PLACES,
    PREFIX,
    ROWS,
    SCANNED,
    SLOTS,
    SPARSE,
    SPARSE_LIMIT,
    TABLE_FIELDS,
    USED,
    WIDE,
    WORD_MORE,
    copy_in,
    copy_out,
    keep_live,
    piece_bytes,
    read_in_order,
    write_in_order,
)

_SPARSE = 0.6
"""Share of the limit below which a segment shrinks."""

_MIN_SLACK = 64
"""Places behind the last home, at least: for elements that lie behind their homes."""

_RECORD_BYTES = 8 * (FIELDS + COLUMNS * COLUMN_PAGES) + 112
"""Of a segment, an array of its own."""

Record = npt.NDArray[np.int64]
"""The words of a segment (`quotient_segment`)."""

Scratch = tuple[npt.NDArray[np.int64], npt.NDArray[np.uint32], npt.NDArray[np.int64]]
"""Elements and values of a segment, and a number for each of its places (`read_in_order`)."""

_MAX_ELEMENTS = COLUMN_PAGES * PAGE_PLACES


class QuotientTable:
    """Segments with their directory. slots: 1 to 64. max_load: share of the homes from which a segment grows.

    steps: it grows by one part in so many, so that each element is copied about as often while its segment doubles.
    """

    __slots__ = (
        "_copies",
        "_directory",
        "_max_load",
        "_segments",
        "_slots",
        "_steps",
        "_table",
        "_tags",
        "_values",
        "address",
    )

    address: int
    """Of the table, for kernels; whoever calls one keeps the table alive."""

    def __init__(self, slots: int = 1, *, max_load: float = 0.866, steps: int = 8) -> None:
        self._slots, self._max_load, self._steps = slots, max_load, steps
        self._tags, self._values = MemoryPages(2 * PAGE_PLACES), MemoryPages(4 * PAGE_PLACES)
        self._copies = 0
        self._segments: list[Record] = []
        self._table = np.zeros(TABLE_FIELDS, np.int64)
        self._table[SLOTS], self._table[FULL], self._table[SPARSE] = slots, -1, -1
        self.address = self._table.ctypes.data
        self._begin(0, 0)

    def __len__(self) -> int:
        """Return the number of elements."""
        return int(self._table[ELEMENTS])

    @property
    def size_bytes(self) -> int:
        """Memory reserved."""
        segments = len(self._segments) * _RECORD_BYTES
        return self._tags.size_bytes + self._values.size_bytes + self._directory.nbytes + segments

    @property
    def bytes_in_use(self) -> int:
        """Memory of the segments' pages."""
        return self._tags.used_bytes + self._values.used_bytes

    @property
    def largest_copy(self) -> int:
        """Most elements that were copied while one insertion waited."""
        return self._copies

    @property
    def work(self) -> tuple[int, int]:
        """Places between homes and elements when these were stored, and places written, since the table began."""
        return int(self._table[SCANNED]), int(self._table[MOVED])

    def grow(self) -> bool:
        """Make room in the segment that refused an element; False if none did."""
        segment = int(self._table[FULL])
        if segment < 0:
            return False
        self._table[FULL] = -1
        self._rebuild(self._segments[segment], grows=True)
        return True

    def shrink(self) -> bool:
        """Give back pages of the segment from which most elements were removed; False if there is none."""
        segment = int(self._table[SPARSE])
        if segment < 0:
            return False
        self._table[SPARSE] = -1
        self._rebuild(self._segments[segment], grows=False)
        return True

    def reserve(self, elements: int) -> None:
        """Prepare an empty table for so many elements, if it is not: few segments grow until there are more."""
        depth = 0
        while elements / (1 << depth) > _MAX_ELEMENTS * self._max_load * 0.75:
            depth += 1
        if not len(self) and depth > self._table[DIRECTORY_DEPTH]:
            self._release_all()
            self._begin(depth, elements >> depth)

    def make_room(self, coming: npt.NDArray[np.int64]) -> None:
        """Prepare segments for many more elements, if growth by steps would be slower.

        coming: int64[1 << bits], how many elements are added for each value of the first bits of a hash.
        """
        before = np.concatenate([[0], np.cumsum(coming)])
        for segment in list(self._segments):
            self._make_room(segment, before, len(coming).bit_length() - 1)

    @property
    def pieces(self) -> int:
        """How many pieces a walk over the table has, unless it grows meanwhile."""
        return len(self._segments)

    def copy_piece(self, position: int, piece: npt.NDArray[np.uint8]) -> tuple[int, int]:
        """Copy the segment of the hash `position` to piece: uint8[MAX_PIECE_BYTES] (`copy_out`).

        Returns the hash behind its range, where a walk over the table goes on, and the bytes of the piece.
        """
        end, size = copy_out(position, self.address, piece.ctypes.data)
        return int(end), int(size)

    def begin_load(self, heads: npt.NDArray[np.int64]) -> None:
        """Replace an empty table by segments that `load_piece` fills. heads: int64[n, FIELDS], of a walk's pieces.

        StateError if they are not the pieces of a whole table.
        """
        self._release_all()
        end, depth = 0, int(heads[:, DEPTH].max())
        directory = []
        for head in heads:
            segment = self._new_segment(int(head[DEPTH]), int(head[PREFIX]))
            width = HASH_BITS - int(head[DEPTH])
            pages = int(head[PLACES]) // PAGE_PLACES
            if int(head[PREFIX]) << width != end or not 0 < pages <= COLUMN_PAGES:
                raise StateError("the pieces of a table do not fit together: build it again")
            end += 1 << width
            number, segment[:FIELDS] = int(segment[NUMBER]), head
            segment[NUMBER] = number
            self._set_pages(segment, pages, pages, _upper_pages(pages, int(head[WIDE])))
            directory += [_address(segment)] * (1 << (depth - int(head[DEPTH])))
        if end != 1 << HASH_BITS:
            raise StateError("pieces of a table are missing: build it again")
        self._table[DIRECTORY_DEPTH] = depth
        self._set_directory(np.array(directory, np.int64))

    def load_piece(
        self, number: int, piece: npt.NDArray[np.uint8], live: tuple[int, npt.NDArray[np.uint8]] | None = None
    ) -> None:
        """Fill segment `number`; several threads may fill different ones.

        live: the first row of a bitmap and the bitmap, uint8[m]: elements of other rows are left out.
        """
        segment = self._segments[number]
        if len(piece) < HEAD_BYTES or len(piece) != piece_bytes(segment):
            raise StateError("a piece of a table has another size than its first words say: build it again")
        copy_in(_address(segment), piece.ctypes.data)
        if live is not None:
            keep_live(_address(segment), self.address, live[0], live[1])

    def end_load(self) -> None:
        """Count the elements once all segments are filled."""
        self._table[ELEMENTS] = sum(int(segment[USED]) for segment in self._segments)

    def _begin(self, depth: int, expected: int) -> None:
        """Make the segments of an empty table. expected: elements in each of them."""
        self._table[DIRECTORY_DEPTH] = depth
        for prefix in range(1 << depth):
            segment = self._new_segment(depth, prefix)
            self._shape(segment, expected + expected // 50)
            write_in_order(_address(segment), self.address, 0, *scratch())
            segment[SPARSE_LIMIT] = 0
        self._set_directory(np.array([_address(segment) for segment in self._segments], np.int64))

    def _set_directory(self, directory: npt.NDArray[np.int64]) -> None:
        self._directory = directory
        self._table[DIRECTORY] = directory.ctypes.data

    def _new_segment(self, depth: int, prefix: int) -> Record:
        segment = np.zeros(FIELDS + COLUMNS * COLUMN_PAGES, np.int64)
        segment[DEPTH], segment[PREFIX], segment[NUMBER] = depth, prefix, len(self._segments)
        self._segments.append(segment)
        return segment

    def _rebuild(self, segment: Record, *, grows: bool) -> None:
        used, pages = int(segment[USED]), int(segment[PLACES]) // PAGE_PLACES
        columns = scratch()
        count = read_in_order(_address(segment), self.address, *columns)
        self._copies = max(self._copies, count)
        if not self._fill(segment, count, columns, used, pages + 1 if grows else 1):
            self._split(segment, count, columns)

    def _fill(self, segment: Record, count: int, columns: Scratch, own: int, least: int) -> bool:
        """Write the `own` elements of a segment among those in the columns; False if it cannot have enough pages."""
        while max(least, self._pages_for(segment, own)) <= COLUMN_PAGES:
            least = self._shape(segment, own, least) + 1
            if write_in_order(_address(segment), self.address, count, *columns) >= 0:
                return True
        return False

    def _make_room(self, segment: Record, before: npt.NDArray[np.int64], bits: int) -> None:
        """Prepare a segment, or those into which it is split. before: int64[(1 << bits) + 1], sums of `coming`."""
        shift, used = bits - int(segment[DEPTH]), int(segment[USED])
        if shift < 0:
            return
        prefix = int(segment[PREFIX])
        more = int(before[(prefix + 1) << shift] - before[prefix << shift])
        if more * self._steps <= used:
            return
        columns = scratch()
        count = read_in_order(_address(segment), self.address, *columns)
        if not self._fill(segment, count, columns, used + more, 1):
            first = len(self._segments)
            self._split(segment, count, columns)
            for part in (segment, *self._segments[first:]):
                self._make_room(part, before, bits)

    def _split(self, segment: Record, count: int, columns: Scratch) -> None:
        """Spread the elements of a segment, in `columns`, over two."""
        depth, prefix = int(segment[DEPTH]), int(segment[PREFIX])
        if depth == self._table[DIRECTORY_DEPTH]:
            self._set_directory(np.repeat(self._directory, 2))
            self._table[DIRECTORY_DEPTH] += 1
        other = self._new_segment(depth + 1, 2 * prefix + 1)
        segment[DEPTH], segment[PREFIX] = depth + 1, 2 * prefix
        shift = int(self._table[DIRECTORY_DEPTH]) - depth - 1
        self._directory[(2 * prefix + 1) << shift : (2 * prefix + 2) << shift] = _address(other)
        prefixes = columns[0][:count] >> (HASH_SHIFT + HASH_BITS - depth - 1)
        for half in (segment, other):
            if not self._fill(half, count, columns, int(np.count_nonzero(prefixes == half[PREFIX])), 1):
                self._split(half, count, columns)

    def _pages_for(self, segment: Record, elements: int) -> int:
        """Return how many pages a column needs for so many elements and some more."""
        min_rows = -(-(1 << (HASH_BITS - int(segment[DEPTH]))) // MAX_WIDE)
        homes = max(min_rows * self._slots, int(elements * (1 + 1 / self._steps) / self._max_load))
        return -(-(homes + self._slots + max(_MIN_SLACK, 2 * self._slots, homes >> 7)) // PAGE_PLACES)

    def _shape(self, segment: Record, elements: int, least: int = 1) -> int:
        """Give a segment the pages that so many elements need, at least `least`; return their number a column."""
        pages = min(max(least, self._pages_for(segment, elements)), COLUMN_PAGES)
        places = pages * PAGE_PLACES
        slack = max(_MIN_SLACK, 2 * self._slots, places >> 7)
        rows = (places - slack) // self._slots
        rests = -(-(1 << (HASH_BITS - int(segment[DEPTH]))) // rows)
        wide = 0 if rests <= MAX_NARROW else BYTE_MORE if rests <= MAX_MIDDLE else WORD_MORE
        segment[ROWS], segment[PLACES], segment[WIDE] = rows, places, wide
        segment[LIMIT] = max(1, int(rows * self._slots * self._max_load))
        segment[SPARSE_LIMIT] = 0
        if pages > self._pages_for(segment, 0):  # so few that a page less is enough
            homes = (pages - 1) * PAGE_PLACES - slack - self._slots
            fewer = int(homes * self._max_load * self._steps / (self._steps + 1))
            segment[SPARSE_LIMIT] = max(0, min(int(segment[LIMIT] * _SPARSE), fewer - fewer // 16))
        self._set_pages(segment, pages, pages, _upper_pages(pages, wide))
        return pages

    def _release_all(self) -> None:
        while self._segments:
            self._set_pages(self._segments.pop(), 0, 0, 0)

    def _set_pages(self, segment: Record, *wanted: int) -> None:
        """Take or give back pages, so that each column has as many as wanted."""
        addresses = segment[FIELDS:].reshape(COLUMNS, COLUMN_PAGES)
        for column, memory in enumerate((self._tags, self._values, self._tags)):
            have = int(np.count_nonzero(addresses[column]))
            if have < wanted[column]:
                addresses[column, have : wanted[column]] = memory.take_many(wanted[column] - have)
            for page in range(wanted[column], have):
                memory.give_back(int(addresses[column, page]))
            addresses[column, wanted[column] :] = 0


def _upper_pages(pages: int, wide: int) -> int:
    """Return the pages of upper halves, of the size of those of tags, beside so many pages of tags."""
    return 0 if not wide else pages if wide == WORD_MORE else -(-pages // 2)


def _address(record: Record) -> int:
    return record.ctypes.data


def scratch() -> Scratch:
    """Return columns for the elements of any segment, and for a number for each of its places.

    They are one array: the system's allocator keeps a piece of memory that was freed for the next one of its size.
    """
    words = np.empty(5 * _MAX_ELEMENTS // 2, np.int64)
    return words[:_MAX_ELEMENTS], words[2 * _MAX_ELEMENTS :].view(np.uint32), words[_MAX_ELEMENTS : 2 * _MAX_ELEMENTS]
