"""What a restore needs of every row, in append-only files of its own: sieve, fingerprint of the words, flags.

25 bytes a row, one file for each segment of the store, so that a restore does not read the evidence. A file goes when
its segment is gone and no row of it is in the cells any more, which removed rows leave later. Columns that are built
again are files of the next generation, so those of the last commit stay as they are.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from dedup_service.core.index.quotient_segment import is_live
from dedup_service.core.kernels import kernel_inline, long_kernel
from dedup_service.runtime.store.block_file import SEQUENTIAL_BYTES, BlockFile, UnsyncedPart
from dedup_service.runtime.store.manifest import ColumnLabel

COLUMN = np.dtype([("sieve", "<u8", 2), ("words", "<u8"), ("flags", "u1")])
"""Of a row: the fields of ROW with the same names, and the sieve of its cells."""

_COLUMN_BYTES, _WORDS_AT, _FLAGS_AT = COLUMN.itemsize, 16, 24

_READ_ROWS = 1 << 18

Columns = npt.NDArray[Any]


class RowColumns:
    """The files in `folder`. identity: of the store; segment_rows: rows of a segment; generation: of new files."""

    def __init__(
        self,
        folder: Path,
        identity: str,
        segment_rows: int,
        labels: Iterable[ColumnLabel] = (),
        *,
        generation: int = 0,
    ) -> None:
        self._folder = folder
        self._identity = identity
        self._segment_rows = segment_rows
        self._generation = generation
        self._labels = {label.segment: label for label in labels}
        self._open: dict[int, BlockFile] = {}
        self._in_cells = Counter({label.segment: label.in_cells for label in self._labels.values()})
        self.next_row = max((label.segment * segment_rows + _rows(label) for label in self._labels.values()), default=0)
        """The row behind the last one that was appended."""

    def append(self, first: int, columns: Columns) -> None:
        """Append COLUMN[n] of rows from `first` on, all of one segment; StoreFullError if the disk is full."""
        segment = first // self._segment_rows
        file = self._file(segment)
        missing = (first % self._segment_rows) * COLUMN.itemsize - file.length
        file.append(bytes(missing) + columns.tobytes())
        self.next_row = first + len(columns)

    def count_in_cells(self, rows: npt.NDArray[np.uint32], sign: int) -> None:
        """Count rows that entered the cells, sign 1, or left them, sign -1."""
        segments, counts = np.unique(rows // self._segment_rows, return_counts=True)
        for segment, count in zip(segments.tolist(), counts.tolist(), strict=True):
            self._in_cells[segment] += sign * count

    def drop(self, segments: Collection[int]) -> list[ColumnLabel]:
        """Forget the segments that are not among these and have no row in the cells; return their labels."""
        gone = [
            label
            for label in self._labels.values()
            if label.segment not in segments and not self._in_cells[label.segment]
        ]
        for label in gone:
            del self._labels[label.segment], self._in_cells[label.segment]
            if label.segment in self._open:
                self._open.pop(label.segment).close()
        return gone

    def cut(self) -> tuple[list[ColumnLabel], list[UnsyncedPart]]:
        """Return labels, and what is not durable yet."""
        parts = []
        for segment, file in list(self._open.items()):
            part = file.cut()
            if part is not None:
                parts.append(part)
            if segment < self.next_row // self._segment_rows:
                file.seal()
            self._labels[segment] = msgspec.structs.replace(
                self._label(segment), length=file.length, tail_sum=file.tail_sum()
            )
            if segment < self.next_row // self._segment_rows:
                file.close()
                del self._open[segment]
        for segment, label in self._labels.items():
            label.in_cells = self._in_cells[segment]
        return [msgspec.structs.replace(self._labels[segment]) for segment in sorted(self._labels)], parts

    def pieces(self) -> Iterator[tuple[int, Columns]]:
        """Yield the first row and the columns of some rows, all committed ones; StoreDamagedError if altered."""
        for segment, label in sorted(self._labels.items()):
            file = self._opened(label)
            try:
                first = segment * self._segment_rows
                for content in file.pieces(_READ_ROWS * COLUMN.itemsize):
                    yield first, np.frombuffer(content, COLUMN)
                    first += len(content) // COLUMN.itemsize
            finally:
                file.close()

    def close(self) -> None:
        """Close all files."""
        for file in self._open.values():
            file.close()
        self._open.clear()

    def discard(self) -> None:
        """Close and delete all files, of which no commit knows."""
        for file in self._open.values():
            file.delete()
        self._open.clear()

    def _file(self, segment: int) -> BlockFile:
        if segment not in self._open:
            self._open[segment] = self._opened(self._label(segment))
        return self._open[segment]

    def _label(self, segment: int) -> ColumnLabel:
        return self._labels.get(segment, ColumnLabel(segment, generation=self._generation))

    def _opened(self, label: ColumnLabel) -> BlockFile:
        path = column_paths(self._folder, label)[0]
        return BlockFile(path, self._identity, label.length, label.tail_sum, block_bytes=SEQUENTIAL_BYTES)


def column_paths(folder: Path, label: ColumnLabel) -> tuple[Path, Path]:
    """Return the files of a segment: columns and their checksums."""
    path = folder / f"{label.segment:05d}-{label.generation}.columns"
    return path, path.with_name(path.name + ".sums")


@kernel_inline
def word_at(content: npt.NDArray[np.uint8], at: int) -> np.uint64:
    """Return the little-endian word of 64 bits at any place."""
    word = np.uint64(0)
    for byte in range(8):
        word |= np.uint64(content[at + byte]) << np.uint64(8 * byte)
    return word


@long_kernel
def split_columns(
    content: npt.NDArray[np.uint8],
    first: int,
    first_live: int,
    live: npt.NDArray[np.uint8],
    required: int,
    sieves: npt.NDArray[np.uint64],
    rows: npt.NDArray[np.int64],
    words: npt.NDArray[np.uint64],
) -> int:
    """Split COLUMN[n] into columns; return how many rows are live and have all flags that are required.

    content: the bytes of the columns of rows from `first` on. live: bitmap of live rows from `first_live` on. Receive:
    the sieves of all rows, uint64[n, 2]; the rows that are counted, int64[n], and their fingerprints, uint64[n].
    """
    count = 0
    for number in range(len(sieves)):
        at = number * _COLUMN_BYTES
        sieves[number, 0], sieves[number, 1] = word_at(content, at), word_at(content, at + 8)
        if content[at + _FLAGS_AT] & required == required and is_live(first + number, first_live, live):
            rows[count], words[count] = first + number, word_at(content, at + _WORDS_AT)
            count += 1
    return count


def _rows(label: ColumnLabel) -> int:
    return label.length // COLUMN.itemsize
