"""What entered the cells and left them, in order: the file from which `CellRows.redo` catches up after an image.

A file is begun with each image, and goes when a later image is complete. A record has the entries of one call:
kind and count (uint32), bytes of the paths (uint32), then rows (uint32[n]), slots (uint8[n]) and the paths.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dedup_service.runtime.store.block_file import SEQUENTIAL_BYTES, BlockFile, UnsyncedPart
from dedup_service.runtime.store.errors import StoreDamagedError
from dedup_service.runtime.store.manifest import LogLabel

_REMOVED, _ADDED = 1, 2
_HEAD_BYTES = 12
_READ_BYTES = 1 << 20


class Change(NamedTuple):
    """Entries that entered the cells or left them together. at: place in the log; see `CellRows.redo`."""

    at: int
    is_added: bool
    rows: npt.NDArray[np.uint32]
    slots: npt.NDArray[np.uint8]
    paths: bytes


class CellLog:
    """The log `label.number` in `folder`. identity: of the store."""

    def __init__(self, folder: Path, identity: str, label: LogLabel) -> None:
        self.number = label.number
        path = log_paths(folder, label.number)[0]
        self._file = BlockFile(path, identity, label.length, label.tail_sum, block_bytes=SEQUENTIAL_BYTES)

    @property
    def length(self) -> int:
        """Bytes so far: the place of the next record."""
        return self._file.length

    def append(
        self, rows: npt.NDArray[np.uint32], slots: npt.NDArray[np.uint8], paths: bytes, *, is_added: bool
    ) -> None:
        """Append one record; StoreFullError if the disk does not take it."""
        head = np.array([_ADDED if is_added else _REMOVED, len(rows), len(paths)], "<u4")
        self._file.append(head.tobytes() + rows.astype("<u4").tobytes() + slots.tobytes() + paths)

    def changes(self) -> Iterator[Change]:
        """Yield the committed records; StoreDamagedError if the file is altered."""
        at, left = 0, b""
        for piece in self._file.pieces(_READ_BYTES):
            content, used = left + piece, 0
            while (size := _record_bytes(content, used)) and used + size <= len(content):
                yield _change(content, used, at + used)
                used += size
            at, left = at + used, content[used:]
        if left:
            raise StoreDamagedError(f"{self._file.path} ends within a record")

    def label(self) -> LogLabel:
        """Return what the manifest says about it."""
        return LogLabel(self.number, self._file.length, self._file.tail_sum())

    def cut(self) -> UnsyncedPart | None:
        """Return what is not durable yet."""
        return self._file.cut()

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def log_paths(folder: Path, number: int) -> tuple[Path, Path]:
    """Return the files of log `number`: records and their checksums."""
    path = folder / f"cells-{number}"
    return path, path.with_name(path.name + ".sums")


def _record_bytes(content: bytes, at: int) -> int:
    """Return the bytes of the record at a place; 0 if its head is cut off."""
    if at + _HEAD_BYTES > len(content):
        return 0
    _, count, size = np.frombuffer(content, "<u4", 3, at).tolist()
    return int(_HEAD_BYTES + 5 * count + size)


def _change(content: bytes, start: int, at: int) -> Change:
    kind, count, size = np.frombuffer(content, "<u4", 3, start).tolist()
    first = start + _HEAD_BYTES
    rows = np.frombuffer(content, "<u4", count, first).astype(np.uint32)
    slots = np.frombuffer(content, np.uint8, count, first + 4 * count).copy()
    first += 5 * count
    return Change(at, kind == _ADDED, rows, slots, content[first : first + size])
