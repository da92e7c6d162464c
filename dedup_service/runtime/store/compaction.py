"""Write the live rows of a sparse segment into new files: read in pieces by the caller, written by a thread.

Rows keep their numbers (`segment.Members`), so nothing outside of the store changes. Rows that were removed since the
last commit are copied, too: after a crash they are live again until the log removes them.

`step` reads a piece of about 1 MB and hands it to the thread, which writes it and, after the last one, makes all files
durable. So the caller never waits for the disk to write. The new files are not part of the store until a manifest
names them; what a crash leaves is deleted when the store is opened.
"""

from collections import Counter, deque
from collections.abc import Generator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from dedup_service.runtime.store.manifest import sync_directory
from dedup_service.runtime.store.row_reader import RowReader
from dedup_service.runtime.store.segment import Segment
from dedup_service.runtime.store.stored_rows import BYTE_FILES, STORED_ROW

__all__ = ["Compaction"]

_PIECE_ROWS = 2048

_WAITING_PIECES = 8
"""Pieces that wait to be written, at most: 8 MB with 500 bytes a row."""


class Compaction:
    """The compaction of segment `old`. kept: bool[segment_rows], which rows go into the new files."""

    def __init__(
        self, folder: Path, identity: str, old: Segment, kept: npt.NDArray[np.bool_], reader: RowReader
    ) -> None:
        self.old = old
        self.new = Segment(folder, identity, old.number, old.generation + 1, None)
        """The copy. It belongs to the thread until `step` has returned True."""
        self._folder = folder
        self._kept = kept
        self._reader = reader
        self._lengths: Counter[str] = Counter()
        self._pieces = self._copy()
        self._thread = ThreadPoolExecutor(1, "compaction")
        self._written: deque[Future[None]] = deque()
        self._ended: Future[None] | None = None

    def step(self, budget_bytes: int, *, wait: bool) -> bool:
        """Copy about `budget_bytes`; return whether the new segment is complete and durable.

        Less is copied while the disk is behind, unless the caller is to wait for it. StoreFullError if it does not
        take what was copied.
        """
        while self._ended is None and budget_bytes > 0:
            if not self._has_room(wait=wait):
                return False
            copied = next(self._pieces, None)
            if copied is None:
                self._ended = self._thread.submit(self._finish)
                self._thread.shutdown(wait=False)
            else:
                budget_bytes -= copied
        if self._ended is None or not (wait or self._ended.done()):
            return False
        while self._written:
            self._written.popleft().result()
        self._ended.result()
        return True

    def abort(self) -> None:
        """Wait for the thread, and delete the new files."""
        self._thread.shutdown(wait=True, cancel_futures=True)
        self._pieces.close()
        self.new.delete()

    def _has_room(self, *, wait: bool) -> bool:
        """Return whether another piece may wait to be written; raise what a written one raised."""
        while self._written and (self._written[0].done() or (wait and len(self._written) >= _WAITING_PIECES)):
            self._written.popleft().result()
        return len(self._written) < _WAITING_PIECES

    def _copy(self) -> Generator[int, None, None]:
        numbers = np.flatnonzero(self._kept) + self.old.number * len(self._kept)
        for start in range(0, len(numbers), _PIECE_ROWS):
            yield self._copy_rows(numbers[start : start + _PIECE_ROWS])

    def _copy_rows(self, numbers: npt.NDArray[np.int64]) -> int:
        rows = self._reader.stored(numbers)
        segments = np.full(len(rows), self.old.number, np.int64)
        contents = {}
        for name in BYTE_FILES:
            sizes = rows[f"{name}_bytes"].astype(np.int64)
            if name == "texts" and not self.old.files[name].length:
                sizes[:] = 0
            spans = self._reader.gather(name, segments, rows[f"{name}_at"].astype(np.int64), sizes)
            rows[f"{name}_bytes"] = sizes
            rows[f"{name}_at"] = self._lengths[name] + spans.starts[:-1]
            contents[name] = spans.data.tobytes()
            self._lengths[name] += len(contents[name])
        self._written.append(self._thread.submit(self._write, rows, contents))
        return len(rows) * STORED_ROW.itemsize + sum(map(len, contents.values()))

    def _write(self, rows: npt.NDArray[Any], contents: dict[str, bytes]) -> None:
        self.new.append(rows, contents)

    def _finish(self) -> None:
        self.new.set_members(self._kept)
        self.new.seal()
        for part in self.new.cut():
            part.sync()
        sync_directory(self._folder)
