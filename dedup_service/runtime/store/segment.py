"""A segment: the rows of one range of row numbers, with their evidence, names and texts, each in a file.

Rows `number * segment_rows` and on belong to segment `number`. As long as no row is missing, a row's place in the
file is its number less the first. Compaction writes the live rows of a segment into new files (the next generation)
and keeps row numbers: a bitmap of members with a count before every 512th row gives the place, 1.06 bits for each
number of the range. The bitmap is mapped from its file, so it costs no memory of its own.
"""

import mmap
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import xxhash

from dedup_service.core.decision.entry_rows import EntryRows
from dedup_service.core.errors import ConfigurationError
from dedup_service.runtime.store.block_file import BLOCK_BYTES, BlockFile, UnsyncedPart
from dedup_service.runtime.store.errors import StoreDamagedError
from dedup_service.runtime.store.manifest import FileLabel, SegmentLabel
from dedup_service.runtime.store.stored_rows import (
    BYTE_FILES,
    EVIDENCE_SPAN,
    FILES,
    STORED_ROW,
    StoredNames,
    pack_names,
)
from dedup_service.runtime.store.whole_file import write_whole

LARGEST_FILE = (1 << 32) - 1
"""Bytes of a file that rows point to."""


_GROUP_ROWS = 512


class Segment:
    """An open segment. label: None for a new one. read_only: nothing is changed on the disk."""

    def __init__(
        self,
        folder: Path,
        identity: str,
        number: int,
        generation: int,
        label: SegmentLabel | None,
        *,
        read_only: bool = False,
    ) -> None:
        self.number = number
        self.generation = generation
        self.rows = 0 if label is None else label.rows
        self.files: dict[str, BlockFile] = {}
        self.members: Members | None = None
        self._folder = folder
        self._identity = identity
        labels = {} if label is None else label.files
        for name in FILES:
            given = labels.get(name, FileLabel())
            file = BlockFile(self.path(name), identity, given.length, given.tail_sum, read_only=read_only)
            self.files[name] = file
            if file.is_link and file.length:  # as long as the checksum of its last block can be found
                file.verify((file.length - 1) // BLOCK_BYTES, (file.length - 1) // BLOCK_BYTES)
        fits = self.files["rows"].length == self.rows * STORED_ROW.itemsize
        if not fits or self.files["spans"].length < self.rows * EVIDENCE_SPAN.itemsize:
            raise StoreDamagedError(f"{self.path('rows')} has another length than the rows of the manifest")
        if label is not None and label.compacted:
            self.members = Members(self.path("members"), label.members_sum)

    def path(self, name: str) -> Path:
        """Return the path of one of its files."""
        return self._folder / f"{self.number:05d}-{self.generation}.{name}"

    def paths(self) -> set[Path]:
        """Return the paths of all files that it may have."""
        data = {file.path for file in self.files.values()} | {file.sums_path for file in self.files.values()}
        return data | {self.path("members")}

    def label(self) -> SegmentLabel:
        """Return what the manifest says about it, as it is now."""
        return SegmentLabel(
            self.number,
            self.generation,
            self.rows,
            {name: FileLabel(file.length, file.tail_sum()) for name, file in self.files.items()},
            self.members is not None,
            0 if self.members is None else self.members.checksum,
        )

    @property
    def is_uneven(self) -> bool:
        """Whether `append` failed between two files: a further row would not have one place in both."""
        return self.files["spans"].length != self.rows * EVIDENCE_SPAN.itemsize

    @property
    def is_linked(self) -> bool:
        """Whether its files are those of another store."""
        return self.files["rows"].is_link

    def append(self, rows: npt.NDArray[Any], contents: dict[str, bytes]) -> None:
        """Append rows: STORED_ROW[n], and the bytes that they point to; StoreFullError, and see `is_uneven`."""
        for name, data in contents.items():
            self.files[name].append(data)
        spans = np.empty(len(rows), EVIDENCE_SPAN)
        for field in EVIDENCE_SPAN.names or ():
            spans[field] = rows[field]
        self.files["spans"].append(spans.view(np.uint8).data)
        self.files["rows"].append(np.ascontiguousarray(rows).view(np.uint8).data)
        self.rows += len(rows)

    def pieces(self, size: int = 4096) -> Iterator[npt.NDArray[Any]]:
        """Yield the rows in its file, `size` at a time."""
        for data in self.files["rows"].pieces(size * STORED_ROW.itemsize):
            yield np.frombuffer(data, STORED_ROW)

    def offset_of(self, sequence: int, segment_rows: int) -> int | None:
        """Return the offset of the row of a page, live or not; None if it is not in the files."""
        first, end = 0, self.rows
        while first < end:
            middle = (first + end) // 2
            there = self._sequence_at(middle)
            if there == sequence:
                members = self.members
                return middle if members is None else int(np.flatnonzero(members.rows(segment_rows))[middle])
            first, end = (middle + 1, end) if there < sequence else (first, middle)
        return None

    def _sequence_at(self, place: int) -> int:
        row = self.files["rows"].read(place * STORED_ROW.itemsize, STORED_ROW.itemsize)
        return int(np.frombuffer(row, STORED_ROW)["sequence"][0])

    def set_members(self, rows: npt.NDArray[np.bool_]) -> None:
        """Write which rows of the range are in the files. rows: bool[segment_rows]."""
        self.members = Members.write(self.path("members"), rows)

    def cut(self) -> list[UnsyncedPart]:
        """Return what is not durable yet."""
        return [part for file in self.files.values() if (part := file.cut()) is not None]

    def seal(self) -> None:
        """End appending."""
        for file in self.files.values():
            file.seal()

    def close(self) -> None:
        """Unmap and close all files."""
        for file in self.files.values():
            file.close()
        if self.members is not None:
            self.members.close()

    def delete(self) -> None:
        """Close and remove all files."""
        self.close()
        for path in self.paths():
            path.unlink(missing_ok=True)

    def disk_bytes(self) -> int:
        """Return the bytes of all files."""
        return sum(file.length for file in self.files.values())


class Members:
    """Which rows of a range are in the files of a segment: a mapped bitmap and counts. checksum: xxh3_64."""

    def __init__(self, path: Path, checksum: int) -> None:
        self.checksum = checksum
        try:
            with path.open("rb") as file:
                self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except (OSError, ValueError) as error:
            raise StoreDamagedError(f"{path} cannot be read: {error}") from error
        self._view = np.frombuffer(self._map, np.uint8)
        if xxhash.xxh3_64_intdigest(self._view) != checksum:  # type: ignore[arg-type]
            raise StoreDamagedError(f"{path} does not match its checksum")

    @classmethod
    def write(cls, path: Path, rows: npt.NDArray[np.bool_]) -> "Members":
        """Write the file. rows: bool[n], n a multiple of 64."""
        bits = np.packbits(rows, bitorder="little").tobytes()
        groups = np.add.reduceat(rows, np.arange(0, len(rows), _GROUP_ROWS), dtype=np.uint32)
        content = bits + (np.cumsum(groups, dtype=np.uint32) - groups.astype(np.uint32)).astype("<u4").tobytes()
        return cls(path, write_whole(path, content))

    @property
    def address(self) -> int:
        """Where the bitmap is mapped."""
        return int(self._view.ctypes.data)

    def rows(self, count: int) -> npt.NDArray[np.bool_]:
        """Return which of `count` rows are there: bool[count]."""
        return np.unpackbits(self._view[: count // 8], bitorder="little").view(np.bool_)

    def end(self, count: int) -> int:
        """Return the number behind the last row that is there, of `count`; 0 if there is none."""
        there = np.flatnonzero(self._view[: count // 8])
        return 0 if not len(there) else 8 * int(there[-1]) + int(self._view[there[-1]]).bit_length()

    def close(self) -> None:
        """Unmap the file."""
        self._view = np.zeros(0, np.uint8)
        self._map.close()


class RowBatch:
    """Rows with their bytes. names, texts: of each row, or empty."""

    def __init__(self, entries: EntryRows, names: Sequence[StoredNames], texts: Sequence[bytes]) -> None:
        evidence = np.frombuffer(entries.evidence, np.uint8)
        contents = {
            "evidence": (evidence, entries.rows["evidence_bytes"].astype(np.int64)),
            "names": _joined([pack_names(name) for name in names], len(entries)),
            "texts": _joined(texts, len(entries)),
        }
        self._rows = np.zeros(len(entries), STORED_ROW)
        for field in entries.rows.dtype.names or ():
            self._rows[field] = entries.rows[field]
        for name in ("names", "texts"):
            self._rows[f"{name}_bytes"] = contents[name][1]
        self._bytes = {name: content for name, (content, _) in contents.items()}
        self._starts = {name: np.append(0, np.cumsum(sizes)) for name, (_, sizes) in contents.items()}

    def __len__(self) -> int:
        return len(self._rows)

    def fitting(self, first: int, segment: Segment, segment_rows: int) -> int:
        """Return the row of the batch up to which those from `first` on fit into a segment."""
        stop = min(len(self), first + segment_rows - segment.rows)
        return min([stop, *(_fitting(self._starts[name], first, segment.files[name].length) for name in BYTE_FILES)])

    def part(self, first: int, stop: int, segment: Segment) -> tuple[npt.NDArray[Any], dict[str, bytes]]:
        """Return the rows from `first` to `stop` - 1 as they are in a segment, and their bytes for each file."""
        rows, contents = self._rows[first:stop].copy(), {}
        for name in BYTE_FILES:
            starts = self._starts[name]
            rows[f"{name}_at"] = segment.files[name].length + starts[first:stop] - starts[first]
            contents[name] = self._bytes[name][starts[first] : starts[stop]].tobytes()
        return rows, contents


def _joined(values: Sequence[bytes], rows: int) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
    """Return the bytes of all values, and their sizes: int64[rows]."""
    if not values:
        return np.zeros(0, np.uint8), np.zeros(rows, np.int64)
    if len(values) != rows:
        raise ConfigurationError(f"{rows} rows have {len(values)} names or texts: give all of them, or none")
    return np.frombuffer(b"".join(values), np.uint8), np.array([len(value) for value in values], np.int64)


def _fitting(starts: npt.NDArray[np.int64], first: int, length: int) -> int:
    """Return the row up to which bytes fit into a file that has `length` bytes."""
    return int(starts.searchsorted(starts[first] + LARGEST_FILE - length, side="right")) - 1
